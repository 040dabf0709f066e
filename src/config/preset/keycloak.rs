//! Keycloak (keycloak.org, "Securing applications: OpenID Connect"): `issuer` is the URL of the realm, such
//! as `https://id.example.com/realms/people`.
//!
//! The default is verification by signature. Introspection returns the audiences of the user's roles
//! (`account`) rather than those of the token, so only `active` is used from its response. Keycloak's access
//! and refresh tokens are recognised by `typ` in the payload.

use super::{Defaults, Origin};
use crate::config::provider::Verify;

pub(super) const KEYCLOAK: Defaults =
    Defaults { verify: Verify::Jwks, issuers: Origin::Discovered, ..Defaults::INTROSPECTED };
