//! Forged and altered access tokens, against the verification that guards every protected route
//! (RFC 8725 §3, RFC 9068 §4).

use std::net::TcpListener;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use uuid::Uuid;
use vestibule::keys::KeyRing;

use crate::support::app::App;
use crate::support::keys::{ISSUER, issuer};
use crate::support::signer::{Signer, hs256, signed};
use crate::support::token::{claims, now, with};

fn header(keys: &KeyRing, changes: &Value) -> Value {
    with(
        json!({ "alg": "ES256", "typ": "at+jwt", "kid": keys.signing(now()).unwrap().kid }),
        changes,
    )
}

fn payload(changes: &Value) -> Value {
    let sound = json!({
        "iss": ISSUER, "sub": Uuid::nil(), "aud": ISSUER, "exp": now() + 900, "iat": now(),
        "jti": Uuid::nil(), "sid": Uuid::nil(), "client_id": "client",
    });
    with(sound, changes)
}

/// Signs any header and payload with our own key.
fn ours(keys: &KeyRing, header: &str, payload: &str) -> String {
    signed(header, payload, |message| {
        keys.signing(now())
            .unwrap()
            .sign(message)
            .unwrap()
            .as_ref()
            .to_vec()
    })
}

/// Like [`ours`], with a sound header.
fn claiming(keys: &KeyRing, changes: &Value) -> String {
    ours(
        keys,
        &header(keys, &json!({})).to_string(),
        &payload(changes).to_string(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tokens_of_this_table_are_sound_until_something_is_changed() {
    let app = App::start().await;
    for claims in [
        json!({}),
        json!({ "nbf": now() }),
        json!({ "iat": now() + 2, "nbf": now() + 2 }),
        json!({ "exp": now() - 2 }),
    ] {
        let verified = issuer(&app.keys)
            .verify(&claiming(&app.keys, &claims), now())
            .await;
        assert!(verified.is_ok(), "clocks that differ: {claims}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_may_differ_by_five_seconds_and_not_by_one_more() {
    let app = App::start().await;
    let at = now();
    for (claims, last_refused, first_accepted) in [
        (json!({ "exp": at }), 5, 4),
        (json!({ "iat": at }), -6, -5),
        (json!({ "iat": at - 60, "nbf": at }), -6, -5),
    ] {
        let token = claiming(&app.keys, &claims);
        for (seconds, accepted) in [(last_refused, false), (first_accepted, true)] {
            let verdict = issuer(&app.keys).verify(&token, at + seconds).await;
            assert_eq!(verdict.is_ok(), accepted, "{claims}, {seconds} s later");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_valid_exactly_for_its_expires_in() {
    let app = App::start().await;
    let before = now();
    let answer = app.sign_in(&claims("subject", "ada@example.com")).await;
    let after = now();
    let token = answer.access_token();
    let lives = answer.json()["expires_in"].as_i64().unwrap();
    assert!(
        issuer(&app.keys)
            .verify(&token, before + lives + 4)
            .await
            .is_ok()
    );
    assert!(
        issuer(&app.keys)
            .verify(&token, after + lives + 5)
            .await
            .is_err()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_does_not_choose_its_algorithm_or_its_key() {
    let app = App::start().await;
    let keys = &app.keys;
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    host.set_nonblocking(true).unwrap();
    let url = format!("http://{}/", host.local_addr().unwrap());
    let jwk = serde_json::to_value(&keys.published()[0]).unwrap();
    let changes = [
        json!({ "alg": "none" }),
        json!({ "alg": "noNE" }),
        json!({ "alg": "" }),
        json!({ "alg": "es256" }),
        json!({ "alg": "ES384" }),
        json!({ "alg": "RS256" }),
        json!({ "alg": "HS256" }),
        json!({ "alg": ["ES256"] }),
        json!({ "alg": null }),
        json!({ "typ": "JWT" }),
        json!({ "typ": "id+jwt" }),
        json!({ "typ": null }),
        json!({ "kid": "" }),
        json!({ "kid": null }),
        json!({ "kid": 0 }),
        json!({ "kid": "../../dev/null" }),
        json!({ "kid": "/dev/null" }),
        json!({ "kid": "' OR ''='" }),
        json!({ "kid": "A".repeat(43) }),
        json!({ "kid": url }),
        json!({ "jwk": jwk }),
        json!({ "jku": url }),
        json!({ "x5u": url }),
        json!({ "x5c": ["MIIB"] }),
        json!({ "crit": ["exp"] }),
        json!({ "crit": [] }),
        json!({ "b64": false }),
        json!({ "zip": "DEF" }),
        json!({ "cty": "JWT" }),
    ];
    for change in changes {
        let header = header(keys, &change);
        // The signature is right, so that only the header can be wrong.
        let header = header.to_string();
        let payload = payload(&json!({})).to_string();
        for token in [
            ours(keys, &header, &payload),
            signed(&header, &payload, |_| Vec::new()),
        ] {
            assert!(
                issuer(keys).verify(&token, now()).await.is_err(),
                "{change}: {token}"
            );
        }
    }
    assert!(
        host.accept().is_err(),
        "nobody asked the host that the tokens named"
    );
    assert!(
        keys.reloads() <= 1,
        "only an id that could be ours is looked for"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_signed_with_anything_but_our_key_is_refused() {
    let app = App::start().await;
    let keys = &app.keys;
    let payload = payload(&json!({})).to_string();
    let verify = async |token: String| issuer(keys).verify(&token, now()).await;

    // An attacker may use the public key as an HMAC secret.
    let jwk = serde_json::to_value(&keys.published()[0]).unwrap();
    let coordinate = |name: &str| URL_SAFE_NO_PAD.decode(jwk[name].as_str().unwrap()).unwrap();
    let point = [vec![4], coordinate("x"), coordinate("y")].concat();
    for secret in [
        point,
        jwk.to_string().into_bytes(),
        jwk["x"].as_str().unwrap().into(),
        b"\0".to_vec(),
    ] {
        for alg in ["HS256", "ES256"] {
            let header = header(keys, &json!({ "alg": alg })).to_string();
            let forged = signed(&header, &payload, |message| hs256(&secret, message));
            assert!(verify(forged).await.is_err(), "{alg}");
        }
    }

    let own = with(
        Signer::OtherEc.jwk(),
        &json!({ "kid": keys.signing(now()).unwrap().kid }),
    );
    for change in [json!({}), json!({ "jwk": own })] {
        let forged = Signer::OtherEc.token_of(&header(keys, &change).to_string(), &payload);
        assert!(verify(forged).await.is_err(), "{change}");
    }

    let header = header(keys, &json!({})).to_string();
    for signature in [
        vec![],
        vec![0; 64],
        vec![1; 64],
        vec![0; 63],
        vec![0xff; 64],
    ] {
        assert!(
            verify(signed(&header, &payload, |_| signature))
                .await
                .is_err()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_ours_that_says_something_else_is_refused() {
    let app = App::start().await;
    let keys = &app.keys;
    let changes = [
        json!({ "iss": "https://elsewhere.example" }),
        json!({ "iss": format!("{ISSUER}/") }),
        json!({ "iss": [ISSUER] }),
        json!({ "iss": null }),
        json!({ "aud": "https://elsewhere.example" }),
        json!({ "aud": [ISSUER, "https://elsewhere.example"] }),
        json!({ "aud": "" }),
        json!({ "aud": null }),
        json!({ "exp": now() - 60 }),
        json!({ "exp": (now() + 900).to_string() }),
        json!({ "exp": 1e300 }),
        json!({ "exp": -1 }),
        json!({ "exp": null }),
        json!({ "iat": now() + 60 }),
        json!({ "iat": now().to_string() }),
        json!({ "iat": null }),
        json!({ "nbf": now() + 60 }),
        json!({ "nbf": (now() + 60).to_string() }),
        json!({ "nbf": now().to_string() }),
        json!({ "sub": "ada" }),
        json!({ "sub": null }),
        json!({ "sid": "" }),
        json!({ "sid": null }),
    ];
    for change in changes {
        assert!(
            issuer(keys)
                .verify(&claiming(keys, &change), now())
                .await
                .is_err(),
            "{change}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_another_shape_is_refused() {
    let app = App::start().await;
    let keys = &app.keys;
    let head = header(keys, &json!({})).to_string();
    let body = payload(&json!({})).to_string();
    let sound = ours(keys, &head, &body);
    let shapes = [
        String::new(),
        ".".into(),
        "..".into(),
        "...".into(),
        format!("{sound}."),
        format!(".{sound}"),
        format!(" {sound}"),
        format!("{sound}="),
        format!("{sound}\n"),
        sound.replacen('.', "..", 1),
        sound[..sound.len() - 1].to_owned(),
        sound.rsplit_once('.').unwrap().0.to_owned(),
        format!("{}.", sound.rsplit_once('.').unwrap().0),
        ours(keys, &format!("{head}{head}"), &body),
        ours(keys, &head.replacen('{', r#"{"alg":"none","#, 1), &body),
        ours(
            keys,
            &head,
            &body.replacen('{', r#"{"exp":99999999999,"#, 1),
        ),
        ours(keys, "[]", &body),
        ours(keys, "null", &body),
        ours(keys, &head, "[]"),
        ours(keys, &head, ""),
        ours(keys, &"[".repeat(5000), &body),
    ];
    for shape in shapes {
        assert!(issuer(keys).verify(&shape, now()).await.is_err(), "{shape}");
    }
    assert!(issuer(keys).verify(&sound, now()).await.is_ok());
}
