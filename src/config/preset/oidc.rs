//! Any OpenID provider with a discovery document (OpenID Connect Discovery 1.0). The document always names
//! the keys and only sometimes an introspection endpoint. RFC 7662 §2.1 covers access and refresh tokens, so
//! not every server introspects an `id_token`.
//!
//! Some providers, such as Dex, issue access tokens with the same claims as their `id_token`s. For those, set
//! `nonce = "always"` and `nonce_form = "sha256"`: a service that receives such a token knows only the hash.

use super::{Defaults, Origin};
use crate::config::provider::Verify;

pub(super) const OIDC: Defaults = Defaults {
    verify: Verify::Jwks,
    introspects_id_tokens: false,
    issuers: Origin::Discovered,
    ..Defaults::INTROSPECTED
};
