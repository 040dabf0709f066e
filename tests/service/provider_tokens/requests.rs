//! Authorization codes in requests: accepted, ignored and invalid ones.

use figment::Figment;
use serde_json::{Value, json};

use super::{
    APP, apple, failure, posted, revoked, sign_in, states, until, with_apple, with_keys_of_apple,
};
use crate::support::app::{Answer, App};
use crate::support::process::eventually;
use crate::support::provider::Behaviour;
use crate::support::provider::apple::{id_token, other_key};
use crate::support::token::{CLIENT_ID, claims, with};

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_ignored_without_revocation_or_after_a_refusal() {
    let app = with_apple().await;
    let token = app.token(&claims("subject", "ada@example.com"));
    let body = json!({ "id_token": token, "authorization_code": "code" });
    assert_eq!(app.post("idp", &body).await.outcome(), "created");
    let mut body = posted(&app.provider, "ada");
    body["create"] = false.into();
    assert_eq!(app.post("apple", &body).await.error(), "user_not_found");
    assert_eq!(states(&app.database.pool).await, [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_sent_again_has_its_code_exchanged_once() {
    let app = with_apple().await;
    let body = posted(&app.provider, "ada");
    for outcome in ["created", "signed_in", "signed_in"] {
        assert_eq!(app.post("apple", &body).await.outcome(), outcome);
    }
    until(&app.database.pool, &["kept"]).await;
    assert_eq!(app.post("apple", &body).await.outcome(), "signed_in");
    until(&app.database.pool, &["kept"]).await;
    assert_eq!(
        (
            app.provider.apple_tokens().len(),
            app.provider.apple_errors().len()
        ),
        (1, 0)
    );
}

/// Returns true if the metrics have counted this many exchanges with this outcome.
async fn counted(app: &App, outcome: &str, number: usize) -> bool {
    let text = app
        .send(reqwest::Method::GET, "/metrics", None, "")
        .await
        .text;
    let line = format!(
        "vestibule_provider_code_exchanges_total{{provider=\"apple\",outcome=\"{outcome}\"}}"
    );
    text.contains(&format!("{line} {number}\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_or_foreign_code_is_dropped() {
    let app = with_apple().await;
    let provider = &app.provider;
    for (subject, code) in [
        ("ada", "made-up".to_owned()),
        ("bob", provider.apple_code("bob", "com.example.other", None)),
        (
            "carol",
            provider.apple_code("carol", APP, Some("https://example.com/back")),
        ),
        ("dave", provider.apple_code("grace", APP, None)),
    ] {
        let token = id_token(subject, &format!("{subject}@example.com"), APP);
        let answer = app
            .post(
                "apple",
                &json!({ "id_token": token, "authorization_code": code }),
            )
            .await;
        assert!(answer.status.is_success(), "{}", answer.text);
    }
    until(&app.database.pool, &[]).await;
    assert_eq!(provider.apple_errors(), ["invalid_grant"; 3]);
    assert_eq!(
        revoked(provider).0,
        [] as [&str; 0],
        "another user's authorization is theirs"
    );
    assert!(counted(&app, "stored", 0).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_the_database_refuses_at_first_is_stored_later() {
    let app = with_apple().await;
    let pool = &app.database.pool;
    let refuse = "CREATE SEQUENCE refusals;
                  CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
                  BEGIN PERFORM nextval('refusals'); RAISE EXCEPTION 'no tokens'; END $$;
                  CREATE TRIGGER refuse BEFORE UPDATE OF sealed ON provider_tokens
                  FOR EACH ROW EXECUTE FUNCTION refuse()";
    sqlx::raw_sql(refuse).execute(pool).await.unwrap();
    sign_in(&app, "ada").await;
    let refused = "SELECT count(*) FROM refusals WHERE is_called";
    eventually("it is refused", async || {
        (app.database.count(refused).await > 0).then_some(())
    })
    .await;
    sqlx::query("DROP TRIGGER refuse ON provider_tokens")
        .execute(pool)
        .await
        .unwrap();
    until(pool, &["kept"]).await;
    assert_eq!(
        app.provider.apple_tokens().len(),
        1,
        "the code was exchanged once"
    );
    eventually("it is counted", async || {
        counted(&app, "stored", 1).await.then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apple_token_without_a_usable_id_token_is_dropped() {
    let app = with_keys_of_apple().await;
    let pool = &app.database.pool;
    for id_token in [json!("x.y"), json!(7), json!(null)] {
        app.provider.behave(Behaviour::Json(
            json!({ "refresh_token": "r", "id_token": id_token }),
        ));
        sign_in(&app, "ada").await;
        until(pool, &["kept"]).await;
    }
    assert!(counted(&app, "refused", 3).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_retried_during_an_outage_until_it_expires() {
    let app = with_keys_of_apple().await;
    let pool = &app.database.pool;
    app.provider.behave(Behaviour::status(500));
    let asked = app.provider.calls();
    sign_in(&app, "ada").await;
    app.provider.until(|counts| counts.calls > asked + 1).await;
    app.provider.behave(Behaviour::Usual);
    until(pool, &["kept", "kept"]).await;

    app.provider.behave(Behaviour::RESET);
    sign_in(&app, "linus").await;
    assert!(failure(pool).await.contains("connection"));
    super::pass(pool, 300).await;
    until(pool, &["kept", "kept"]).await;
    assert!(counted(&app, "expired", 1).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apple_key_that_apple_rejects_is_reported_with_its_settings() {
    let app = App::start_with(|figment| {
        apple(figment).merge(("providers.apple.private_key", other_key()))
    })
    .await;
    sign_in(&app, "ada").await;
    let failure = failure(&app.database.pool).await;
    for words in [
        "invalid_client",
        "providers.apple.team_id",
        "key_id",
        "private_key",
    ] {
        assert!(failure.contains(words), "{failure}");
    }
}

/// Starts a service whose provider has a client secret and a revocation endpoint.
async fn with_secret() -> App {
    App::start_with(revoking).await
}

fn revoking(figment: Figment) -> Figment {
    let url = super::provider_url(&figment);
    figment
        .merge(("idp.client_secret", "hush-hush"))
        .merge(("idp.token_url", format!("{url}/token")))
        .merge(("idp.revocation_url", format!("{url}/revoke")))
}

fn ada() -> Value {
    claims("subject", "ada@example.com")
}

fn text(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Signs in with a code, for which the token endpoint returns `tokens`.
async fn sign_in_with(app: &App, claims: &Value, code: &str, tokens: Value) -> Answer {
    let provider = &app.provider;
    let body = json!({ "id_token": app.token(claims), "authorization_code": code,
                       "redirect_uri": "https://example.com/" });
    let gate = provider.hold();
    let request = app.post("idp", &body);
    let (answer, ()) = tokio::join!(request, async {
        gate.arrived(1).await;
        provider.behave(Behaviour::Json(tokens));
        gate.release();
    });
    assert!(answer.status.is_success(), "{}", answer.text);
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn exchange_and_revocation_requests_follow_the_standards() {
    let app = with_secret().await;
    let provider = &app.provider;
    let tokens = json!({ "access_token": "a", "refresh_token": "r" });
    let answer = sign_in_with(&app, &ada(), "4/code", tokens).await;
    until(&app.database.pool, &["kept"]).await;
    provider.behave(Behaviour::status(200));
    assert_eq!(
        app.delete(&answer.access_token(), "/api/v1/me")
            .await
            .status,
        204
    );
    until(&app.database.pool, &[]).await;
    let [_, exchange, revocation]: [_; 3] = provider.requests().try_into().unwrap();
    let fields = [
        text("grant_type", "authorization_code"),
        text("code", "4/code"),
        text("redirect_uri", "https://example.com/"),
    ];
    assert_eq!(
        (exchange.path.as_str(), exchange.parameters()),
        ("/token", fields.to_vec())
    );
    let fields = [text("token", "r"), text("token_type_hint", "refresh_token")];
    assert_eq!(
        (revocation.path.as_str(), revocation.parameters()),
        ("/revoke", fields.to_vec())
    );
    for request in [exchange, revocation] {
        assert!(
            request
                .header("authorization")
                .unwrap()
                .starts_with("Basic ")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_access_token_never_replaces_a_stored_refresh_token() {
    let app = with_secret().await;
    let pool = &app.database.pool;
    let provider = &app.provider;
    for (code, tokens, stored) in [
        ("first", json!({ "access_token": "a1" }), true),
        (
            "second",
            json!({ "access_token": "a2", "refresh_token": "r" }),
            false,
        ),
        ("third", json!({ "access_token": "a3" }), false),
    ] {
        sign_in_with(&app, &ada(), code, tokens).await;
        until(pool, &["kept"]).await;
        let access: bool = value!(pool, "SELECT access FROM provider_tokens");
        assert_eq!(access, stored, "{code}");
        provider.behave(Behaviour::Usual);
    }
    let asked = provider.requests().len();
    provider.behave(Behaviour::status(200));
    sqlx::query("DELETE FROM users")
        .execute(pool)
        .await
        .unwrap();
    until(pool, &[]).await;
    let revocation = provider.requests().remove(asked);
    assert_eq!(
        revocation.parameters(),
        [text("token", "r"), text("token_type_hint", "refresh_token")]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_not_revoked_with_the_credentials_of_another_client() {
    let mut app = with_secret().await;
    sign_in_with(&app, &ada(), "code", json!({ "refresh_token": "r" })).await;
    until(&app.database.pool, &["kept"]).await;
    app.stop().await;
    let pool = app.database.pool.clone();
    let next = App::start_beside(&app.database, |figment| {
        revoking(figment)
            .merge(("idp.client_id", "another-client"))
            .merge(("idp.additional_client_ids", [CLIENT_ID]))
    })
    .await;
    sqlx::query("DELETE FROM users")
        .execute(&pool)
        .await
        .unwrap();
    let failure = failure(&pool).await;
    assert!(
        failure.contains(&format!("the client {CLIENT_ID}")) && failure.contains("IDP_CLIENT_ID"),
        "{failure}"
    );
    assert_eq!(next.provider.calls(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_native_apps_server_code_is_exchanged_with_the_servers_client() {
    let app = App::start_with(|figment| {
        revoking(figment).merge(("idp.additional_client_ids", ["android.example"]))
    })
    .await;
    let native = with(
        ada(),
        &json!({ "aud": CLIENT_ID, "azp": "android.example" }),
    );
    sign_in_with(&app, &native, "code", json!({ "refresh_token": "r" })).await;
    until(&app.database.pool, &["kept"]).await;
    let owner: String = value!(&app.database.pool, "SELECT client_id FROM provider_tokens");
    assert_eq!(owner, CLIENT_ID);
}
