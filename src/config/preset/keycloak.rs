//! Keycloak (keycloak.org, "Securing applications: OpenID Connect"): `issuer` is the URL of the realm, such
//! as `https://id.example.com/realms/people`.
//!
//! The default is verification by signature. Introspection returns the audiences of the user's roles
//! (`account`) rather than those of the token, so its `aud` does not count. Keycloak's access and refresh tokens
//! are recognised by `typ` in the payload.

use super::{Defaults, Origin};
use crate::config::provider::Verify;
use crate::domain::claims::Dialect;

pub(super) const KEYCLOAK: Defaults = Defaults {
    verify: Verify::Jwks,
    issuers: Origin::Discovered,
    dialect: Dialect { resource_audience: true, ..Defaults::INTROSPECTED.dialect },
    ..Defaults::INTROSPECTED
};
