//! Removing an identity revokes its tokens; moving it does not.

use std::time::Duration;

use figment::Figment;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;
use vestibule::domain::api_key::KeyRole;

use super::{
    APP, apple, failure, posted, provider_url, revoked, settings, sign_in, states, until,
    with_apple, with_keys_of_apple,
};
use crate::support::app::{Answer, App};
use crate::support::cluster::Database;
use crate::support::process::{Process, eventually, free_port};
use crate::support::provider::apple::{KEY_ID, TEAM_ID, id_token, private_key};
use crate::support::provider::{Behaviour, Provider};
use crate::support::token::claims;

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_users_token_is_revoked_at_apple_and_forgotten() {
    let app = with_apple().await;
    let pool = &app.database.pool;
    let ada = sign_in(&app, "ada").await;
    sign_in(&app, "grace").await;
    until(pool, &["kept", "kept"]).await;
    assert_eq!(
        app.provider.apple_errors(),
        [] as [&str; 0],
        "the client secret is sound"
    );
    let stored: Vec<Vec<u8>> = values!(pool, "SELECT sealed FROM provider_tokens");
    for issued in app.provider.apple_tokens() {
        let plain = issued.token.as_bytes();
        assert!(
            !stored
                .iter()
                .any(|sealed| sealed.windows(plain.len()).any(|part| part == plain))
        );
    }
    assert_eq!(
        app.delete(&ada.access_token(), "/api/v1/me").await.status,
        204
    );
    until(pool, &["kept"]).await;
    assert_eq!(
        revoked(&app.provider),
        (vec!["ada".to_owned()], vec!["grace".to_owned()])
    );
}

/// The program with Apple, as a process that can be killed.
struct Program {
    database: Database,
    provider: Provider,
    port: u16,
}

impl Program {
    async fn new() -> Self {
        Self {
            database: Database::create().await,
            provider: Provider::start().await,
            port: free_port(),
        }
    }

    async fn start(&self, settings: &[(&str, &str)]) -> Process {
        let url = self.provider.url();
        let key = private_key().replace('\n', "\\n");
        let providers = format!(
            "{{apple={{preset=\"apple\",client_id=\"{APP}\",jwks_url=\"{url}/auth/keys\",token_url=\"{url}/auth/token\",\
             revocation_url=\"{url}/auth/revoke\",team_id=\"{TEAM_ID}\",key_id=\"{KEY_ID}\",private_key=\"{key}\"}}}}"
        );
        let settings = [settings, &[("ROCKET_PROVIDERS", &providers)]].concat();
        let tokeninfo = self.provider.tokeninfo_url();
        let process = Process::start(self.port, &self.database.url, &tokeninfo, &settings);
        process.answers("/readyz", 200).await;
        process
    }

    async fn sign_in(&self, process: &Process, subject: &str) -> Answer {
        let answer = process
            .sign_in("apple", &posted(&self.provider, subject))
            .await;
        assert_eq!(answer.status, 201, "{} {}", answer.text, process.log());
        answer
    }

