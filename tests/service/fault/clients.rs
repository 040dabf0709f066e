//! Clients that disconnect, and many clients at once.

use rocket::futures::future::join_all;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::app::{App, PROVIDERS};
use crate::support::process::until;
use crate::support::token::{at, claims};

/// Returns the claims of a distinct person for each number, at one of the providers.
fn person(number: usize) -> (&'static str, serde_json::Value) {
    let provider = PROVIDERS[number % PROVIDERS.len()];
    let subject = format!("subject-{number}");
    let email = format!("person-{number}@example.com");
    let claims = if provider == "idp" {
        claims(&subject, &email)
    } else {
        at(provider, &subject, &email)
    };
    (provider, claims)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_abandoned_requests_do_not_harm_later_ones() {
    const ROUNDS: usize = 10;
    const CLIENTS: usize = 100;
    let app = App::start().await;
    let address = app.url.strip_prefix("http://").unwrap().to_owned();
    for _ in 0..ROUNDS {
        let gate = app.provider.hold();
        let mut streams = Vec::new();
        for number in 0..CLIENTS {
            let (provider, claims) = person(number);
            let body = json!({ "id_token": app.token(&claims) }).to_string();
            let mut stream = TcpStream::connect(&address).await.unwrap();
            let head = format!(
                "POST /api/v1/auth/oauth/{provider} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            stream
                .write_all(format!("{head}{body}").as_bytes())
                .await
                .unwrap();
            streams.push(stream);
        }
        gate.arrived(CLIENTS).await;
        // Half of the clients leave during the provider's call, the others while the database
        // works.
        streams.truncate(CLIENTS / 2);
        gate.release();
        drop(streams);
    }
    for round in 0..ROUNDS {
        let sign_in = async |number| {
            let (provider, claims) = person(round * CLIENTS + number);
            app.sign_in_at(provider, &claims).await
        };
        for answer in join_all((0..CLIENTS).map(sign_in)).await {
            assert!(answer.status.is_success(), "{}", answer.text);
        }
    }
    let open = "SELECT count(*) FROM pg_stat_activity
                WHERE application_name = 'vestibule' AND datname = current_database() AND xact_start IS NOT NULL";
    until("no transaction is left open", async || {
        app.database.count(open).await == 0
    })
    .await;
}
