//! The view of operators and staff on tokens that wait to be revoked.

use vestibule::domain::staff::Role;
use vestibule::provider_tokens::store;
use vestibule::prune::prune;

use super::{APP, WEB, apple, failure, posted, settings, sign_in, states, until, with_apple};
use crate::support::app::{App, LIMITS};
use crate::support::cluster::Database;
use crate::support::people::ADMIN;
use crate::support::process::{eventually, run};
use crate::support::provider::apple::{KEY_ID, TEAM_ID, other_key, private_key};
use crate::support::provider::{Behaviour, Provider};
use crate::support::staff_app::StaffApp;

const DAY: i32 = 24 * 60 * 60;

#[tokio::test(flavor = "multi_thread")]
async fn a_token_unrevoked_for_a_month_is_parked_until_restart() {
    let mut app = with_apple().await;
    let pool = app.database.pool.clone();
    let ada = sign_in(&app, "ada").await;
    until(&pool, &["kept"]).await;
    app.provider.behave(Behaviour::status(404));
    assert_eq!(
        app.delete(&ada.access_token(), "/api/v1/me").await.status,
        204
    );
    super::pass(&pool, 31 * DAY).await;
    let parked = "SELECT count(*) FROM provider_tokens WHERE parked_at IS NOT NULL AND failure LIKE '%revocation_url%'";
    app.database.until(parked, 1).await;
    let known = store::summaries(&app.database.service, &[]).await.unwrap();
    for queues in [
        store::summaries(&app.database.service, &known)
            .await
            .unwrap(),
        known,
    ] {
        assert_eq!((queues[0].waiting, queues[0].parked), (0, 1), "{queues:?}");
    }
    let metrics = app
        .send(reqwest::Method::GET, "/metrics", None, "")
        .await
        .text;
    let line = "vestibule_provider_revocations_total{provider=\"apple\",outcome=\"parked\"} 1";
    assert!(metrics.contains(line), "{metrics}");
    app.stop().await;
    app.provider.behave(Behaviour::Usual);
    let apple = settings(&app.provider.url());
    let _next = App::start_beside(&app.database, |figment| {
        figment.merge(("providers.apple", apple))
    })
    .await;
    until(&pool, &[]).await;
    assert!(app.provider.apple_tokens()[0].revoked);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_takes_small_steps_to_give_parked_tokens_another_attempt() {
    let database = Database::create().await;
    let parked = "INSERT INTO provider_tokens
                         (id, provider, subject, client_id, state, sealed, due_at, next_attempt_at, parked_at)
                  SELECT gen_random_uuid(), 'apple', n, 'app', 'due', '', now(), now(), now()
                  FROM generate_series(1, 5001) AS n";
    sqlx::query(parked).execute(&database.pool).await.unwrap();
    database.limit_changes("provider_tokens", 5000).await;
    let app = App::start_on(database, apple).await;
    let parked = "SELECT count(*) FROM provider_tokens WHERE parked_at IS NOT NULL";
    assert_eq!(app.database.count(parked).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn due_tokens_of_a_removed_provider_are_shown_to_operators() {
    let mut app = with_apple().await;
    sign_in(&app, "ada").await;
    until(&app.database.pool, &["kept"]).await;
    app.stop().await;
    let database = std::mem::replace(&mut app.database, Database::gone());
    let staff_app = StaffApp::open_on(database, |figment| figment, |rocket| rocket).await;
    let pool = &staff_app.app.database.pool;
    staff_app.appoint(ADMIN, Role::Admin).await;
    sqlx::query("DELETE FROM users")
        .execute(pool)
        .await
        .unwrap();
    super::pass(pool, 2 * DAY).await;
    eventually("it is counted", async || {
        let metrics = staff_app
            .app
            .send(reqwest::Method::GET, "/metrics", None, "")
            .await
            .text;
        metrics
            .contains("vestibule_provider_revocations_waiting{provider=\"apple\"} 1")
            .then_some(())
    })
    .await;
    let page = staff_app.signed_in(ADMIN).await.get("/admin").await.text;
    assert!(
        page.contains("1 token of removed identities is not revoked at apple</strong>"),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_deletes_unrevoked_tokens_after_two_months_and_stale_codes() {
    let database = Database::create().await;
    let pool = &database.pool;
    for (state, days, stays) in [
        ("kept", 400, true),
        ("due", 59, true),
        ("due", 61, false),
        ("code", 0, true),
        ("code", 2, false),
    ] {
        run!(pool, "INSERT INTO provider_tokens (id, provider, subject, client_id, state, sealed, created_at, due_at, failure)
             VALUES (gen_random_uuid(), 'apple', 'ada', 'app', $1, '', now() - $2 * interval '1 day',
                     CASE $1 WHEN 'due' THEN now() - $2 * interval '1 day' END, $3)", state, days, if stays { "stays" } else { "goes" });
    }
    assert_eq!(
        prune(&database.service, LIMITS)
            .await
            .unwrap()
            .provider_tokens,
        2
    );
    assert_eq!(states(pool).await.len(), 3);
    assert_eq!(
        database
            .count("SELECT count(*) FROM provider_tokens WHERE failure = 'stays'")
            .await,
        3
    );
}

/// Returns the lines of `vestibule check` about Apple and the tokens, with these settings changed.
async fn check(app: &App, secret_key: &str, changes: &[(&str, &str)]) -> Vec<String> {
    let url = app.provider.url();
    let keys = format!("{url}/auth/keys");
    let token = format!("{url}/auth/token");
    let settings = [
        ("ROCKET_PROFILE", "release"),
        ("DATABASE_URL", app.database.url.as_str()),
        ("ROCKET_SECRET_KEY", secret_key),
        ("ROCKET_PUBLIC_URL", "http://127.0.0.1:8000"),
        ("IDP_NAME", "apple"),
        ("IDP_PRESET", "apple"),
        ("IDP_CLIENT_ID", APP),
        ("IDP_ADDITIONAL_CLIENT_IDS", WEB),
        ("IDP_JWKS_URL", &keys),
        ("IDP_TOKEN_URL", &token),
    ];
    let output = run(&[settings.as_slice(), changes].concat(), &["check"]).await;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert!(
        !text.contains("PRIVATE KEY") && !text.contains("eyJ"),
        "{text}"
    );
    let about = |line: &&str| line.contains("revocation") || line.contains("provider tokens");
    text.lines().filter(about).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn check_tests_the_apple_key_per_client_and_stored_tokens() {
    const SECRET: &str = "a secret key that only the tests use";
    let mut app = with_apple().await;
    let ids = [("IDP_TEAM_ID", TEAM_ID), ("IDP_KEY_ID", KEY_ID)];
    let with = |key| [ids.as_slice(), &[("IDP_PRIVATE_KEY", key)]].concat();
    let lines = check(&app, SECRET, &with(private_key())).await;
    let begins = "ok     provider apple, revocation (127.0.0.1): rejects an invalid code of";
    for (line, client) in lines.iter().zip([APP, WEB]) {
        assert!(
            line.starts_with(&format!("{begins} {client} as expected (invalid_grant)")),
            "{line}"
        );
    }
    assert_eq!(lines.len(), 2, "{lines:?}");
    let off = [with(private_key()), vec![("IDP_ENABLED", "false")]].concat();
    assert_eq!(
        check(&app, SECRET, &off).await.len(),
        2,
        "one that is switched off still revokes"
    );

    let ada = sign_in(&app, "ada").await;
    until(&app.database.pool, &["kept"]).await;
    let other = other_key();
    let lines = check(&app, SECRET, &with(&other)).await;
    assert_eq!(
        lines[0],
        "ok     provider tokens: 1 can be decrypted with `secret_key`"
    );
    for words in [
        "wrong  ",
        "rejects the client credentials of com.example.app (invalid_client)",
        "IDP_KEY_ID",
        APP,
    ] {
        assert!(lines[1].contains(words), "{lines:?}");
    }
    let lines = check(&app, SECRET, &[]).await;
    for words in [
        "warn   provider apple, revocation: tokens cannot be revoked",
        "IDP_PRIVATE_KEY_FILE",
    ] {
        assert!(lines[1].contains(words), "{lines:?}");
    }
    let lines = check(
        &app,
        "another key that nobody has ever seen",
        &with(private_key()),
    )
    .await;
    assert!(
        lines[0].starts_with("warn   provider tokens: 1 are encrypted with another `secret_key`; "),
        "{lines:?}"
    );

    app.provider.behave(Behaviour::status(503));
    assert_eq!(
        app.delete(&ada.access_token(), "/api/v1/me").await.status,
        204
    );
    failure(&app.database.pool).await;
    app.stop().await;
    super::pass(&app.database.pool, 2 * DAY).await;
    app.provider.behave(Behaviour::Usual);
    let lines = check(&app, SECRET, &with(private_key())).await;
    let expected = "warn   provider tokens: 1 of removed identities are not revoked at apple for more than a day: ";
    assert!(
        lines[0].starts_with(expected) && lines[0].contains("status_5xx"),
        "{lines:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_see_stored_tokens_and_overdue_revocations() {
    let provider = Provider::start().await;
    let apple = settings(&provider.url());
    let staff_app =
        StaffApp::open_altered(|figment| figment.merge(("providers.apple", apple))).await;
    staff_app.appoint(ADMIN, Role::Admin).await;
    let pool = &staff_app.app.database.pool;
    let answer = staff_app.app.post("apple", &posted(&provider, "ada")).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    until(pool, &["kept"]).await;
    let mut admin = staff_app.signed_in(ADMIN).await;
    let page = admin
        .get(&format!("/admin/users/{}", answer.user_id()))
        .await
        .text;
    assert!(
        page.contains("A token of the provider is stored, to be revoked when the identity is gone"),
        "{page}"
    );

    provider.behave(Behaviour::status(503));
    let asked = provider.calls();
    assert_eq!(
        staff_app
            .app
            .delete(&answer.access_token(), "/api/v1/me")
            .await
            .status,
        204
    );
    provider.until(|counts| counts.calls > asked).await;
    assert!(!admin.get("/admin").await.text.contains("not revoked at"));
    super::pass(pool, 2 * DAY).await;
    let page = eventually("the overview says so", async || {
        let page = admin.get("/admin").await.text;
        page.contains("1 token of removed identities is not revoked at apple</strong>")
            .then_some(page)
    })
    .await;
    assert!(page.contains("status_5xx"), "{page}");
    let metrics = staff_app
        .app
        .send(reqwest::Method::GET, "/metrics", None, "")
        .await
        .text;
    for line in [
        "vestibule_provider_revocations_waiting{provider=\"apple\"} 1",
        "vestibule_provider_revocations_parked{provider=\"apple\"} 0",
        "vestibule_provider_revocations_total{provider=\"apple\",outcome=\"revoked\"} 0",
        "vestibule_provider_code_exchanges_total{provider=\"apple\",outcome=\"stored\"} 1",
        "vestibule_provider_code_exchanges_total{provider=\"apple\",outcome=\"lost\"} 0",
    ] {
        assert!(metrics.contains(line), "no {line}: {metrics}");
    }
}
