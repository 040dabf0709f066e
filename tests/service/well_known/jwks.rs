//! `GET /.well-known/jwks.json`: RFC 7517, and that it is enough to verify an access token.

use reqwest::Method;
use serde_json::Value;

use crate::support::app::App;
use crate::support::keys::{ISSUER, kid, pass};
use crate::support::pyjwt;
use crate::support::token::claims;

async fn keys(app: &App) -> Vec<Value> {
    let answer = app.send(Method::GET, "/.well-known/jwks.json", None, "").await;
    assert_eq!(answer.status.as_u16(), 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    answer.json()["keys"].as_array().unwrap().clone()
}

async fn access_token(app: &App) -> String {
    let answer = app.sign_in(&claims("subject", "ada@example.com")).await;
    answer.json()["access_token"].as_str().expect("signed in").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_set_holds_the_public_parts_and_nothing_else() {
    let app = App::start().await;
    app.keys.rotation().rotate().await.unwrap();
    app.keys.reload().await.unwrap();
    let keys = keys(&app).await;
    assert_eq!(keys.len(), 2, "the key that signs, and the next one");
    for key in &keys {
        let members: Vec<_> = key.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(members, ["alg", "crv", "kid", "kty", "use", "x", "y"]);
        let fixed = ["alg", "crv", "kty", "use"].map(|name| key[name].as_str().unwrap());
        assert_eq!(fixed, ["ES256", "P-256", "EC", "sig"]);
        for name in ["x", "y", "kid"] {
            assert_eq!(key[name].as_str().unwrap().len(), 43, "32 bytes in base64url: {name}");
        }
    }
    assert_eq!(keys[0]["kid"], kid(&access_token(&app).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unrelated_library_verifies_tokens_from_the_set_alone_before_and_after_a_rotation() {
    let app = App::start().await;
    let url = format!("{}/.well-known/jwks.json", app.url);
    let verify = async |token: &str| {
        let (url, token) = (url.clone(), token.to_owned());
        tokio::task::spawn_blocking(move || pyjwt::verify(&url, ISSUER, &token)).await.unwrap()
    };
    let before = access_token(&app).await;
    let Some(verified) = verify(&before).await else { return };
    let verified = verified.unwrap();
    assert_eq!(verified["header"]["typ"], "at+jwt");
    assert_eq!(verified["header"]["alg"], "ES256");
    assert_eq!(verified["claims"]["iss"], ISSUER);

    app.keys.rotation().rotate().await.unwrap();
    pass(&app.database, 600).await;
    app.keys.reload().await.unwrap();
    let after = access_token(&app).await;
    assert_ne!(kid(&after), kid(&before));
    assert_eq!(verify(&after).await.unwrap().unwrap()["claims"]["sub"], verified["claims"]["sub"]);
    assert!(verify(&before).await.unwrap().is_ok(), "the old token is valid until it expires");

    app.keys.rotation().replace_all(false).await.unwrap();
    app.keys.reload().await.unwrap();
    for token in [&before, &after] {
        let refused = verify(token).await.unwrap().unwrap_err();
        assert!(refused.contains("Unable to find a signing key"), "{refused}");
    }
    let current = access_token(&app).await;
    assert!(verify(&current).await.unwrap().is_ok());
    let (message, signature) = current.rsplit_once('.').unwrap();
    let other = if signature.starts_with('A') { "B" } else { "A" };
    let altered = format!("{message}.{other}{}", &signature[1..]);
    let refused = verify(&altered).await.unwrap().unwrap_err();
    assert!(refused.contains("Signature verification failed"), "{refused}");
}
