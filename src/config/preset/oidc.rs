//! Any OpenID provider that publishes a discovery document (OpenID Connect Discovery 1.0), which
//! always names its keys and only sometimes an introspection endpoint.

use super::{Defaults, Origin};
use crate::config::provider::Verify;

pub(super) const OIDC: Defaults =
    Defaults { verify: Verify::Jwks, issuers: Origin::Discovered, ..Defaults::INTROSPECTED };
