//! Keycloak (keycloak.org, "Securing applications: OpenID Connect"): `issuer` is the realm's
//! address, such as `https://id.example.com/realms/people`.
//!
//! Verified by the signature unless told otherwise: RFC 7662 §2.1 speaks of access and refresh
//! tokens, and whether an `id_token` is introspected depends on the server.

use super::{Defaults, Origin};
use crate::config::provider::Verify;

pub(super) const KEYCLOAK: Defaults =
    Defaults { verify: Verify::Jwks, issuers: Origin::Discovered, ..Defaults::INTROSPECTED };
