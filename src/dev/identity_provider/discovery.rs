//! The published documents: the provider's metadata (OpenID Connect Discovery 1.0 §3), the metadata
//! of its security events (OpenID Shared Signals Framework 1.0 §7.1) and its key (RFC 7517 §5).

use rocket::serde::json::Json;
use rocket::{State, get};
use serde_json::{Value, json};

use super::IdentityProvider;

#[get("/.well-known/openid-configuration")]
pub(super) fn configuration(provider: &State<IdentityProvider>) -> Json<Value> {
    let issuer = &provider.issuer;
    Json(json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/jwks.json"),
        // Neither a standard nor Google's metadata has this member; it helps developers who look
        // for the endpoint.
        "tokeninfo_endpoint": format!("{issuer}/tokeninfo"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    }))
}

#[get("/jwks.json")]
pub(super) fn jwks(provider: &State<IdentityProvider>) -> Json<Value> {
    Json(json!({ "keys": [provider.key.jwk()] }))
}

#[get("/ssf-configuration")]
pub(super) fn transmitter(provider: &State<IdentityProvider>) -> Json<Value> {
    let issuer = &provider.issuer;
    Json(json!({
        "issuer": issuer,
        "jwks_uri": format!("{issuer}/jwks.json"),
        "delivery_methods_supported": ["urn:ietf:rfc:8935"],
    }))
}
