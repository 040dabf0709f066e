//! The daily requests of apps: sign in, read, refresh. Each of them must succeed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::provider::Provider;
use crate::support::token;

/// Sends a request, and returns the body of its successful response, or describes the failure.
pub async fn ask(request: RequestBuilder, what: &str) -> Result<Value, String> {
    let answer = request
        .send()
        .await
        .map_err(|error| format!("{what}: {error:?}"))?;
    let status = answer.status();
    let text = answer
        .text()
        .await
        .map_err(|error| format!("{what}: {error:?}"))?;
    let good = status
        .is_success()
        .then(|| serde_json::from_str(&text).unwrap_or_default());
    good.ok_or_else(|| format!("{what}: {status} {text}"))
}

pub fn post(client: &Client, url: &str, path: &str, body: &Value) -> RequestBuilder {
    client
        .post(format!("{url}{path}"))
        .header("Content-Type", "application/json")
        .body(body.to_string())
}

pub async fn sign_in(client: &Client, url: &str, token: &str) -> Result<Value, String> {
    ask(
        post(
            client,
            url,
            "/api/v1/auth/oauth/idp",
            &json!({ "id_token": token }),
        ),
        "sign-in",
    )
    .await
}

pub async fn refresh(client: &Client, url: &str, session: &Value) -> Result<Value, String> {
    let body = json!({ "refresh_token": session["refresh_token"] });
    ask(post(client, url, "/api/v1/auth/refresh", &body), "refresh").await
}

/// Reads a resource as the user who signed in with this response.
pub async fn read(
    client: &Client,
    url: &str,
    session: &Value,
    path: &str,
) -> Result<Value, String> {
    let token = session["access_token"].as_str().unwrap();
    ask(client.get(format!("{url}{path}")).bearer_auth(token), path).await
}

/// The address that the service recorded for a session.
pub async fn address(client: &Client, url: &str, session: &Value) -> Value {
    let sessions = read(client, url, session, "/api/v1/me/sessions")
        .await
        .unwrap();
    let mut sessions = sessions["sessions"].as_array().unwrap().iter();
    sessions.find(|session| session["current"] == true).unwrap()["ip"].clone()
}

/// Users who sign in, read and refresh until they are stopped.
pub struct PhoneUsers {
    phones: JoinSet<Result<(), String>>,
    done: Arc<AtomicBool>,
    answers: Arc<AtomicUsize>,
}

impl PhoneUsers {
    /// Starts one user for each client.
    pub fn start(clients: Vec<Client>, url: &str, provider: &Arc<Provider>) -> Self {
        let done = Arc::<AtomicBool>::default();
        let answers = Arc::<AtomicUsize>::default();
        let mut phones = JoinSet::new();
        for (number, client) in clients.into_iter().enumerate() {
            let url = url.to_owned();
            let provider = provider.clone();
            let done = done.clone();
            let answers = answers.clone();
            phones.spawn(async move {
                let email = format!("{number}@example.com");
                let token = provider.token(token::claims(&format!("phone-{number}"), &email));
                while !done.load(Ordering::Relaxed) {
                    let mut session = sign_in(&client, &url, &token).await?;
                    for _ in 0..3 {
                        let me = read(&client, &url, &session, "/api/v1/me").await?;
                        assert_eq!(me["email"], json!(email));
                        session = refresh(&client, &url, &session).await?;
                        answers.fetch_add(2, Ordering::Relaxed);
                    }
                    answers.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            });
        }
        Self {
            phones,
            done,
            answers,
        }
    }

    pub fn answers(&self) -> usize {
        self.answers.load(Ordering::Relaxed)
    }

    /// Stops them, and fails the test if a request of any of them failed.
    pub async fn stop(self) -> usize {
        self.done.store(true, Ordering::Relaxed);
        let bad: Vec<_> = self
            .phones
            .join_all()
            .await
            .into_iter()
            .filter_map(Result::err)
            .collect();
        assert!(bad.is_empty(), "{bad:#?}");
        self.answers.load(Ordering::Relaxed)
    }
}
