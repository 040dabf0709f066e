//! The published documents: the provider's metadata (OpenID Connect Discovery 1.0 §3) and its key (RFC 7517 §5).

use rocket::{State, get};
use serde::Serialize;

use super::IdentityProvider;
use super::answer::Answer;
use super::key::Jwk;

#[derive(Serialize)]
struct Metadata<'a> {
    issuer: &'a str,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    /// Neither a standard nor Google's metadata has this member; it helps developers who look for the endpoint.
    tokeninfo_endpoint: String,
    response_types_supported: [&'static str; 1],
    response_modes_supported: [&'static str; 1],
    grant_types_supported: [&'static str; 1],
    subject_types_supported: [&'static str; 1],
    id_token_signing_alg_values_supported: [&'static str; 1],
    scopes_supported: [&'static str; 3],
    claims_supported: [&'static str; 10],
    token_endpoint_auth_methods_supported: [&'static str; 2],
    /// RFC 8414 §2.
    code_challenge_methods_supported: [&'static str; 1],
    /// RFC 9207 §3.
    authorization_response_iss_parameter_supported: bool,
    /// If absent, it would mean that they are supported.
    request_uri_parameter_supported: bool,
}

#[derive(Serialize)]
struct Jwks<'a> {
    keys: [&'a Jwk; 1],
}

#[get("/.well-known/openid-configuration")]
pub(super) fn configuration(provider: &State<IdentityProvider>) -> Answer {
    let issuer = &provider.issuer;
    Answer::json(&Metadata {
        issuer,
        authorization_endpoint: format!("{issuer}/authorize"),
        token_endpoint: format!("{issuer}/token"),
        jwks_uri: format!("{issuer}/jwks.json"),
        tokeninfo_endpoint: format!("{issuer}/tokeninfo"),
        response_types_supported: ["code"],
        response_modes_supported: ["query"],
        grant_types_supported: ["authorization_code"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: ["RS256"],
        scopes_supported: ["openid", "email", "profile"],
        claims_supported: [
            "iss",
            "azp",
            "aud",
            "sub",
            "email",
            "email_verified",
            "name",
            "picture",
            "iat",
            "exp",
        ],
        token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
        code_challenge_methods_supported: ["S256"],
        authorization_response_iss_parameter_supported: true,
        request_uri_parameter_supported: false,
    })
}

#[get("/jwks.json")]
pub(super) fn jwks(provider: &State<IdentityProvider>) -> Answer {
    Answer::json(&Jwks { keys: [&provider.key.jwk] })
}
