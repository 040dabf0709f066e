//! `GET /.well-known/jwks.json`: RFC 7517.

use reqwest::Method;

use crate::support::app::App;
use crate::support::keys::kid;
use crate::support::token::claims;

#[tokio::test(flavor = "multi_thread")]
async fn the_set_holds_the_public_parts_and_nothing_else() {
    let app = App::start().await;
    app.keys.rotation().rotate().await.unwrap();
    app.keys.reload().await.unwrap();
    let answer = app
        .send(Method::GET, "/.well-known/jwks.json", None, "")
        .await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("content-type")),
        (200, Some("application/json"))
    );
    let keys = answer.json()["keys"].take();
    let keys = keys.as_array().unwrap();
    assert_eq!(keys.len(), 2, "the key that signs, and the next one");
    for key in keys {
        let members: Vec<_> = key
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(members, ["alg", "crv", "kid", "kty", "use", "x", "y"]);
        let fixed = ["alg", "crv", "kty", "use"].map(|name| key[name].as_str().unwrap());
        assert_eq!(fixed, ["ES256", "P-256", "EC", "sig"]);
        for name in ["x", "y", "kid"] {
            assert_eq!(
                key[name].as_str().unwrap().len(),
                43,
                "32 bytes in base64url: {name}"
            );
        }
    }
    assert_eq!(
        keys[0]["kid"],
        kid(&app
            .sign_in(&claims("subject", "ada@example.com"))
            .await
            .access_token())
    );
}
