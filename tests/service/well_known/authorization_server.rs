//! `GET /.well-known/oauth-authorization-server`: RFC 8414.

use reqwest::Method;
use serde_json::json;

use crate::support::app::App;
use crate::support::keys::ISSUER;

#[tokio::test(flavor = "multi_thread")]
async fn the_metadata_says_where_the_keys_and_the_token_endpoint_are() {
    let app = App::start().await;
    let answer = app
        .send(
            Method::GET,
            "/.well-known/oauth-authorization-server",
            None,
            "",
        )
        .await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(
        answer.json(),
        json!({
            "issuer": ISSUER,
            "jwks_uri": format!("{ISSUER}/.well-known/jwks.json"),
            "token_endpoint": format!("{ISSUER}/api/v1/auth/token"),
            "response_types_supported": ["none"],
            "token_endpoint_auth_methods_supported": ["none"],
            "dpop_signing_alg_values_supported": ["ES256", "EdDSA"],
            "grant_types_supported": ["refresh_token"],
            "revocation_endpoint": format!("{ISSUER}/api/v1/auth/revoke"),
            "revocation_endpoint_auth_methods_supported": ["none"],
            "service_documentation": format!("{ISSUER}/api/v1/openapi.json"),
        })
    );
}
