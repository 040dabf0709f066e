//! Any OpenID provider with a discovery document (OpenID Connect Discovery 1.0). The document
//! always names the keys and only sometimes an introspection endpoint. RFC 7662 §2.1 covers access
//! and refresh tokens, so not every server introspects an `id_token`.
//!
//! Some providers, such as Dex, issue access tokens with the same claims as their `id_token`s. For
//! such a provider, set `nonce = "always"` and `nonce_form = "sha256"`: a service that receives
//! such an access token knows only the hash.

use super::{Preset, Protocol};

pub const PRESET: Preset = Preset {
    name: "oidc",
    settings: r#"verify = "jwks""#,
    protocol: Protocol::Introspection,
    introspects_id_tokens: false,
    has_discovery: true,
    ..Preset::CUSTOM
};
