//! A PostgreSQL that ends the service's connections, as one does that is restarted.

use std::sync::Arc;

use sqlx::Executor;
use tokio::task::JoinSet;

use crate::support::app::App;
use crate::support::token::claims;

#[tokio::test(flavor = "multi_thread")]
async fn no_reader_notices_that_connections_were_cut() {
    let app = Arc::new(App::start().await);
    let signed_in = app.sign_in(&claims("subject", "ada@example.com")).await.json();
    let token = signed_in["access_token"].as_str().unwrap();
    for path in ["/api/v1/me", "/api/v1/me/identities", "/api/v1/me/sessions"] {
        let mut requests = JoinSet::new();
        for _ in 0..8 {
            let (app, token) = (app.clone(), token.to_owned());
            requests.spawn(async move { app.get(&token, path).await.status.as_u16() });
        }
        assert_eq!(requests.join_all().await, [200; 8], "there are several connections");
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE application_name = 'vestibule' AND datname = current_database()";
        app.database.pool.execute(cut).await.unwrap();
        let answer = app.get(token, path).await;
        assert!(answer.status.is_success(), "{path}: {}", answer.text);
    }
}
