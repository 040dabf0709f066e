//! Any OpenID provider that publishes a discovery document (OpenID Connect Discovery 1.0), which
//! always names its keys and only sometimes an introspection endpoint. RFC 7662 §2.1 speaks of access and refresh
//! tokens: whether an `id_token` is introspected depends on the server.
//!
//! Some providers, such as Dex, make access tokens of the very claims of their `id_token`s. There it takes
//! `nonce = "always"` with `nonce_form = "sha256"`: a service that was shown a token knows the hash alone.

use super::{Defaults, Origin};
use crate::config::provider::Verify;

pub(super) const OIDC: Defaults = Defaults {
    verify: Verify::Jwks,
    introspects_id_tokens: false,
    issuers: Origin::Discovered,
    ..Defaults::INTROSPECTED
};
