//! Refreshes and unlinkings that race each other.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::support::app::{Answer, App};
use crate::support::race::{at_once, rounds};
use crate::support::token::{at, claims};

const REPLAYS: &str = "SELECT count(*) FROM events WHERE kind = 'refresh_token_replayed'";

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_rotate_one_token_at_once_leave_exactly_one_successor() {
    let app = Arc::new(App::start().await);
    for round in 0..rounds() {
        // A session's first refresh differs from later ones, so every other round has a fresh
        // session.
        let mut token = app
            .sign_in(&claims("subject", "ada@example.com"))
            .await
            .refresh_token();
        if round % 2 == 0 {
            token = app.refresh(&token).await.refresh_token();
        }
        let token = token;
        // Few requests come closest together, many overtake each other.
        let number = if round % 10 == 0 { 60 } else { 8 };
        let barrier = Arc::new(Barrier::new(number));
        let mut clients = JoinSet::new();
        for _ in 0..number {
            let app = app.clone();
            let barrier = barrier.clone();
            let token = token.clone();
            clients.spawn(async move {
                barrier.wait().await;
                app.refresh(&token).await
            });
        }
        let mut successors = Vec::new();
        for answer in clients.join_all().await {
            assert_eq!(answer.status, 200, "round {round}: {}", answer.text);
            successors.push(answer.refresh_token());
        }
        successors.dedup();
        assert_eq!(successors.len(), 1, "round {round}: all get the same one");
        assert_eq!(
            app.refresh(&successors[0]).await.status,
            200,
            "round {round}"
        );
    }
    assert_eq!(app.database.count(REPLAYS).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn reuse_of_a_stolen_token_signs_out_thief_and_owner() {
    for thief_first in [true, false] {
        let app = App::start().await;
        let stolen = app
            .sign_in(&claims("subject", "ada@example.com"))
            .await
            .refresh_token();
        let first = app.refresh(&stolen).await;
        app.half_a_minute_later().await;
        let second = app.refresh(&stolen).await;
        let (thief, owner) = if thief_first {
            (&first, &second)
        } else {
            (&second, &first)
        };
        // Each continues with its token, in turn, until the service detects two clients.
        let turns = [thief.refresh_token(), owner.refresh_token()];
        let answers = [app.refresh(&turns[0]).await, app.refresh(&turns[1]).await];
        assert!(
            answers.iter().any(|answer| answer.status == 401),
            "they are told apart"
        );
        for answer in &answers {
            assert_eq!(
                app.refresh(&answer.refresh_token()).await.status,
                401,
                "and neither goes on"
            );
        }
        assert_eq!(app.database.count(REPLAYS).await, 1);
    }
}

/// Refreshes as a client with this address and user agent.
async fn refresh_as(app: &App, token: &str, address: &str, agent: &str) -> Answer {
    let request = reqwest::Client::new().post(format!("{}/api/v1/auth/refresh", app.url));
    let request = request
        .header("X-Forwarded-For", address)
        .header("User-Agent", agent);
    let body = json!({ "refresh_token": token }).to_string();
    App::answer(
        request
            .header("Content-Type", "application/json")
            .body(body)
            .send()
            .await
            .unwrap(),
    )
    .await
}

const OWNER: (&str, &str) = ("192.0.2.1", "App/1 (Android 17)");
const THIEF: (&str, &str) = ("198.51.100.7", "curl/8");

#[tokio::test(flavor = "multi_thread")]
async fn only_repeats_with_new_address_and_user_agent_are_recorded() {
    let app = App::start_with(|figment| figment.merge(("trusted_proxies", ["127.0.0.1"]))).await;
    let mut token = app
        .sign_in(&claims("subject", "ada@example.com"))
        .await
        .refresh_token();
    for rotation in 1..=2 {
        let next = refresh_as(&app, &token, OWNER.0, OWNER.1)
            .await
            .refresh_token();
        let row = "SELECT concat_ws(' ', token_hash, parent_hash, rotated_at, expires_at, ended_at) FROM sessions";
        let before: String = app.database.value(row).await;
        for (address, agent, recorded) in [
            (OWNER.0, OWNER.1, rotation - 1),
            (THIEF.0, OWNER.1, rotation - 1),
            (OWNER.0, THIEF.1, rotation - 1),
            (THIEF.0, THIEF.1, rotation),
            (THIEF.0, THIEF.1, rotation),
            (OWNER.0, OWNER.1, rotation),
        ] {
            assert_eq!(
                refresh_as(&app, &token, address, agent)
                    .await
                    .refresh_token(),
                next
            );
            let events: Vec<(String, String, Uuid)> = app.database.all(
                "SELECT host(e.ip), e.user_agent, u.id FROM events e JOIN users u ON u.id = e.user_id JOIN sessions s ON s.id = e.session_id
                 WHERE e.kind = 'refresh_token_repeated' AND e.reason = 'another_client'").await;
            assert_eq!(events.len(), recorded, "{address} {agent}");
            assert!(
                events
                    .iter()
                    .all(|event| (event.0.as_str(), event.1.as_str()) == THIEF),
                "{events:?}"
            );
            assert_eq!(app.database.value::<String>(row).await, before);
        }
        token = next;
    }
    assert_eq!(
        refresh_as(&app, &token, OWNER.0, OWNER.1).await.status,
        200,
        "the session goes on"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_of_concurrent_owner_and_thief_refreshes_is_recorded() {
    let app = App::start_with(|figment| figment.merge(("trusted_proxies", ["127.0.0.1"]))).await;
    let mut token = app
        .sign_in(&claims("subject", "ada@example.com"))
        .await
        .refresh_token();
    for round in 1..=rounds() {
        let (owner, thief) = at_once(
            refresh_as(&app, &token, OWNER.0, OWNER.1),
            refresh_as(&app, &token, THIEF.0, THIEF.1),
        )
        .await;
        assert_eq!(owner.refresh_token(), thief.refresh_token());
        let recorded = app
            .database
            .count("SELECT count(*) FROM events WHERE kind = 'refresh_token_repeated'")
            .await;
        assert_eq!(recorded, i64::try_from(round).unwrap(), "round {round}");
        token = owner.refresh_token();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_users_linking_an_identity_concurrently_one_succeeds() {
    let app = App::start().await;
    for round in 0..rounds() {
        let mut tokens = Vec::new();
        for name in ["ada", "grace"] {
            let subject = format!("{name}-{round}");
            tokens.push(
                app.sign_in(&claims(&subject, &format!("{subject}@example.com")))
                    .await
                    .access_token(),
            );
        }
        let identity = at("second", &format!("identity-{round}"), "");
        let [one, other] = [0, 1].map(|user: usize| app.link(&tokens[user], "second", &identity));
        let (one, other) = at_once(one, other).await;
        let mut statuses = [one.status.as_u16(), other.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409], "round {round}");
    }
    assert_eq!(app.database.rows().await[..2], [2 * rounds(), 3 * rounds()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_unlinks_both_identities_at_once_keeps_one() {
    let app = App::start().await;
    for round in 0..rounds() {
        let email = format!("ada-{round}@example.com");
        let first = app
            .sign_in(&claims(&format!("first-{round}"), &email))
            .await;
        let identity = at("second", &format!("second-{round}"), &email);
        let second = app.sign_in_at("second", &identity).await;
        // Each session unlinks the other's identity.
        let unlink = async |mine: &Answer, theirs: &Answer| {
            let path = format!("/api/v1/me/identities/{}", theirs.identity_id());
            app.delete(&mine.access_token(), &path)
                .await
                .status
                .as_u16()
        };
        let (one, other) = at_once(unlink(&first, &second), unlink(&second, &first)).await;
        let mut statuses = [one, other];
        statuses.sort_unstable();
        // The later request has lost its session, or finds that its target is the last identity.
        assert!(
            matches!(statuses[..], [204, 401 | 409 | 404]),
            "round {round}: {statuses:?}"
        );
    }
    assert_eq!(app.database.rows().await[..2], [rounds(), rounds()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_racing_a_sign_in_leaves_no_partial_user() {
    let app = App::start().await;
    for round in 0..rounds() {
        let claimed = claims("subject", "ada@example.com");
        let token = app.sign_in(&claimed).await.access_token();
        let (deleted, signed_in) =
            at_once(app.delete(&token, "/api/v1/me"), app.sign_in(&claimed)).await;
        for answer in [deleted, signed_in] {
            // A deletion in the next second is later than the token.
            let done = answer.status.is_success() || answer.error() == "token_expired";
            assert!(done, "round {round}: {}", answer.text);
        }
        let [users, identities, sessions] = app.database.rows().await;
        assert!(
            users <= 1 && users == identities && sessions <= users,
            "round {round}"
        );
    }
}
