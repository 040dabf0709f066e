//! Token introspection (RFC 7662): the operator sets the endpoint and the issuers. The response for
//! an inactive token is a 200 with `active: false`. The response must have every claim that is
//! checked, including claims that are optional in the standard.
//!
//! A token that is not a JWT does not show its type, and most introspected tokens are access
//! tokens: any service that receives one could sign in with it here. `token_format = "jwt"`
//! prevents that. A JWT is checked by its own claims and must be an `id_token`.

use super::{Preset, Protocol};

pub const PRESET: Preset = Preset {
    name: "rfc7662",
    settings: r#"token_format = "any""#,
    protocol: Protocol::Introspection,
    ..Preset::CUSTOM
};
