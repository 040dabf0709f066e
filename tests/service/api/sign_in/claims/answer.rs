//! Answers that are no `id_token`'s claims, or not one person's.

use serde_json::{Value, json};

use super::{assert_accepted, assert_refused};
use crate::support::app::App;
use crate::support::problem::assert_problem;
use crate::support::provider::Behaviour;
use crate::support::token::{CLIENT_ID, claims, now, with};

#[tokio::test(flavor = "multi_thread")]
async fn an_access_token_in_place_of_an_id_token_is_refused() {
    let app = App::start().await;
    let of_access_token = json!({
        "azp": CLIENT_ID, "aud": CLIENT_ID, "sub": "subject-1", "scope": "openid email",
        "exp": (now() + 3600).to_string(), "expires_in": "3600", "email": "ada@example.com",
        "email_verified": "true", "access_type": "online",
    });
    assert_refused(&app, "idp", &of_access_token, 401, "invalid_token").await;
    let answer = app.sign_in(&of_access_token).await;
    assert_eq!(answer.json()["detail"], "this is an access token; send the id_token");
    let of_introspection = json!({ "active": true, "client_id": CLIENT_ID, "username": "ada" });
    assert_refused(&app, "idp", &of_introspection, 401, "issuer_mismatch").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_says_a_thing_twice_is_not_believed() {
    let app = App::start().await;
    let sound = claims("subject-1", "ada@example.com").to_string();
    let inner = sound.strip_prefix('{').unwrap();
    for (answered, doubled) in [
        (format!(r#"{{"sub":"subject-2",{inner}"#), "sub before"),
        (sound.replacen('}', r#","sub":"subject-2"}"#, 1), "sub after"),
        (sound.replacen('}', r#","sub":"subject-1"}"#, 1), "the same sub"),
        (format!(r#"{{"aud":"{CLIENT_ID}",{inner}"#), "aud"),
        (format!(r#"{{"\u0073ub":"subject-2",{inner}"#), "an escaped sub"),
        (format!(r#"{{"address":{{"a":1,"a":2}},{inner}"#), "a nested member"),
    ] {
        let token = app.token(&Value::Null);
        app.provider.behave_for(&token, Behaviour::body("application/json", answered));
        let answer = app.post("idp", &json!({ "id_token": token })).await;
        assert_eq!(answer.error(), "provider_unavailable", "{doubled}: {}", answer.text);
        assert_problem(&answer, 503, "provider_unavailable");
    }
    assert_eq!(app.database.rows().await, [0, 0, 0]);
    let token = app.token(&Value::Null);
    app.provider.behave_for(&token, Behaviour::body("application/json", sound));
    assert_eq!(app.post("idp", &json!({ "id_token": token })).await.outcome(), "created");
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_that_mean_nothing_here_change_nothing() {
    let app = App::start().await;
    let plain = assert_accepted(&app, "idp", &claims("subject-1", "ada@example.com")).await;
    let more = json!({
        "at_hash": "wrong", "user_id": "00000000-0000-0000-0000-000000000000", "role": "admin",
        "preferred_username": "root", "upn": "root@example.com", "\0": "\0", "groups": ["staff"],
    });
    let answer = assert_accepted(&app, "idp", &with(claims("subject-1", "ada@example.com"), &more)).await;
    assert_eq!(answer.json()["user"], plain.json()["user"]);
    assert_eq!(answer.json()["identity"], plain.json()["identity"]);
}
