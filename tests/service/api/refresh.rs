//! `POST /api/v1/auth/refresh`: rotation, lost responses, replays, and the end of a session.

use std::collections::BTreeSet;

use base64::Engine;
use reqwest::Method;
use serde_json::json;
use vestibule::prune::{Limits, prune};

use crate::support::app::{Answer, App, LIMITS};
use crate::support::problem::assert_problem;
use crate::support::token::claims;

async fn sign_in(app: &App) -> Answer {
    let answer = app.sign_in(&claims("subject", "ada@example.com")).await;
    assert!(answer.status.is_success(), "{}", answer.text);
    answer
}

#[track_caller]
fn assert_refused(answer: &Answer) {
    assert_problem(answer, 401, "invalid_refresh_token");
}

/// Returns the `exp` of the access token.
fn expiry(answer: &Answer) -> String {
    let exp = answer.payload()["exp"].as_i64().unwrap();
    time::OffsetDateTime::from_unix_timestamp(exp)
        .unwrap()
        .format(&time::format_description::well_known::Rfc3339)
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_rotates_the_token_within_its_session() {
    let app = App::start().await;
    let first = sign_in(&app).await;
    let second = app.refresh(&first.refresh_token()).await;
    assert_eq!(second.status, 200, "{}", second.text);
    assert_eq!(second.header("cache-control"), Some("no-store"));
    let json = second.json();
    assert_eq!(
        (json["token_type"].as_str(), json["expires_in"].as_u64()),
        (Some("Bearer"), Some(900))
    );
    assert_eq!(json["refresh_expires_in"], 2_592_000);
    for answer in [&first, &second] {
        assert_eq!(
            expiry(answer),
            answer.json()["expires_at"].as_str().unwrap(),
            "as the token itself says"
        );
    }
    assert_ne!(second.refresh_token(), first.refresh_token());
    assert_eq!(
        app.database.rows().await,
        [1, 1, 1],
        "a refresh adds no row"
    );
    assert_eq!(
        app.get(&second.access_token(), "/api/v1/me").await.json()["id"],
        first.json()["user"]["id"]
    );
    assert_eq!(app.refresh(&second.refresh_token()).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_within_half_a_minute_returns_the_same_refresh_token() {
    let app = App::start().await;
    let parent = sign_in(&app).await.refresh_token();
    let first = app.refresh(&parent).await;
    let row = "SELECT count(*) FROM sessions WHERE xmin::text::bigint = (SELECT max(xmin::text::bigint) FROM sessions)
               AND rotated_at > created_at";
    assert_eq!(app.database.count(row).await, 1);
    let version = "SELECT (ctid::text::point)[1]::bigint FROM sessions";
    let before = app.database.count(version).await;
    let second = app.refresh(&parent).await;
    assert_eq!((first.status.as_u16(), second.status.as_u16()), (200, 200));
    assert_eq!(first.refresh_token(), second.refresh_token());
    assert_eq!(
        app.database.count(version).await,
        before,
        "the row stays as it is"
    );
    assert_eq!(app.refresh(&first.refresh_token()).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_grace_for_lost_responses_is_configurable_and_may_be_zero() {
    for (grace, status) in [(0, 401), (60, 200)] {
        let app = App::start_with(|figment| figment.merge(("session.refresh_grace", grace))).await;
        let parent = sign_in(&app).await.refresh_token();
        app.refresh(&parent).await;
        assert_eq!(
            app.refresh(&parent).await.status,
            200,
            "a repeat is no matter of grace"
        );
        app.half_a_minute_later().await;
        assert_eq!(app.refresh(&parent).await.status, status, "{grace}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_another_family_is_unknown_and_ends_nothing() {
    let app = App::start().await;
    let mine = sign_in(&app).await.refresh_token();
    let other = sign_in(&app).await.refresh_token();
    // Access tokens contain the session id, but not the family secret.
    let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let own = engine.decode(&mine).unwrap();
    let others = engine.decode(&other).unwrap();
    let forged = engine.encode([&own[..16], &others[16..]].concat());
    assert_refused(&app.refresh(&forged).await);
    let body = json!({ "refresh_token": forged });
    assert_eq!(app.post_to("/api/v1/auth/logout", &body).await.status, 204);
    assert_eq!(app.refresh(&mine).await.status, 200);
    let replays = "SELECT count(*) FROM events WHERE kind = 'refresh_token_replayed'";
    assert_eq!(app.database.count(replays).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_made_good_and_the_lost_token_dies() {
    let app = App::start().await;
    let parent = sign_in(&app).await.refresh_token();
    let lost = app.refresh(&parent).await.refresh_token();
    app.half_a_minute_later().await;
    let found = app.refresh(&parent).await;
    assert_eq!(found.status, 200, "{}", found.text);
    assert_ne!(
        found.refresh_token(),
        lost,
        "another one, so that a thief and the owner are told apart"
    );
    // An app that resumes may refresh twice at once and keep either response.
    assert_eq!(
        app.refresh(&parent).await.refresh_token(),
        found.refresh_token()
    );
    let reissues = "SELECT count(*) FROM events WHERE kind = 'refresh_token_reissued'";
    assert_eq!(app.database.count(reissues).await, 1, "staff see it");
    let next = app.refresh(&found.refresh_token()).await;
    assert_eq!(next.status, 200, "{}", next.text);
    // A client that now presents the lost token is not the client that continued.
    assert_refused(&app.refresh(&lost).await);
    assert_refused(&app.refresh(&next.refresh_token()).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_other_replay_ends_the_session_and_is_recorded() {
    for replays in [
        "grandparent",
        "parent of a used token",
        "parent after the grace",
    ] {
        let app = App::start().await;
        let first = sign_in(&app).await;
        let second = app.refresh(&first.refresh_token()).await;
        let (replayed, live) = match replays {
            "grandparent" => {
                let third = app.refresh(&second.refresh_token()).await;
                let fourth = app.refresh(&third.refresh_token()).await;
                (second.refresh_token(), fourth)
            }
            "parent of a used token" => (
                first.refresh_token(),
                app.refresh(&second.refresh_token()).await,
            ),
            _ => {
                app.database
                    .run("UPDATE sessions SET rotated_at = now() - interval '1 day'")
                    .await;
                (first.refresh_token(), second)
            }
        };
        assert_eq!(live.status, 200, "{replays}");
        assert_refused(&app.refresh(&replayed).await);
        assert_refused(&app.refresh(&live.refresh_token()).await);
        assert_eq!(
            app.get(&live.access_token(), "/api/v1/me").await.status,
            401,
            "{replays}"
        );
        let events = "SELECT count(*) FROM events e JOIN users u ON u.id = e.user_id JOIN sessions s ON s.id = e.session_id
                      WHERE e.kind = 'refresh_token_replayed' AND s.ended_at IS NOT NULL";
        assert_eq!(
            app.database.count(events).await,
            1,
            "{replays}: once, for the replay that ended it"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_and_absolute_lifetimes_end_a_session_by_the_databases_clock() {
    let app = App::start().await;
    let idle = sign_in(&app).await.refresh_token();
    app.database
        .run("UPDATE sessions SET expires_at = now() - interval '1 second'")
        .await;
    assert_refused(&app.refresh(&idle).await);

    let old = sign_in(&app).await.refresh_token();
    let young = app.refresh(&old).await.refresh_token();
    app.database
        .run("UPDATE sessions SET created_at = now() - interval '365 days'")
        .await;
    assert_refused(&app.refresh(&young).await);
    let replays = "SELECT count(*) FROM events WHERE kind = 'refresh_token_replayed'";
    assert_eq!(
        app.database.count(replays).await,
        0,
        "growing old is no theft"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_token_outlives_its_session() {
    let settings = json!({ "refresh_token_ttl": 3_600, "absolute_ttl": 7_200 });
    let app = App::start_with(|figment| figment.merge(("session", settings))).await;
    let old = sign_in(&app).await;
    let current = sign_in(&app).await;
    assert_eq!(old.json()["refresh_expires_in"], 3_600);
    let age_oldest = async |seconds: f64| {
        let older = "UPDATE sessions SET created_at = created_at - $1 * interval '1 second'
                     WHERE id = (SELECT id FROM sessions ORDER BY id LIMIT 1)";
        run!(&app.database.pool, older, seconds);
    };
    age_oldest(5_000.0).await;
    let last = app.refresh(&old.refresh_token()).await;
    let left = last.json()["refresh_expires_in"].as_u64().unwrap();
    assert!((2_000..=2_200).contains(&left), "{left}");
    let end =
        "SELECT count(*) FROM sessions WHERE expires_at = created_at + interval '7200 seconds'";
    assert_eq!(app.database.count(end).await, 1);
    assert_eq!(
        app.refresh(&current.refresh_token()).await.json()["refresh_expires_in"],
        3_600
    );

    age_oldest(1_700.0).await;
    let last = app.refresh(&last.refresh_token()).await;
    let lives = last.json()["expires_in"].as_i64().unwrap();
    assert!((300..=500).contains(&lives), "{lives}");
    assert_eq!(last.json()["refresh_expires_in"], lives);
    assert_eq!(last.json()["expires_at"], expiry(&last));

    let listed = async || {
        let sessions = app
            .get(&current.access_token(), "/api/v1/me/sessions")
            .await
            .json();
        sessions["sessions"].as_array().unwrap().len()
    };
    assert_eq!(listed().await, 2);
    // After the token's lifetime.
    app.age(2_200.0).await;
    app.database
        .run("UPDATE sessions SET expires_at = expires_at - interval '2200 seconds'")
        .await;
    assert_eq!(listed().await, 1, "who cannot refresh is not signed in");
    assert_refused(&app.refresh(&last.refresh_token()).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_needs_no_provider() {
    let app = App::start().await;
    let answer = sign_in(&app).await;
    let calls = app.provider.calls();
    let gate = app.provider.hold();
    assert_eq!(app.refresh(&answer.refresh_token()).await.status, 200);
    assert_eq!(app.provider.calls(), calls);
    gate.release();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_invalid_refresh_token_gets_the_same_refusal() {
    let app = App::start().await;
    let answer = sign_in(&app).await;
    let before = app.database.rows().await;
    let text = answer.refresh_token();
    let altered = format!(
        "{}{}",
        &text[..42],
        if text.ends_with('A') { 'B' } else { 'A' }
    );
    let long = "x".repeat(60_000);
    let odd = [
        "",
        "x",
        "' OR 1=1 --",
        "\u{0}",
        "🔑",
        &text[..42],
        &altered,
        &long,
        &answer.access_token(),
    ];
    let mut bodies = BTreeSet::new();
    for token in odd {
        let answer = app.refresh(token).await;
        assert_refused(&answer);
        bodies.insert(
            answer
                .text
                .replace(answer.header("X-Request-Id").unwrap(), ""),
        );
    }
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    for body in [
        json!({}),
        json!({ "refresh_token": [text] }),
        json!({ "refresh_token": 1 }),
        json!([text]),
    ] {
        assert_problem(
            &app.post_to("/api/v1/auth/refresh", &body).await,
            400,
            "invalid_request",
        );
    }
    let plain = app
        .send(
            Method::POST,
            "/api/v1/auth/refresh",
            Some("text/plain"),
            "{}",
        )
        .await;
    assert_eq!(plain.status, 415);
    assert_eq!(app.database.rows().await, before);
    assert_eq!(
        app.refresh(&text).await.status,
        200,
        "and none of it hurt the session"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_ends_an_identitys_least_recently_used_surplus_sessions() {
    let app = App::start().await;
    let mut answers = Vec::new();
    for _ in 0..5 {
        answers.push(sign_in(&app).await.refresh_token());
    }
    // The oldest session is used.
    answers[0] = app.refresh(&answers[0]).await.refresh_token();
    let limits = Limits {
        sessions_per_identity: 3,
        ..LIMITS
    };
    assert_eq!(
        prune(&app.database.service, limits)
            .await
            .unwrap()
            .surplus_sessions,
        2
    );
    for (number, token) in answers.iter().enumerate() {
        let expected = if [1, 2].contains(&number) { 401 } else { 200 };
        assert_eq!(
            app.refresh(token).await.status,
            expected,
            "session {number}"
        );
    }
}
