//! The database gives a transaction up for the sake of another.

use crate::support::app::App;
use crate::support::token::claims;

/// Makes so many inserts of an event fail as PostgreSQL does when transactions are at odds.
async fn fail(app: &App, code: &str, times: i64) {
    let statements = [
        "DROP TRIGGER IF EXISTS conflict ON events".to_owned(),
        "DROP SEQUENCE IF EXISTS failures".into(),
        "CREATE SEQUENCE failures".into(),
        format!(
            "CREATE OR REPLACE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 -- A sequence counts on although the transaction is rolled back.
                 IF nextval('failures') <= {times} THEN RAISE EXCEPTION 'at odds' USING ERRCODE = '{code}'; END IF;
                 RETURN NEW;
             END $$"
        ),
        "CREATE TRIGGER conflict BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION conflict()".into(),
    ];
    for sql in statements {
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&app.database.pool).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_is_run_again_three_times_and_then_the_client_is_told_to_come_back() {
    let app = App::start().await;
    for (number, code) in ["40001", "40P01"].into_iter().enumerate() {
        let subject = format!("subject-{number}");
        let claims = claims(&subject, &format!("{subject}@example.com"));
        let before = app.database.rows().await;

        fail(&app, code, i64::MAX).await;
        let refused = app.sign_in(&claims).await;
        assert_eq!(
            (refused.status.as_u16(), refused.error().as_str()),
            (503, "service_unavailable"),
            "{code}"
        );
        assert!(refused.header("retry-after").is_some(), "{code}");
        assert_eq!(
            app.database.count("SELECT last_value FROM failures").await,
            5,
            "{code}: with others, then by itself once and three times more"
        );
        assert_eq!(app.database.rows().await, before, "{code}: nothing is half done");

        fail(&app, code, 3).await;
        assert_eq!(app.sign_in(&claims).await.outcome(), "created", "{code}");
        assert_eq!(app.database.rows().await, before.map(|rows| rows + 1), "{code}: and done once");
    }
}
