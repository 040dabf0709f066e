//! Keycloak (keycloak.org, "Securing applications: OpenID Connect"): `issuer` is the realm's
//! address, such as `https://id.example.com/realms/people`.
//!
//! Verified by the signature unless told otherwise. Introspection answers with the audiences of a person's roles
//! (`account`) in place of the token's own, so only that the token is active is believed of it. Its access and
//! refresh tokens say so in the payload (`typ`).

use super::{Defaults, Origin};
use crate::config::provider::Verify;

pub(super) const KEYCLOAK: Defaults =
    Defaults { verify: Verify::Jwks, issuers: Origin::Discovered, ..Defaults::INTROSPECTED };
