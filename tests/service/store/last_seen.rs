//! When somebody was last seen: a day, written once, in nobody's way.

use crate::support::app::App;
use crate::support::token::{claims, with};
use serde_json::json;

/// A service whose day does not end meanwhile.
async fn start() -> App {
    let app = App::start().await;
    app.database.within_an_hour().await;
    app
}

/// Makes everybody's last day so many days ago.
async fn long_ago(app: &App, days: i32) {
    run!(&app.database.pool, "UPDATE users SET last_seen_on = current_date - $1", days);
}

/// For how many days the one user has not been seen, which version of the row says so, and whether
/// something that others decide by has changed since it was created.
async fn seen(app: &App) -> (Option<i32>, String, bool) {
    app.database
        .row("SELECT current_date - last_seen_on, xmin::text, updated_at <> created_at FROM users")
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_sign_in_or_refresh_of_a_day_is_written_and_no_other() {
    let app = start().await;
    let ada = claims("ada", "ada@example.com");
    let mut refresh_token = app.sign_in(&ada).await.refresh_token();
    assert_eq!(seen(&app).await.0, Some(0), "created");
    for by_refresh in [false, true] {
        for days in [1, 400] {
            long_ago(&app, days).await;
            let mut rows = Vec::new();
            for _ in 0..3 {
                if by_refresh {
                    refresh_token = app.refresh(&refresh_token).await.refresh_token();
                } else {
                    assert_eq!(app.sign_in(&ada).await.outcome(), "signed_in");
                }
                rows.push(seen(&app).await);
            }
            let (today, version, changed) = rows[0].clone();
            assert_eq!((today, changed), (Some(0), false), "{by_refresh}, {days} days");
            assert!(rows.iter().all(|row| row.1 == version), "{by_refresh}, {days} days: {rows:?}");
        }
    }
    app.database.run("UPDATE users SET last_seen_on = NULL").await;
    app.sign_in(&ada).await;
    assert_eq!(seen(&app).await.0, Some(0), "who was never seen");
    app.database.run("UPDATE users SET last_seen_on = current_date + 1").await;
    app.sign_in(&ada).await;
    assert_eq!(seen(&app).await.0, Some(-1), "a day never goes back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_that_links_or_changes_the_user_writes_the_day_too() {
    let app = start().await;
    let ada = claims("ada", "ada@example.com");
    app.sign_in(&ada).await;
    long_ago(&app, 7).await;
    let other = with(claims("ada-2", "ada@example.com"), &json!({ "iss": "https://second.example" }));
    assert_eq!(app.sign_in_at("second", &other).await.outcome(), "linked");
    assert_eq!(seen(&app).await.0, Some(0), "linked");
    long_ago(&app, 7).await;
    app.sign_in(&with(ada, &json!({ "email": "lovelace@example.com" }))).await;
    assert_eq!(seen(&app).await.0, Some(0), "changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_sign_in_or_refresh_is_no_visit() {
    let app = start().await;
    let ada = claims("ada", "ada@example.com");
    let tokens = app.sign_in(&ada).await;
    long_ago(&app, 7).await;
    app.database.run("UPDATE users SET disabled_at = now()").await;
    assert_eq!(app.sign_in(&ada).await.error(), "user_disabled");
    assert_eq!(app.refresh(&tokens.refresh_token()).await.status.as_u16(), 401);
    assert_eq!(seen(&app).await.0, Some(7));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_holds_the_user_keeps_nobody_outside() {
    let app = start().await;
    let ada = claims("ada", "ada@example.com");
    let tokens = app.sign_in(&ada).await;
    long_ago(&app, 7).await;
    let mut holder = app.database.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM users FOR NO KEY UPDATE").execute(&mut *holder).await.unwrap();
    assert_eq!(app.sign_in(&ada).await.outcome(), "signed_in");
    assert_eq!(app.refresh(&tokens.refresh_token()).await.status.as_u16(), 200);
    assert_eq!(seen(&app).await.0, Some(7), "the next one writes it");
    holder.rollback().await.unwrap();
    app.sign_in(&ada).await;
    assert_eq!(seen(&app).await.0, Some(0));
}
