//! A locked row: the time that requests wait for it, and the cost for other requests.

use std::time::{Duration, Instant};

use rocket::futures::future::join_all;
use serde_json::json;
use sqlx::{Acquire, Executor};

use crate::support::app::App;
use crate::support::token::{claims, with};

/// With this many, waits of six seconds have been measured.
const WAITERS: usize = 20;
/// One second for the queue, two for the lock, and the rest for a busy machine.
const BEARABLE: Duration = Duration::from_millis(4500);
/// Statements of single sign-ins; batches give up on a locked row after a moment.
const SIGN_IN: &str = "^-- Signs in one identity";

#[tokio::test(flavor = "multi_thread")]
async fn waiters_for_a_locked_row_share_one_timeout_and_connection() {
    let app = App::start().await;
    let ada = claims("ada", "ada@example.com");
    app.sign_in(&ada).await;
    let mut other = app.database.pool.acquire().await.unwrap();
    let mut lock = other.begin().await.unwrap();
    lock.execute("SELECT FROM users, identities FOR UPDATE")
        .await
        .unwrap();
    let changed = with(ada.clone(), &json!({ "name": "Ada King" }));
    let wait = async |_| {
        let since = Instant::now();
        (app.sign_in(&changed).await.status.as_u16(), since.elapsed())
    };
    let others = async {
        app.database.until_waiting(1, SIGN_IN).await;
        for number in 0..WAITERS {
            let subject = format!("bob-{number}");
            let answer = app
                .sign_in(&claims(&subject, &format!("{subject}@example.com")))
                .await;
            assert_eq!(answer.status, 201, "{}", answer.text);
            assert!(app.database.waiting(SIGN_IN).await <= 1);
        }
    };
    for (status, took) in tokio::join!(join_all((0..WAITERS).map(wait)), others).0 {
        assert!(status == 503 && took < BEARABLE, "{status} after {took:?}");
    }
    lock.rollback().await.unwrap();
    assert_eq!(app.sign_in(&ada).await.outcome(), "signed_in");
}
