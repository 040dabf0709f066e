//! API keys and the requests that they admit.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use uuid::Uuid;
use vestibule::admin::staff::api_keys::{add, parse, revoke};
use vestibule::domain::actor::Author;
use vestibule::domain::api_key::KeyRole;

use crate::support::app::{Answer, App};
use crate::support::cluster::Database;
use crate::support::problem::assert_problem;
use crate::support::process::{Process, eventually};
use crate::support::provider::Provider;
use crate::support::race::{assert_either_came_first, at_once, rounds};
use crate::support::raw::Raw;
use crate::support::token::{at, claims};

/// Returns a path that every key with the role support may post to; its user does not exist.
fn path() -> String {
    format!("/api/v1/admin/users/{}/end-sessions", Uuid::nil())
}

async fn ask(app: &App, headers: &[(&str, &str)]) -> Answer {
    ask_at(app, &path(), headers).await
}

async fn ask_at(app: &App, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = reqwest::Client::new().post(format!("{}{path}", app.url));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request
        .header("Content-Type", "application/json")
        .body(BODY);
    App::answer(request.send().await.unwrap()).await
}

fn bearer(key: &str) -> String {
    format!("Bearer {key}")
}

/// Asserts that the key was accepted: only the user is unknown.
#[track_caller]
fn assert_accepted(answer: &Answer) {
    assert_problem(answer, 404, "user_not_found");
}

/// Asserts that the key was refused with this challenge.
#[track_caller]
fn assert_challenged(answer: &Answer, challenge: &str) {
    assert_problem(answer, 401, "invalid_api_key");
    assert_eq!(answer.header("WWW-Authenticate"), Some(challenge));
}

const BODY: &str = r#"{"reason":"a test"}"#;
const MISSING: &str = r#"Bearer realm="vestibule""#;
const INVALID: &str = r#"Bearer realm="vestibule", error="invalid_token""#;

