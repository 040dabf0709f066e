//! Keycloak (keycloak.org, "Securing applications: OpenID Connect"): `issuer` is the URL of the
//! realm, such as `https://id.example.com/realms/people`.
//!
//! The default is verification by signature. Introspection returns the audiences of the user's
//! roles (`account`) instead of the token's audiences, so its `aud` does not count. Keycloak's
//! access and refresh tokens are recognised by `typ` in the payload.

use super::{Dialect, Preset, Protocol};

pub const PRESET: Preset = Preset {
    name: "keycloak",
    settings: r#"verify = "jwks""#,
    protocol: Protocol::Introspection,
    has_discovery: true,
    dialect: Dialect {
        resource_audience: true,
        ..Dialect::STANDARD
    },
    ..Preset::CUSTOM
};
