//! An exchange stores its token while the identity is deleted or moved: in any order, a removed
//! identity's token is revoked, and a live identity's token is not.

use sqlx::PgPool;
use uuid::Uuid;
use vestibule::provider_tokens::store::{self, Owner, State};

use super::states;
use crate::support::cluster::Database;
use crate::support::race::{assert_either_came_first, rounds};

async fn person(pool: &PgPool, subject: &str) -> (Uuid, Uuid) {
    let user = Uuid::now_v7();
    let identity = Uuid::now_v7();
    run!(
        pool,
        "WITH person AS (INSERT INTO users (id) VALUES ($1) RETURNING id)
         INSERT INTO identities (id, user_id, provider, subject) SELECT $2, id, 'apple', $3 FROM person",
        user,
        identity,
        subject
    );
    (user, identity)
}

fn owner(subject: &str) -> Owner {
    Owner {
        provider: "apple".into(),
        subject: subject.into(),
        client_id: "app".into(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exchanges_that_meet_the_deletion_leave_no_token_that_nobody_revokes() {
    let database = Database::create().await;
    let pool = &database.pool;
    let mut first = 0;
    for round in 0..rounds() {
        let subject = format!("subject-{round}");
        let (user, _) = person(pool, &subject).await;
        let owner = owner(&subject);
        let id = Uuid::now_v7();
        store::keep_code(&database.service, id, &owner, b"code")
            .await
            .unwrap();
        let stored = async {
            pause(round % 7).await;
            store::keep_token(&database.service, id, &owner, b"token", false)
                .await
                .unwrap()
        };
        let deleted = async {
            pause(round % 5).await;
            // Even rounds delete by the cascade, odd rounds as unlinking does.
            let sql = if round % 2 == 0 {
                "DELETE FROM users WHERE id = $1"
            } else {
                "DELETE FROM identities WHERE user_id = $1"
            };
            sqlx::query(sql).bind(user).execute(pool).await.unwrap();
        };
        let (kept, ()) = tokio::join!(stored, deleted);
        first += usize::from(kept);
    }
    assert_either_came_first(first);
    let due =
        "SELECT count(*) FROM provider_tokens WHERE state = 'due' AND sealed = 'token' AND due_at IS NOT NULL
               AND next_attempt_at <= now()";
    assert_eq!(database.count(due).await, i64::try_from(rounds()).unwrap());
    let mut claimed = 0;
    while claimed < rounds() {
        let rows = store::claim(&database.service, "apple", None, 100, 60)
            .await
            .unwrap();
        assert!(rows.iter().all(|row| row.state == State::Due));
        claimed += rows.len();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn storing_a_token_waits_for_a_concurrent_deletion() {
    let database = Database::create().await;
    let pool = &database.pool;
    for (subject, commits) in [("gone", true), ("there", false)] {
        let (user, _) = person(pool, subject).await;
        let owner = owner(subject);
        let mut deletion = pool.begin().await.unwrap();
        sqlx::query("DELETE FROM users WHERE id = $1")
            .bind(user)
            .execute(&mut *deletion)
            .await
            .unwrap();
        let own = pool.clone();
        let id = Uuid::now_v7();
        let stored = tokio::spawn(async move {
            store::keep_token(&own.clone().into(), id, &owner, b"token", false).await
        });
        database.until_blocked().await;
        if commits {
            deletion.commit().await.unwrap();
        } else {
            deletion.rollback().await.unwrap();
        }
        assert_eq!(stored.await.unwrap().unwrap(), !commits, "{subject}");
    }
    assert_eq!(states(pool).await, ["due", "kept"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn exchanges_that_meet_a_move_keep_their_token() {
    let database = Database::create().await;
    let pool = &database.pool;
    for round in 0..rounds() {
        let subject = format!("subject-{round}");
        let (_, identity) = person(pool, &subject).await;
        let owner = owner(&subject);
        let id = Uuid::now_v7();
        store::keep_code(&database.service, id, &owner, b"code")
            .await
            .unwrap();
        let stored = async {
            pause(round % 7).await;
            store::keep_token(&database.service, id, &owner, b"token", false)
                .await
                .unwrap();
        };
        let moved = async {
            pause(round % 5).await;
            run!(
                pool,
                "WITH taken AS (DELETE FROM identities WHERE id = $1 RETURNING user_id, provider, subject)
                 INSERT INTO identities (id, user_id, provider, subject) SELECT $2, * FROM taken",
                identity,
                Uuid::now_v7()
            );
        };
        tokio::join!(stored, moved);
    }
    loop {
        let rows = store::claim(&database.service, "apple", None, 100, 60)
            .await
            .unwrap();
        assert!(
            rows.iter().all(|row| row.state == State::Kept),
            "none is to be revoked"
        );
        if rows.is_empty() {
            break;
        }
    }
    let kept = "SELECT count(*) FROM provider_tokens WHERE state = 'kept'";
    assert_eq!(database.count(kept).await, i64::try_from(rounds()).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_go_back_to_a_linked_identity_meet_its_deletion() {
    let database = Database::create().await;
    let pool = &database.pool;
    for round in 0..rounds() {
        let subject = format!("subject-{round}");
        let owner = owner(&subject);
        // The token is due; then its identity is linked again.
        let id = Uuid::now_v7();
        assert!(
            !store::keep_token(&database.service, id, &owner, b"token", false)
                .await
                .unwrap()
        );
        let (user, _) = person(pool, &subject).await;
        let claimed = async {
            pause(round % 7).await;
            store::claim(&database.service, "apple", None, 100, 0)
                .await
                .unwrap();
        };
        let deleted = async {
            pause(round % 5).await;
            sqlx::query("DELETE FROM users WHERE id = $1")
                .bind(user)
                .execute(pool)
                .await
                .unwrap();
        };
        tokio::join!(claimed, deleted);
    }
    assert_eq!(
        database
            .count("SELECT count(*) FROM provider_tokens WHERE state <> 'due'")
            .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_instances_refused_code_does_not_drop_the_token() {
    let database = Database::create().await;
    let pool = &database.pool;
    let owner = owner("ada");
    let id = Uuid::now_v7();
    store::keep_code(&database.service, id, &owner, b"code")
        .await
        .unwrap();
    let claim = async |lease| {
        store::claim(&database.service, "apple", None, 1, lease)
            .await
            .unwrap()
            .remove(0)
    };
    let first = claim(0).await;
    let second = claim(60).await;
    assert_eq!((first.attempts, second.attempts), (1, 2));
    assert!(
        !store::keep_token(&database.service, first.id, &owner, b"token", false)
            .await
            .unwrap()
    );
    store::delete(&database.service, &second).await.unwrap();
    assert_eq!(states(pool).await, ["due"]);
}

/// Lets the other side of a race go first for a while.
async fn pause(turns: usize) {
    for _ in 0..turns * 3 {
        tokio::task::yield_now().await;
    }
}