#[tokio::test(flavor = "multi_thread")]
async fn only_one_valid_key_in_one_header_opens_the_admin_api() {
    let app = App::start().await;
    let key = app.api_key("backend", KeyRole::Support).await;
    assert_accepted(&ask(&app, &[("Authorization", &bearer(&key))]).await);
    assert_accepted(&ask(&app, &[("Authorization", &format!("bearer  {key}"))]).await);

    assert_challenged(&ask(&app, &[]).await, MISSING);
    for header in [
        "",
        "Bearer",
        &key,
        &format!("Basic {key}"),
        &format!("Bearer{key}"),
    ] {
        assert_challenged(
            &ask(&app, &[("Authorization", header)]).await,
            if header == "Bearer" { INVALID } else { MISSING },
        );
    }
    let user = app
        .sign_in(&claims("ada", "ada@example.com"))
        .await
        .access_token();
    let random = &key[4..];
    for wrong in [
        random,
        &key[..46],
        &format!("{key}A"),
        &format!("vst_{}", random.to_ascii_lowercase()),
        &format!("VST_{random}"),
        &format!("{key},{key}"),
        &format!("vst_{}", "A".repeat(43)),
        &format!("vst_{}", "+".repeat(43)),
        &"v".repeat(5_000),
        &user,
    ] {
        assert_challenged(
            &ask(&app, &[("Authorization", &bearer(wrong))]).await,
            INVALID,
        );
    }
    let repeated = ask(
        &app,
        &[
            ("Authorization", &bearer(&key)),
            ("Authorization", &bearer(&key)),
        ],
    )
    .await;
    assert_problem(&repeated, 400, "invalid_request");

    for query in ["access_token", "api_key", "key", "token"] {
        let path = format!("{}?{query}={key}", path());
        assert_challenged(&ask_at(&app, &path, &[]).await, MISSING);
    }
    for header in ["X-Api-Key", "Cookie", "Apikey"] {
        assert_challenged(
            &ask(&app, &[(header, &format!("__Host-vestibule-staff={key}"))]).await,
            MISSING,
        );
    }
    // Conversely, an API key gives access to nothing else.
    assert_problem(
        &app.get(&key, "/api/v1/me").await,
        401,
        "invalid_access_token",
    );
    assert_eq!(app.get(&key, "/admin/users").await.status, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_or_expired_key_is_refused_at_once() {
    let app = App::start().await;
    let pool = app.database.pool.clone();
    let one = app.api_key("one", KeyRole::Support).await;
    let other = app.api_key("other", KeyRole::Support).await;
    for key in [&one, &other] {
        assert_accepted(&ask(&app, &[("Authorization", &bearer(key))]).await);
    }
    revoke(
        &app.database.service,
        &"one".parse().unwrap(),
        Author::COMMAND_LINE,
    )
    .await
    .unwrap();
    assert_challenged(
        &ask(&app, &[("Authorization", &bearer(&one))]).await,
        INVALID,
    );
    assert_accepted(&ask(&app, &[("Authorization", &bearer(&other))]).await);
    sqlx::query("UPDATE api_keys SET expires_at = now()")
        .execute(&pool)
        .await
        .unwrap();
    assert_challenged(
        &ask(&app, &[("Authorization", &bearer(&other))]).await,
        INVALID,
    );
    // The name of a revoked key is free, and a new key with it is different.
    let successor = app.api_key("one", KeyRole::Support).await;
    assert_ne!(one, successor);
    assert_challenged(
        &ask(&app, &[("Authorization", &bearer(&one))]).await,
        INVALID,
    );
    assert_accepted(&ask(&app, &[("Authorization", &bearer(&successor))]).await);
}

/// Changes that can happen to a key while the body of its request arrives.
const ENDS: [&str; 4] = [
    "DELETE FROM api_keys",
    // The name passes to another key.
    "UPDATE api_keys SET id = gen_random_uuid(), hash = sha256('another')",
    "UPDATE api_keys SET expires_at = now()",
    "UPDATE api_keys SET role = 'reader'",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_key_revoked_before_the_last_byte_changes_nothing() {
    let app = App::start().await;
    let pool = &app.database.pool;
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    let linked = at("second", "ada", "lovelace@example.com");
    assert_eq!(
        app.link(&ada.access_token(), "second", &linked)
            .await
            .status,
        201
    );
    let grace = app.sign_in(&claims("grace", "grace@example.com")).await;
    run!(
        pool,
        "UPDATE identities SET held_at = now() WHERE provider = 'second'"
    );
    run!(
        pool,
        "INSERT INTO webhooks (name, events) VALUES ('shop', '{}')"
    );
    let session = ada.payload()["sid"].clone();
    let identity = ada.identity_id();
    let ada = ada.user_id();
    let second: String = app
        .database
        .value("SELECT id::text FROM identities WHERE held_at IS NOT NULL")
        .await;
    let changes = [
        ("POST", "/users", json!({ "email": "new@example.com" })),
        (
            "POST",
            "/users/<id>/end-sessions",
            json!({ "reason": "asked" }),
        ),
        (
            "POST",
            "/users/<id>/end-session",
            json!({ "reason": "asked", "session": session }),
        ),
        ("POST", "/users/<id>/disable", json!({ "reason": "asked" })),
        ("POST", "/users/<id>/enable", json!({ "reason": "asked" })),
        (
            "POST",
            "/users/<id>/unlink",
            json!({ "reason": "asked", "identity": identity }),
        ),
        (
            "POST",
            "/users/<id>/release",
            json!({ "reason": "asked", "identity": second }),
        ),
        (
            "POST",
            "/users/<id>/move",
            json!({ "reason": "asked", "identity": identity, "to": grace.user_id() }),
        ),
        (
            "POST",
            "/users/<id>/merge",
            json!({ "reason": "asked", "into": grace.user_id() }),
        ),
        ("POST", "/users/<id>/delete", json!({ "reason": "asked" })),
        (
            "PUT",
            "/users/<id>/claims",
            json!({ "reason": "asked", "claims": { "plan": "pro" } }),
        ),
        (
            "POST",
            "/webhooks/<name>/replay",
            json!({ "reason": "asked" }),
        ),
    ];
    let writes = app.routes.iter().filter(|(method, path)| {
        // The test of a webhook has no body and changes nothing.
        path.starts_with("/api/v1/admin") && method.as_str() != "GET" && !path.ends_with("/test")
    });
    let writes: BTreeSet<_> = writes
        .map(|(method, path)| (method.as_str(), path.as_str()))
        .collect();
    let paths = changes
        .each_ref()
        .map(|(method, path, _)| (*method, format!("/api/v1/admin{path}")));
    assert_eq!(
        writes,
        paths
            .iter()
            .map(|(method, path)| (*method, path.as_str()))
            .collect()
    );

    for (method, path, body) in &changes {
        let path = format!("/api/v1/admin{path}")
            .replace("<id>", &ada)
            .replace("<name>", "shop");
        for end in ENDS {
            run!(pool, "DELETE FROM api_keys");
            let key = app.api_key("backend", KeyRole::Admin).await;
            let before = app.database.everything(&[]).await;
            let body = body.to_string();
            let head = format!(
                "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let mut late = Raw::connect(&app).await;
            late.send(head + &body[..body.len() - 1]).await;
            eventually("the guard has admitted the key", async || {
                let used = "SELECT count(*) FROM api_keys WHERE last_used_at IS NOT NULL";
                (app.database.count(used).await == 1).then_some(())
            })
            .await;
            run!(pool, end);
            late.send(&body[body.len() - 1..]).await;
            let answer = late.answer().await.unwrap();
            assert_eq!(
                app.database.everything(&[]).await,
                before,
                "{end}, then {method} {path}"
            );
            assert_challenged(&answer, INVALID);
        }
    }
    // With a valid key, each of the changes is made.
    let key = app.api_key("whole", KeyRole::Admin).await;
    let [.., merge, delete, claims, replay] = &changes;
    for (method, path, body) in [claims, replay, merge, delete] {
        let user = if path.ends_with("/delete") {
            grace.user_id()
        } else {
            ada.clone()
        };
        let path = format!("/api/v1/admin{path}")
            .replace("<id>", &user)
            .replace("<name>", "shop");
        let made = app
            .as_user(&key, method.parse::<Method>().unwrap(), &path, Some(body))
            .await;
        assert_eq!(made.status, 200, "{path}: {}", made.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_revocation_and_a_change_one_comes_first() {
    let app = App::start().await;
    let pool = &app.database.pool;
    let ada = app
        .sign_in(&claims("ada", "ada@example.com"))
        .await
        .user_id();
    let path = format!("/api/v1/admin/users/{ada}/claims");
    let mut changed_first = 0;
    for round in 0..rounds() {
        let key = app.api_key("backend", KeyRole::Admin).await;
        let change = json!({ "reason": "asked", "claims": { "round": round } });
        let name = "backend".parse().unwrap();
        let (changed, revoked) = at_once(
            app.as_user(&key, Method::PUT, &path, Some(&change)),
            revoke(&app.database.service, &name, Author::COMMAND_LINE),
        )
        .await;
        revoked.unwrap();
        let events: Vec<String> = values!(
            pool,
            "SELECT kind FROM events WHERE kind IN ('claims_changed', 'api_key_revoked') ORDER BY id DESC LIMIT 2"
        );
        if changed.status == 200 {
            assert_eq!(
                events,
                ["api_key_revoked", "claims_changed"],
                "round {round}"
            );
            changed_first += 1;
        } else {
            assert_challenged(&changed, INVALID);
            assert_eq!(events[0], "api_key_revoked", "round {round}");
            let claims: Option<String> = app
                .database
                .value("SELECT claims->>'round' FROM users")
                .await;
            assert_ne!(claims, Some(round.to_string()));
        }
    }
    assert_either_came_first(changed_first);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_use_of_a_key_is_written_once_a_minute() {
    let app = App::start().await;
    let key = app.api_key("backend", KeyRole::Support).await;
    let used = async || -> Option<String> {
        app.database
            .value("SELECT last_used_at::text FROM api_keys")
            .await
    };
    assert_eq!(used().await, None);
    ask(&app, &[("Authorization", &bearer(&key))]).await;
    let first = used().await;
    assert!(first.is_some());
    ask(&app, &[("Authorization", &bearer(&key))]).await;
    assert_eq!(used().await, first);
    app.database
        .run("UPDATE api_keys SET last_used_at = now() - interval '61 seconds'")
        .await;
    // The key works while another transaction locks its row.
    let mut holder = app.database.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM api_keys FOR UPDATE")
        .execute(&mut *holder)
        .await
        .unwrap();
    assert_accepted(&ask(&app, &[("Authorization", &bearer(&key))]).await);
    holder.rollback().await.unwrap();
    let before = used().await;
    ask(&app, &[("Authorization", &bearer(&key))]).await;
    assert_ne!(used().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_keys_are_limited_by_address_and_valid_ones_by_key() {
    let app = App::start_with(|figment| {
        figment
            .merge(("rate_limit.enabled", true))
            .merge(("rate_limit.sign_in_per_minute", 3))
            .merge(("rate_limit.api_key_per_minute", 4))
    })
    .await;
    let one = app.api_key("one", KeyRole::Support).await;
    let other = app.api_key("other", KeyRole::Support).await;
    // The first request with a key also counts by address, since the key is not known to be valid
    // yet.
    for key in [&one, &other] {
        assert_accepted(&ask(&app, &[("Authorization", &bearer(key))]).await);
    }
    let made_up = |digit: char| bearer(&format!("vst_{}", digit.to_string().repeat(43)));
    assert_challenged(
        &ask(&app, &[("Authorization", &made_up('a'))]).await,
        INVALID,
    );
    for wrong in [made_up('b'), made_up('c'), bearer("short")] {
        let refused = ask(&app, &[("Authorization", &wrong)]).await;
        let status = refused.status.as_u16();
        let error = refused.error();
        assert_eq!(
            (status, error.as_str()),
            (429, "rate_limited"),
            "{}",
            refused.text
        );
        assert!(refused.header("Retry-After").is_some());
        assert!(
            refused
                .header("RateLimit-Policy")
                .unwrap()
                .starts_with("\"unknown_api_key\";q=3")
        );
    }
    for _ in 0..3 {
        let answer = ask(&app, &[("Authorization", &bearer(&one))]).await;
        assert_accepted(&answer);
        assert_eq!(
            answer.header("RateLimit-Policy"),
            Some("\"api_key\";q=4;w=60")
        );
    }
    let refused = ask(&app, &[("Authorization", &bearer(&one))]).await;
    assert_eq!(refused.error(), "rate_limited", "{}", refused.text);
    assert_accepted(&ask(&app, &[("Authorization", &bearer(&other))]).await);
    // A revoked key counts as invalid from its next request.
    app.database.run("DELETE FROM api_keys").await;
    assert_challenged(
        &ask(&app, &[("Authorization", &bearer(&other))]).await,
        INVALID,
    );
    assert_eq!(
        ask(&app, &[("Authorization", &bearer(&other))])
            .await
            .error(),
        "rate_limited"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_is_stored_or_logged() {
    let database = Database::create().await;
    let provider = Provider::start().await;
    let service = Process::ready(&database, &provider, &[("RUST_LOG", "debug")]).await;
    let name = "backend".parse().unwrap();
    let added = add(
        &database.service,
        &name,
        KeyRole::Support,
        None,
        Author::COMMAND_LINE,
    )
    .await;
    let key = added.unwrap().unwrap().expose().clone();
    assert!(parse(&key).is_some());
    let client = reqwest::Client::new();
    for (key, query) in [(Some(&key), ""), (None, &*format!("?api_key={key}"))] {
        let mut request = client
            .post(format!("{}{}{query}", service.url, path()))
            .header("Content-Type", "application/json")
            .body(BODY);
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        let status = request
            .timeout(Duration::from_secs(10))
            .send()
            .await
            .unwrap()
            .status();
        assert!([401, 404].contains(&status.as_u16()), "{status}");
    }
    let log = service
        .tells("/api/v1/admin/users/<id>/end-sessions", 2)
        .await;
    assert!(!log.contains(&key[4..]), "{log}");
    let rows: String = database.value("SELECT concat((SELECT string_agg(k::text, ' ') FROM api_keys k), (SELECT string_agg(e::text, ' ') FROM events e))").await;
    assert!(
        rows.contains("backend") && !rows.contains(&key[4..]),
        "{rows}"
    );
}