    /// Deletes the user, and waits until the service asks the provider to revoke the token.
    async fn delete_and_ask(&self, process: &Process, user: &Answer) {
        let asked = self.provider.calls();
        let request = process.client.delete(format!("{}/api/v1/me", process.url));
        let deleted = request
            .bearer_auth(user.access_token())
            .send()
            .await
            .unwrap();
        assert_eq!(
            deleted.status(),
            204,
            "the deletion does not wait for Apple"
        );
        self.provider.until(|counts| counts.calls > asked).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn apple_tokens_are_revoked_despite_an_outage_and_two_kills() {
    let program = Program::new().await;
    let Program {
        database, provider, ..
    } = &program;
    let pool = &database.pool;
    let mut service = program.start(&[]).await;
    let signed_in = program.sign_in(&service, "ada").await;
    until(pool, &["kept"]).await;

    provider.behave(Behaviour::status(503));
    program.delete_and_ask(&service, &signed_in).await;
    assert_eq!(database.rows().await, [0; 3]);
    // An hour passes, and the process is killed twice: once during a call to Apple, and once
    // between calls.
    for minutes in [20, 40] {
        // Dropping a process kills it by SIGKILL.
        drop(service);
        service = program.start(&[]).await;
        let asked = provider.calls();
        super::pass(pool, minutes * 60).await;
        provider.until(|counts| counts.calls > asked).await;
        eventually("the failure is recorded", async || {
            service
                .log()
                .contains("a token was not revoked")
                .then_some(())
        })
        .await;
        assert_eq!(states(pool).await, ["due"]);
    }
    assert_eq!(revoked(provider).0, [] as [&str; 0]);
    provider.behave(Behaviour::Usual);
    super::pass(pool, 3600).await;
    until(pool, &[]).await;
    assert_eq!(revoked(provider), (vec!["ada".to_owned()], Vec::new()));
    assert_eq!(
        provider.apple_errors(),
        [] as [&str; 0],
        "{}",
        service.log()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_stops_during_an_exchange_waits_for_its_token() {
    let mut app = with_keys_of_apple().await;
    app.provider
        .behave(Behaviour::Usual.delayed(Duration::from_secs(2)));
    let asked = app.provider.calls();
    sign_in(&app, "ada").await;
    app.provider.until(|counts| counts.calls > asked).await;
    app.stop().await;
    assert_eq!(states(&app.database.pool).await, ["kept", "kept"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_unstored_at_shutdown_is_logged_as_lost() {
    let program = Program::new().await;
    let Program {
        database, provider, ..
    } = &program;
    let mut service = program.start(&[("ROCKET_DRAIN", "0")]).await;
    // The keys are fetched, so that the next call is the exchange.
    program.sign_in(&service, "grace").await;
    until(&database.pool, &["kept"]).await;
    let gate = provider.hold();
    program.sign_in(&service, "ada").await;
    gate.arrived(1).await;
    let mut lock = database.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE provider_tokens")
        .execute(&mut *lock)
        .await
        .unwrap();
    gate.release();
    eventually("the token is issued", async || {
        (provider.apple_tokens().len() == 2).then_some(())
    })
    .await;
    service.terminate();
    assert!(service.ended().await.success());
    let lost = service
        .log()
        .matches("a provider's token was lost, and cannot be revoked later")
        .count();
    assert_eq!(lost, 1, "{}", service.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_user_during_the_exchange_revokes_the_new_token() {
    let app = with_keys_of_apple().await;
    let gate = app.provider.hold();
    let ada = sign_in(&app, "ada").await;
    gate.arrived(1).await;
    assert_eq!(
        app.delete(&ada.access_token(), "/api/v1/me").await.status,
        204
    );
    assert_eq!(states(&app.database.pool).await, ["kept", "code"]);
    gate.release();
    until(&app.database.pool, &["kept"]).await;
    assert_eq!(revoked(&app.provider).0, ["ada"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_still_queued_at_the_deletion_is_exchanged_and_revoked() {
    let app = with_apple().await;
    let ada = sign_in(&app, "ada").await;
    let second = sign_in(&app, "ada").await;
    assert_eq!(second.outcome(), "signed_in");
    // Both codes may still be queued.
    assert_eq!(
        app.delete(&ada.access_token(), "/api/v1/me").await.status,
        204
    );
    until(&app.database.pool, &[]).await;
    let tokens = app.provider.apple_tokens();
    assert!(
        tokens.last().unwrap().revoked,
        "Apple revokes the whole authorization with it: {tokens:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_a_stored_token_can_delete_with_a_code() {
    let app = with_apple().await;
    for (subject, hours) in [("ada", 1), ("grace", 0)] {
        let token = id_token(subject, &format!("{subject}@example.com"), APP);
        let signed_in = app.post("apple", &json!({ "id_token": token })).await;
        let sql = "UPDATE sessions SET created_at = created_at - $1 * interval '1 hour'";
        sqlx::query(sql)
            .bind(hours)
            .execute(&app.database.pool)
            .await
            .unwrap();
        let mut proof = posted(&app.provider, subject);
        proof["provider"] = "apple".into();
        let body = json!({ "reauthentication": proof });
        let deleted = app
            .as_user(
                &signed_in.access_token(),
                Method::DELETE,
                "/api/v1/me",
                Some(&body),
            )
            .await;
        assert_eq!(deleted.status, 204, "{}", deleted.text);
        eventually("the token is revoked", async || {
            revoked(&app.provider)
                .0
                .contains(&subject.to_owned())
                .then_some(())
        })
        .await;
        until(&app.database.pool, &[]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_and_a_move_revoke_nothing_and_unlinking_does() {
    let app = with_apple().await;
    let pool = &app.database.pool;
    let key = app.api_key("shop-backend", KeyRole::Admin).await;
    let make = async |user: &str, change: &str, mut body: Value| {
        body["reason"] = "ticket 4711".into();
        let path = format!("/api/v1/admin/users/{user}/{change}");
        let answer = app.as_user(&key, Method::POST, &path, Some(&body)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    };
    let ada = sign_in(&app, "ada").await;
    let other = app.sign_in(&claims("other", "other@example.com")).await;
    let third = app.sign_in(&claims("third", "third@example.com")).await;
    until(pool, &["kept"]).await;
    make(&ada.user_id(), "merge", json!({ "into": other.user_id() })).await;
    let id = async || -> String {
        value!(
            pool,
            "SELECT id::text FROM identities WHERE provider = 'apple'"
        )
    };
    assert_eq!(states(pool).await, ["kept"]);
    make(
        &other.user_id(),
        "move",
        json!({ "identity": id().await, "to": third.user_id() }),
    )
    .await;
    assert_eq!(states(pool).await, ["kept"]);
    make(
        &third.user_id(),
        "unlink",
        json!({ "identity": id().await }),
    )
    .await;
    until(pool, &[]).await;
    assert_eq!(revoked(&app.provider).0, ["ada"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn unlinking_an_identity_revokes_its_token() {
    let app = with_apple().await;
    let user = app
        .sign_in(&claims("subject", "ada@example.com"))
        .await
        .access_token();
    let body = posted(&app.provider, "ada");
    let linked = app
        .as_user(
            &user,
            Method::POST,
            "/api/v1/me/identities/apple",
            Some(&body),
        )
        .await;
    assert_eq!(linked.status, 201, "{}", linked.text);
    until(&app.database.pool, &["kept"]).await;
    let path = format!(
        "/api/v1/me/identities/{}",
        linked.json()["id"].as_str().unwrap()
    );
    assert_eq!(app.delete(&user, &path).await.status, 204);
    until(&app.database.pool, &[]).await;
    assert_eq!(revoked(&app.provider).0, ["ada"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_linked_again_before_the_revocation_keeps_its_token() {
    let app = with_apple().await;
    let pool = &app.database.pool;
    let ada = sign_in(&app, "ada").await;
    until(pool, &["kept"]).await;
    app.provider.behave(Behaviour::status(503));
    let asked = app.provider.calls();
    assert_eq!(
        app.delete(&ada.access_token(), "/api/v1/me").await.status,
        204
    );
    app.provider.until(|counts| counts.calls > asked).await;
    app.provider.behave(Behaviour::Usual);
    // This sign-in has no code: the only token is the earlier one.
    let again = json!({ "id_token": id_token("ada", "ada@example.com", APP) });
    assert_eq!(app.post("apple", &again).await.outcome(), "created");
    super::pass(pool, 3600).await;
    until(pool, &["kept"]).await;
    assert_eq!(revoked(&app.provider).0, [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_token_of_a_client_replaces_the_one_before() {
    let app = with_apple().await;
    let pool = &app.database.pool;
    for _ in 0..3 {
        sign_in(&app, "ada").await;
        until(pool, &["kept"]).await;
    }
    let id: Uuid = value!(pool, "SELECT id FROM provider_tokens");
    assert_eq!(id.get_version_num(), 8);
    assert_eq!(app.provider.apple_tokens().len(), 3);
    let web = super::WEB;
    let body = json!({
        "id_token": id_token("ada", "ada@example.com", web), "redirect_uri": "https://example.com/back",
        "authorization_code": app.provider.apple_code("ada", web, Some("https://example.com/back")),
    });
    let answer = app.post("apple", &body).await;
    assert_eq!(answer.outcome(), "signed_in", "{}", answer.text);
    until(pool, &["kept", "kept"]).await;
    assert_eq!(
        app.delete(&answer.access_token(), "/api/v1/me")
            .await
            .status,
        204
    );
    until(pool, &[]).await;
    let revoked: Vec<_> = app
        .provider
        .apple_tokens()
        .into_iter()
        .map(|token| token.revoked)
        .collect();
    assert_eq!(
        revoked,
        [false, false, true, true],
        "the newest of each client"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_key_that_is_changed_loses_no_token() {
    const OLD: &str = "the old key, of more than 32 characters";
    const NEW: &str = "the new key, of more than 32 characters";
    let database = Database::create().await;
    let provider = Provider::start().await;
    let pool = &database.pool;
    let start = async |keys: &[&str]| {
        let apple = settings(&provider.url());
        let keys = keys.to_vec();
        let merged = |figment: Figment| {
            figment
                .merge(("providers.apple", apple))
                .merge(("secret_key", keys))
        };
        App::start_beside(&database, merged).await
    };
    let mut app = start(&[OLD]).await;
    for subject in ["ada", "grace"] {
        let answer = app.post("apple", &posted(&provider, subject)).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
    }
    until(pool, &["kept", "kept"]).await;
    let sealed = async || -> Vec<Vec<u8>> {
        values!(pool, "SELECT sealed FROM provider_tokens ORDER BY id")
    };
    let old = sealed().await;
    app.stop().await;
    let mut app = start(&[NEW, OLD]).await;
    eventually("all are sealed again", async || {
        sealed()
            .await
            .iter()
            .zip(&old)
            .all(|(new, old)| new != old)
            .then_some(())
    })
    .await;
    app.stop().await;
    let mut app = start(&[NEW]).await;
    sqlx::query("DELETE FROM users WHERE email LIKE 'ada%'")
        .execute(pool)
        .await
        .unwrap();
    until(pool, &["kept"]).await;
    assert_eq!(revoked(&provider).0, ["ada"]);
    app.stop().await;

    // The secret key is lost, then found again. The signing keys are replaced each time.
    let forget = async || {
        sqlx::query("DELETE FROM signing_keys")
            .execute(pool)
            .await
            .unwrap()
    };
    forget().await;
    let mut app = start(&["a key that nobody has ever seen before"]).await;
    sqlx::query("DELETE FROM users")
        .execute(pool)
        .await
        .unwrap();
    let words = failure(pool).await;
    assert!(
        words.contains("cannot be decrypted") && words.contains("secret_key"),
        "{words}"
    );
    app.stop().await;
    forget().await;
    let _app = start(&[NEW]).await;
    super::pass(pool, 3600).await;
    until(pool, &[]).await;
    assert_eq!(revoked(&provider).0, ["ada", "grace"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_switched_off_still_revokes() {
    let app = with_apple().await;
    let pool = app.database.pool.clone();
    sign_in(&app, "ada").await;
    until(&pool, &["kept"]).await;
    let issued = app.provider.url();
    let off = App::start_beside(&app.database, |figment| {
        assert_ne!(
            provider_url(&figment),
            issued,
            "it has a provider of its own"
        );
        let mut settings = settings(&issued);
        settings["enabled"] = false.into();
        apple(figment).merge(("providers.apple", settings))
    })
    .await;
    let mut app_that_stops = app;
    app_that_stops.stop().await;
    sqlx::query("DELETE FROM users")
        .execute(&pool)
        .await
        .unwrap();
    until(&pool, &[]).await;
    assert_eq!(revoked(&app_that_stops.provider).0, ["ada"]);
    drop(off);
}
