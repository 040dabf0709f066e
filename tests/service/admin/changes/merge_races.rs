//! Merges that race changes of the same users: the result equals one order or the other.

use std::sync::Arc;

use serde_json::json;
use sqlx::Executor;
use tokio::task::JoinSet;
use uuid::Uuid;
use vestibule::admin::changes::{Change, Outcome};

use super::{at, identity, prepared, user};
use crate::support::app::App;
use crate::support::race::{assert_either_came_first, rounds};
use crate::support::token::{claims, with};

async fn exists(app: &App, user: Uuid) -> bool {
    value!(
        &app.database.pool,
        "SELECT EXISTS (SELECT FROM users WHERE id = $1)",
        user
    )
}

/// Returns the user who has the identity with this subject. At most one may have it.
async fn owner(app: &App, subject: &str) -> Option<Uuid> {
    let owners: Vec<Uuid> = values!(
        &app.database.pool,
        "SELECT u.id FROM identities i JOIN users u ON u.id = i.user_id WHERE i.subject = $1",
        subject
    );
    assert!(owners.len() <= 1, "{subject}: {owners:?}");
    owners.first().copied()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_and_concurrent_sign_ins_take_effect_one_by_one() {
    let app = Arc::new(App::start().await);
    let mut merged = 0;
    for round in 0..rounds() {
        let [from, into] = ["from", "into"].map(|role| format!("{role}-{round}"));
        let address = |subject: &str| format!("{subject}@example.com");
        let from_claims = claims(&from, &address(&from));
        let into_claims = claims(&into, &address(&into));
        let from_first = app.sign_in(&from_claims).await;
        let into_first = app.sign_in(&into_claims).await;
        let from_id = user(&from_first);
        let into_id = user(&into_first);
        let merge = tokio::spawn(
            prepared(
                &app,
                Change::Merge {
                    from: from_id,
                    into: into_id,
                },
            )
            .await,
        );

        // In some rounds the provider reports changed claims, or a user signs in with a second
        // identity.
        let news = json!({ "picture": format!("https://pictures.example/{round}") });
        let attempts = match round % 5 {
            0 | 1 => vec![("idp", from_claims.clone()), ("idp", into_claims)],
            2 => vec![
                ("idp", with(from_claims.clone(), &news)),
                ("idp", into_claims),
            ],
            3 => vec![
                ("idp", from_claims.clone()),
                ("idp", with(into_claims, &news)),
            ],
            _ => vec![
                ("idp", from_claims.clone()),
                ("second", at("second", &from, &address(&from))),
            ],
        };
        let mut signing_in = JoinSet::new();
        for (provider, claims) in attempts {
            let app = app.clone();
            signing_in.spawn(async move { app.sign_in_at(provider, &claims).await });
        }
        let answers = signing_in.join_all().await;
        let outcome = merge.await.unwrap();

        assert!(
            matches!(outcome, Some(Outcome::Done | Outcome::Stale)),
            "round {round}: {outcome:?}"
        );
        let done = outcome == Some(Outcome::Done);
        merged += usize::from(done);
        assert_eq!(exists(&app, from_id).await, !done, "round {round}");
        for answer in answers.iter().chain([&from_first, &into_first]) {
            assert!(answer.status.is_success(), "round {round}: {}", answer.text);
            // A response that names the merged user was sent before the merge, and its session has
            // ended.
            let lives = !(done && user(answer) == from_id);
            // Either request shows it, and one per round saves half of them.
            let status = if round % 2 == 0 {
                app.get(&answer.access_token(), "/api/v1/me").await.status
            } else {
                app.refresh(&answer.refresh_token()).await.status
            };
            assert_eq!(
                status,
                if lives { 200 } else { 401 },
                "round {round}, {outcome:?}: {}",
                answer.text
            );
        }
        let expected = if done { into_id } else { from_id };
        assert_eq!(
            user(&app.sign_in(&from_claims).await),
            expected,
            "round {round}"
        );
    }
    assert_either_came_first(merged);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_and_the_users_own_change_take_effect_exclusively() {
    let app = Arc::new(App::start().await);
    for round in 0..rounds() {
        let [from, into] = ["from", "into"].map(|role| format!("{role}-{round}"));
        let first = format!("{from}-first");
        let second = format!("{from}-second");
        let address = format!("{from}@example.com");
        let from_first = app.sign_in(&claims(&first, &address)).await;
        let from_second = app
            .sign_in_at("second", &at("second", &second, &address))
            .await;
        let into_first = app
            .sign_in(&claims(&into, &format!("{into}@example.com")))
            .await;
        let from_id = user(&from_first);
        let into_id = user(&into_first);
        let merge = tokio::spawn(
            prepared(
                &app,
                Change::Merge {
                    from: from_id,
                    into: into_id,
                },
            )
            .await,
        );

        let third = format!("{from}-third");
        let second_one = format!("/api/v1/me/identities/{}", identity(&from_second));
        let answer = match round % 3 {
            0 => {
                app.link(
                    &from_first.access_token(),
                    "third",
                    &at("third", &third, ""),
                )
                .await
            }
            1 => app.delete(&from_first.access_token(), &second_one).await,
            _ => app.delete(&from_first.access_token(), "/api/v1/me").await,
        };
        let outcome = merge.await.unwrap();

        // One of the two took effect, and the other was refused as too late.
        let status = answer.status.as_u16();
        let took_effect = answer.status.is_success();
        assert!(
            took_effect || status == 401 || status == 404,
            "round {round}: {}",
            answer.text
        );
        assert_eq!(
            outcome == Some(Outcome::Done),
            !took_effect,
            "round {round}: {outcome:?} {}",
            answer.text
        );
        let deleted = round % 3 == 2 && took_effect;
        let unlinked = round % 3 == 1 && took_effect;
        let linked = round % 3 == 0 && took_effect;
        let whose = if took_effect { from_id } else { into_id };
        assert_eq!(
            owner(&app, &first).await,
            (!deleted).then_some(whose),
            "round {round}"
        );
        assert_eq!(
            owner(&app, &second).await,
            (!deleted && !unlinked).then_some(whose),
            "round {round}"
        );
        assert_eq!(
            owner(&app, &third).await,
            linked.then_some(whose),
            "round {round}"
        );
        assert_eq!(owner(&app, &into).await, Some(into_id), "round {round}");
    }
}

/// A transaction that ends a session locks the session first; its event then locks the user if a
/// webhook is configured.
#[tokio::test(flavor = "multi_thread")]
async fn a_merge_does_not_block_the_sign_out_it_waits_for() {
    let app = App::start().await;
    let pool = &app.database.pool;
    pool.execute(
        "INSERT INTO webhooks (name, events) VALUES ('shop', '{user.merged,sessions.ended}')",
    )
    .await
    .unwrap();
    let from = user(&app.sign_in(&claims("from", "from@example.com")).await);
    let into = user(&app.sign_in(&claims("into", "into@example.com")).await);
    let merge = prepared(&app, Change::Merge { from, into }).await;
    let mut sign_out = pool.begin().await.unwrap();
    run!(
        &mut *sign_out,
        "UPDATE sessions s SET ended_at = now() FROM identities i WHERE i.id = s.identity_id AND i.user_id = $1",
        from
    );
    let merging = tokio::spawn(merge);
    app.database.until_blocked().await;
    sign_out
        .execute("SET LOCAL lock_timeout = '100ms'")
        .await
        .unwrap();
    // The merge must not hold the lock of the user.
    run!(
        &mut *sign_out,
        "INSERT INTO events (id, kind, reason, user_id) VALUES ($1, 'signed_out', 'local', $2)",
        Uuid::now_v7(),
        from
    );
    sign_out.commit().await.unwrap();
    assert_eq!(merging.await.unwrap(), Some(Outcome::Done));
}
