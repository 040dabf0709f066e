//! A demoted primary that keeps its address and its connections.

use reqwest::Method;
use rocket::futures::future::join_all;
use serde_json::json;
use sqlx::{AssertSqlSafe, Executor};

use crate::support::app::App;
use crate::support::process::until;
use crate::support::token::claims;

const SIGN_INS: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn connections_to_a_demoted_primary_are_abandoned_after_the_switch() {
    let app = App::start().await;
    let person = |number: usize| {
        claims(
            &format!("subject-{number}"),
            &format!("ada-{number}@example.com"),
        )
    };
    assert_eq!(app.sign_in(&person(0)).await.status, 201);
    let mut other = app.database.pool.acquire().await.unwrap();
    let name: String = sqlx::query_scalar("SELECT current_database()")
        .fetch_one(&mut *other)
        .await
        .unwrap();

    // New connections reach a server that takes no writes, and the old connections are cut.
    let demote = format!("ALTER DATABASE {name} SET default_transaction_read_only = on");
    other.execute(AssertSqlSafe(demote)).await.unwrap();
    other
        .execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE application_name = 'vestibule' AND datname = current_database()",
        )
        .await
        .unwrap();
    let sign_in = async |number| app.sign_in(&person(number)).await.status.as_u16();
    assert_eq!(join_all((0..SIGN_INS).map(sign_in)).await, [503; SIGN_INS]);
    let ready = app.send(Method::GET, "/readyz", None, "").await;
    assert_eq!(
        (ready.status.as_u16(), &ready.json()["database"]),
        (503, &json!("read_only"))
    );

    // The address leads to the new primary, and the connections to the old one stay open.
    let promote = format!("ALTER DATABASE {name} RESET default_transaction_read_only");
    other.execute(AssertSqlSafe(promote)).await.unwrap();
    for number in 0..SIGN_INS {
        let answer = app.sign_in(&person(number)).await;
        assert!(answer.status.is_success(), "{number}: {}", answer.text);
    }
    until("it is ready", async || {
        let ready = app.send(Method::GET, "/readyz", None, "").await;
        ready.status.is_success()
    })
    .await;
}
