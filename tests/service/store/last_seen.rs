//! The day on which a user was last seen: sessions give it, and the user's row notes it from time
//! to time without blocking other requests.

use crate::support::app::{Answer, App, LIMITS};
use crate::support::token::{at, claims, with};
use serde_json::{Value, json};
use vestibule::admin::lists::person as directory;
use vestibule::prune::prune;

/// Starts a service on a day that does not end during the test, signs in one user, and returns the
/// app, the claims and the response.
async fn start() -> (App, Value, Answer) {
    let app = App::start().await;
    app.database.within_an_hour().await;
    let ada = claims("ada", "ada@example.com");
    let signed_in = app.sign_in(&ada).await;
    (app, ada, signed_in)
}

/// Sets the last use of all sessions to `days` ago, and the noted day to `noted` days ago.
async fn long_ago(app: &App, days: i32, noted: i32) {
    run!(
        &app.database.pool,
        "UPDATE sessions SET rotated_at = now() - $1 * interval '1 day'",
        days
    );
    run!(
        &app.database.pool,
        "UPDATE users SET seen_noted_on = current_date - $1",
        noted
    );
}

/// Returns the days since the only user was last seen.
async fn seen(app: &App) -> i64 {
    let user = app.database.value("SELECT id FROM users").await;
    let day = directory::user(&app.database.service, user)
        .await
        .unwrap()
        .unwrap()
        .user
        .last_seen_on;
    let today: time::Date = app.database.value("SELECT current_date").await;
    (today - day.unwrap()).whole_days()
}

/// Returns the age of the noted day in days, the version of the user's row, and whether
/// `updated_at` has changed since the creation.
async fn noted(app: &App) -> (Option<i32>, String, bool) {
    app.database
        .row("SELECT current_date - seen_noted_on, xmin::text, updated_at <> created_at FROM users")
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_ins_and_refreshes_update_the_noted_day_after_35_days() {
    let (app, ada, signed_in) = start().await;
    let mut refresh_token = signed_in.refresh_token();
    assert_eq!(
        (seen(&app).await, noted(&app).await.0),
        (0, Some(0)),
        "created"
    );
    for by_refresh in [false, true] {
        for days in [1, 34, 35, 400] {
            long_ago(&app, 1, days).await;
            assert_eq!(seen(&app).await, 1);
            let mut rows = vec![noted(&app).await];
            for _ in 0..3 {
                if by_refresh {
                    refresh_token = app.refresh(&refresh_token).await.refresh_token();
                } else {
                    assert_eq!(app.sign_in(&ada).await.outcome(), "signed_in");
                }
                assert_eq!(seen(&app).await, 0, "{by_refresh}, {days} days");
                rows.push(noted(&app).await);
            }
            let noted = if days < 35 { days } else { 0 };
            assert_eq!(
                (rows[1].0, rows[1].2),
                (Some(noted), false),
                "{by_refresh}, {days} days"
            );
            assert_eq!(
                rows[0].1 == rows[1].1,
                days < 35,
                "{by_refresh}, {days} days: {rows:?}"
            );
            assert!(
                rows[1..].iter().all(|row| row.1 == rows[1].1),
                "{by_refresh}, {days} days: {rows:?}"
            );
        }
    }
    app.database
        .run("UPDATE users SET seen_noted_on = NULL")
        .await;
    app.sign_in(&ada).await;
    assert_eq!(noted(&app).await.0, Some(0), "who was never seen");
    app.database
        .run("UPDATE users SET seen_noted_on = current_date + 1")
        .await;
    app.sign_in(&ada).await;
    assert_eq!(
        (seen(&app).await, noted(&app).await.0),
        (-1, Some(-1)),
        "a day never goes back"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_day_outlives_the_session_that_tells_it() {
    let (app, ..) = start().await;
    long_ago(&app, 40, 50).await;
    let expire = "UPDATE sessions SET id = first_id(now() - interval '50 days'), expires_at = now() - interval '8 days'";
    app.database.run(expire).await;
    assert_eq!(
        prune(&app.database.service, LIMITS).await.unwrap().sessions,
        1
    );
    assert_eq!(
        (seen(&app).await, noted(&app).await.0),
        (40, Some(40)),
        "pruned"
    );
    let other = at("second", "ada-2", "ada@example.com");
    assert_eq!(app.sign_in_at("second", &other).await.outcome(), "linked");
    long_ago(&app, 10, 30).await;
    app.database
        .run("DELETE FROM identities WHERE provider = 'second'")
        .await;
    assert_eq!(app.database.count("SELECT count(*) FROM sessions").await, 0);
    assert_eq!(
        (seen(&app).await, noted(&app).await.0),
        (10, Some(10)),
        "unlinked"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_that_writes_the_user_also_notes_the_day() {
    let (app, ada, _) = start().await;
    long_ago(&app, 7, 7).await;
    let other = at("second", "ada-2", "ada@example.com");
    assert_eq!(app.sign_in_at("second", &other).await.outcome(), "linked");
    assert_eq!(noted(&app).await.0, Some(0), "linked");
    long_ago(&app, 7, 7).await;
    app.sign_in(&with(ada, &json!({ "email": "lovelace@example.com" })))
        .await;
    assert_eq!(noted(&app).await.0, Some(0), "changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_sign_in_or_refresh_is_no_visit() {
    let (app, ada, tokens) = start().await;
    long_ago(&app, 40, 40).await;
    app.database
        .run("UPDATE users SET disabled_at = now()")
        .await;
    assert_eq!(app.sign_in(&ada).await.error(), "user_disabled");
    assert_eq!(app.refresh(&tokens.refresh_token()).await.status, 401);
    assert_eq!((seen(&app).await, noted(&app).await.0), (40, Some(40)));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_holds_the_user_keeps_nobody_outside() {
    let (app, ada, tokens) = start().await;
    long_ago(&app, 40, 40).await;
    let mut holder = app.database.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM users FOR NO KEY UPDATE")
        .execute(&mut *holder)
        .await
        .unwrap();
    assert_eq!(app.sign_in(&ada).await.outcome(), "signed_in");
    assert_eq!(app.refresh(&tokens.refresh_token()).await.status, 200);
    assert_eq!(
        (seen(&app).await, noted(&app).await.0),
        (0, Some(40)),
        "the next one notes it"
    );
    holder.rollback().await.unwrap();
    app.sign_in(&ada).await;
    assert_eq!(noted(&app).await.0, Some(0));
}
