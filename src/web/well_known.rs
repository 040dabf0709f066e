//! `/.well-known`: the keys (RFC 7517 §5) and the metadata (RFC 8414) that others need to verify access tokens. Both
//! are public, the same for everyone, and answered from memory.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rocket::http::{ContentType, Header, Status};
use rocket::request::Request;
use rocket::response::{self, Responder, Response};
use rocket::{State, get};
use serde::Serialize;
use utoipa::ToSchema;

use super::openapi::problems::{NoErrors, Problems};
use super::problem::Problem;
use super::resource::resource;
use crate::config;
use crate::domain::dpop::ALGORITHMS;
use crate::keys::KeyRing;
use crate::keys::signing_key::Jwk;

resource!("Verification": keys, metadata);

/// The public keys.
#[derive(Serialize, ToSchema)]
struct JwkSet {
    keys: Vec<Jwk>,
}

/// Get the keys that verify access tokens
///
/// Returns all published keys: the current key, the next one, and earlier ones whose tokens may
/// still be valid. Select a key by `kid`, cache the response as `Cache-Control` states, and fetch
/// it again for an unknown `kid`.
#[utoipa::path(
    responses((status = 200, description = "The keys (RFC 7517).", body = JwkSet), Problems<NoErrors>),
)]
#[get("/.well-known/jwks.json")]
fn keys(keys: &State<KeyRing>) -> Result<Document, Problem> {
    Document::new(&JwkSet {
        keys: keys.published(),
    })
}

/// Get the authorization server's metadata
///
/// Returns the authorization server metadata of RFC 8414, from which clients configure themselves.
#[utoipa::path(
    responses((status = 200, description = "The metadata (RFC 8414).", body = Metadata,
                example = json!(Metadata::new("https://id.example.com"))), Problems<NoErrors>),
)]
#[get("/.well-known/oauth-authorization-server")]
fn metadata(metadata: &State<Metadata>) -> Result<Document, Problem> {
    Document::new(metadata.inner())
}

/// The metadata of the authorization server (RFC 8414 §2, RFC 9449 §5.1).
///
/// `response_types_supported` is required, and §3.2 forbids it to be empty. There is no
/// authorization endpoint to send a response type to, so it contains `none`, whose response has
/// neither a code nor a token. Clients are public, so they do not authenticate.
#[derive(Debug, Serialize, ToSchema)]
pub struct Metadata {
    issuer: String,
    jwks_uri: String,
    token_endpoint: String,
    response_types_supported: [&'static str; 1],
    token_endpoint_auth_methods_supported: [&'static str; 1],
    grant_types_supported: [&'static str; 1],
    revocation_endpoint: String,
    revocation_endpoint_auth_methods_supported: [&'static str; 1],
    dpop_signing_alg_values_supported: [&'static str; 2],
    service_documentation: String,
}

impl Metadata {
    pub fn new(public_url: &str) -> Self {
        Self {
            issuer: public_url.to_owned(),
            jwks_uri: format!("{public_url}/.well-known/jwks.json"),
            token_endpoint: format!("{public_url}/api/v1/auth/token"),
            response_types_supported: ["none"],
            token_endpoint_auth_methods_supported: ["none"],
            grant_types_supported: ["refresh_token"],
            revocation_endpoint: format!("{public_url}/api/v1/auth/revoke"),
            revocation_endpoint_auth_methods_supported: ["none"],
            dpop_signing_alg_values_supported: ALGORITHMS,
            service_documentation: format!("{public_url}/api/v1/openapi.json"),
        }
    }
}

/// A public document that clients may cache and then revalidate by its `ETag`.
struct Document {
    json: Vec<u8>,
    etag: String,
}

impl Document {
    fn new(content: &impl Serialize) -> Result<Self, Problem> {
        let json = serde_json::to_vec(content).map_err(|_| Problem::internal())?;
        let etag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(digest(&SHA256, &json)));
        Ok(Self { json, etag })
    }

    /// Returns `true` if `If-None-Match` lists the document's tag, compared weakly (RFC 9110
    /// §13.1.2).
    fn is_known_to(&self, request: &Request<'_>) -> bool {
        let mut tags = request
            .headers()
            .get("If-None-Match")
            .flat_map(|list| list.split(','))
            .map(str::trim);
        tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == self.etag)
    }
}

impl<'r> Responder<'r, 'static> for Document {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'static> {
        let known = self.is_known_to(request);
        let mut response = Response::build();
        response
            .header(Header::new(
                "Cache-Control",
                format!("public, max-age={}", config::Keys::MAX_AGE),
            ))
            .header(Header::new("Access-Control-Allow-Origin", "*"))
            .header(Header::new("ETag", self.etag));
        if known {
            response.status(Status::NotModified);
        } else {
            response
                .header(ContentType::JSON)
                .sized_body(self.json.len(), std::io::Cursor::new(self.json));
        }
        response.ok()
    }
}
