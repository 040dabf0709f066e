//! PostgreSQL aborts a transaction because of a conflict with another.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, Executor};

use crate::support::app::App;
use crate::support::problem::assert_problem;
use crate::support::process::eventually;
use crate::support::token::{at, claims};

/// Makes this many inserts of an event fail with a conflict's error code.
async fn fail(app: &App, code: &str, times: i64) {
    let statements = format!(
        "DROP TRIGGER IF EXISTS conflict ON events;
         DROP SEQUENCE IF EXISTS failures;
         CREATE SEQUENCE failures;
         CREATE OR REPLACE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             -- A sequence counts on although the transaction is rolled back.
             IF nextval('failures') <= {times} THEN RAISE EXCEPTION 'at odds' USING ERRCODE = '{code}'; END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER conflict BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION conflict()"
    );
    app.database
        .pool
        .execute(AssertSqlSafe(statements))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_is_retried_three_times_and_then_responds_503() {
    let app = App::start().await;
    for (number, code) in ["40001", "40P01"].into_iter().enumerate() {
        let subject = format!("subject-{number}");
        let claims = claims(&subject, &format!("{subject}@example.com"));
        let before = app.database.rows().await;

        fail(&app, code, i64::MAX).await;
        assert_problem(&app.sign_in(&claims).await, 503, "service_unavailable");
        let tries = app.database.count("SELECT last_value FROM failures").await;
        assert_eq!(
            tries, 5,
            "{code}: with others, then by itself once and three times more"
        );
        assert_eq!(
            app.database.rows().await,
            before,
            "{code}: nothing is half done"
        );

        fail(&app, code, 3).await;
        assert_eq!(app.sign_in(&claims).await.outcome(), "created", "{code}");
        assert_eq!(
            app.database.rows().await,
            before.map(|rows| rows + 1),
            "{code}: and done once"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_database_does_not_support_is_not_run_again() {
    let app = App::start().await;
    fail(&app, "0A000", i64::MAX).await;
    assert_problem(
        &app.sign_in(&claims("ada", "ada@example.com")).await,
        500,
        "internal_error",
    );
    let tries = app.database.count("SELECT last_value FROM failures").await;
    assert_eq!(tries, 2, "with others, then by itself");
}

/// A sign-in's first read of the user with its address is outdated after the wait for that user's
/// row.
#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_that_waited_for_a_user_reads_them_again() {
    let app = App::start_with(|figment| figment.merge(("idp.recycled_email", "refuse"))).await;
    let app = Arc::new(app);
    app.sign_in_at("second", &at("second", "ada", "ada@example.com"))
        .await;
    // Another transaction links an identity of the same provider, and has not committed yet.
    let mut linking = app.database.pool.begin().await.unwrap();
    for sql in [
        "UPDATE users SET updated_at = now()",
        "INSERT INTO identities (id, user_id, provider, subject) SELECT gen_random_uuid(), id, 'idp', 'first' FROM users",
    ] {
        sqlx::query(sql).execute(&mut *linking).await.unwrap();
    }
    let waiting = tokio::spawn({
        let app = app.clone();
        async move { app.sign_in(&claims("recycled", "ada@example.com")).await }
    });
    app.database
        .until_waiting(1, "^-- Signs in one identity")
        .await;
    linking.commit().await.unwrap();
    assert_problem(&waiting.await.unwrap(), 409, "identity_conflict");
}

const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'";
const SESSIONS: &str = "SELECT count(*) FROM sessions";

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_waits_for_the_concurrent_deletion_of_its_identity() {
    let app = Arc::new(App::start().await);
    let ada = claims("ada", "ada@example.com");
    app.sign_in(&ada).await;
    for (end, outcome, sessions) in [("ROLLBACK", "signed_in", 2), ("COMMIT", "created", 1)] {
        let mut deletion = app.database.pool.acquire().await.unwrap();
        deletion
            .execute("BEGIN; DELETE FROM identities")
            .await
            .unwrap();
        let signing_in = tokio::spawn({
            let app = app.clone();
            let ada = ada.clone();
            async move { app.sign_in(&ada).await }
        });
        eventually("it waits", async || {
            (app.database.count(WAITING).await > 0).then_some(())
        })
        .await;
        deletion.execute(end).await.unwrap();
        assert_eq!(signing_in.await.unwrap().outcome(), outcome, "{end}");
        assert_eq!(app.database.count(SESSIONS).await, sessions, "{end}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_being_opened_goes_with_its_identity() {
    let app = App::start().await;
    app.sign_in(&claims("ada", "ada@example.com")).await;
    let mut opening = app.database.pool.begin().await.unwrap();
    let open = "INSERT INTO sessions (id, identity_id, family_hash, token_hash, expires_at, client_id)
                SELECT gen_random_uuid(), identity_id, family_hash, token_hash, expires_at, client_id FROM sessions";
    opening.execute(open).await.unwrap();
    let deletion = tokio::spawn({
        let pool = app.database.pool.clone();
        async move { pool.execute("DELETE FROM identities").await }
    });
    eventually("it waits", async || {
        (app.database.count(WAITING).await > 0).then_some(())
    })
    .await;
    opening.commit().await.unwrap();
    deletion.await.unwrap().unwrap();
    assert_eq!(app.database.count(SESSIONS).await, 0);
}
