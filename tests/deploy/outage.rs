//! Clients get a problem with a `Retry-After` while no instance is ready. An instance that responds
//! slowly counts as ready.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use vestibule::dev::postgres::{Options, Postgres};

use crate::deploy::haproxy::HaProxy;
use crate::deploy::nginx::Nginx;
use crate::deploy::phone;
use crate::deploy::tools::{alone, folder};
use crate::deploy::vestibule::Vestibule;
use crate::support::provider::Provider;
use crate::support::token;

/// Delay of a slow readiness response, longer than the interval between two checks.
const SLOWLY: Duration = Duration::from_millis(700);

fn root() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("deploy-outage")
}

/// Starts an empty PostgreSQL that the test can stop.
pub fn new_server() -> Postgres {
    let _ = fs::remove_dir_all(root());
    server()
}

/// Starts that PostgreSQL again.
pub fn server() -> Postgres {
    Postgres::start(&Options {
        durable: false,
        ..Options::new(root())
    })
    .unwrap()
}

/// Asserts that a proxy returned the service's own problem, with a `Retry-After`.
async fn told_to_wait(answer: Response, status: u16, error: &str) {
    assert_eq!(answer.status(), status);
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    assert!(
        header("content-type").starts_with("application/problem+json"),
        "{answer:?}"
    );
    let seconds: u32 = header("retry-after").parse().unwrap();
    assert!((1..=5).contains(&seconds), "{seconds}");
    let problem: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    for member in ["type", "title", "status", "detail", "error", "request_id"] {
        assert!(!problem[member].is_null(), "{member}: {problem}");
    }
    assert_eq!(problem["error"], error);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_database_the_service_answers_for_itself_behind_haproxy() {
    let _alone = alone().await;
    let folder = folder("outage");
    let postgres = new_server();
    postgres.ensure_database("outage").unwrap();
    let provider = Arc::new(Provider::start().await);
    let url = postgres.url("outage");
    let instances = Vestibule::two(&folder, &url, &provider, &[]).await;
    let Some(proxy) = HaProxy::start(&folder, &instances, &[]).await else {
        return;
    };
    let client = proxy.site.client().build().unwrap();
    let url = proxy.site.url();
    let token = provider.token(token::claims("subject", "ada@example.com"));
    let session = phone::sign_in(&client, &url, &token).await.unwrap();

    postgres.stop();
    proxy.sees(0).await;
    let keys = client.get(format!("{url}/.well-known/jwks.json"));
    let keys = phone::ask(keys, "the keys").await.unwrap();
    assert!(!keys["keys"].as_array().unwrap().is_empty(), "{keys}");
    for (path, body) in [
        ("/api/v1/auth/oauth/idp", json!({ "id_token": token })),
        (
            "/api/v1/auth/refresh",
            json!({ "refresh_token": session["refresh_token"] }),
        ),
    ] {
        let answer = phone::post(&client, &url, path, &body)
            .send()
            .await
            .unwrap();
        told_to_wait(answer, 503, "service_unavailable").await;
    }

    let _postgres = server();
    proxy.sees(2).await;
    phone::refresh(&client, &url, &session)
        .await
        .expect("all is as it was");
}

/// Responds to every request with 200, but slowly.
async fn dawdle(port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n")
                && stream.read_buf(&mut request).await.is_ok_and(|n| n > 0)
            {}
            tokio::time::sleep(SLOWLY).await;
            // The client may have gone.
            drop(
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    .await,
            );
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn haproxy_takes_a_slow_readiness_response_as_ready() {
    let _alone = alone().await;
    let folder = folder("dawdle");
    let instances = [Vestibule::bare(&folder), Vestibule::bare(&folder)];
    for instance in &instances {
        tokio::spawn(dawdle(instance.port));
    }
    // This returns once HAProxy has found both to be ready.
    HaProxy::start(&folder, &instances, &[]).await;
}

/// A sign-in with a token that the provider does not know.
fn sign_in(client: &Client, url: &str) -> RequestBuilder {
    phone::post(
        client,
        url,
        "/api/v1/auth/oauth/idp",
        &json!({ "id_token": token::opaque() }),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_serves_phones_behind_one_address_and_answers_excess_with_429() {
    let _alone = alone().await;
    let folder = folder("many");
    let postgres = new_server();
    postgres.ensure_database("many").unwrap();
    let provider = Arc::new(Provider::start().await);
    let url = postgres.url("many");
    let instances = Vestibule::two(&folder, &url, &provider, &[("IDP_MAX_CALLS", "200")]).await;
    for (changes, phones) in [
        (&[][..], 120),
        // The same with a limit that is soon reached.
        (
            &[("limit_conn vestibule 300;", "limit_conn vestibule 2;")],
            2,
        ),
    ] {
        let Some(proxy) = Nginx::start(&folder, &instances, changes).await else {
            return;
        };
        let client = || proxy.site.client().build().unwrap();
        let url = proxy.site.url();
        // Each phone has its own open connection. All share one address.
        let clients: Vec<_> = (0..phones).map(|_| client()).collect();
        for client in &clients {
            client.get(format!("{url}/livez")).send().await.unwrap();
        }
        let gate = provider.hold();
        let waiting: Vec<_> = clients
            .iter()
            .map(|client| tokio::spawn(sign_in(client, &url).send()))
            .collect();
        gate.arrived(phones).await;
        if !changes.is_empty() {
            let answer = sign_in(&client(), &url).send().await.unwrap();
            told_to_wait(answer, 429, "rate_limited").await;
        }
        gate.release();
        for answer in waiting {
            assert_eq!(
                answer.await.unwrap().unwrap().status(),
                401,
                "each is served"
            );
        }
    }
}
