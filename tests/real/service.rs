//! One instance of the service, at the provider of a test.

use std::path::Path;

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::deploy::vestibule::Vestibule;
use crate::support::cluster::Database;

/// What the service answered to a sign-in.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub retry_after: Option<String>,
    pub body: Value,
}

impl Answer {
    pub fn error(&self) -> &str {
        self.body["error"].as_str().unwrap_or_default()
    }
}

/// An instance that does not run yet, with those settings of its provider.
pub fn at_provider(folder: &Path, database: &Database, settings: &[(&str, &str)]) -> Vestibule {
    let bare = Vestibule::bare(folder);
    let url = bare.url();
    let complete = [
        ("ROCKET_PUBLIC_URL", url.as_str()),
        ("ROCKET_SECRET_KEY", "a secret key that only the tests use"),
        ("ROCKET_WORKERS", "2"),
        ("ROCKET_RATE_LIMIT", "{enabled=false}"),
        ("DATABASE_URL", &database.url),
    ];
    let settings = complete.iter().chain(settings);
    settings.fold(bare, |instance, (name, value)| instance.with(name, value))
}

/// Signs in with a token.
pub async fn sign_in(instance: &Vestibule, id_token: &str, nonce: Option<&str>) -> Answer {
    let mut body = json!({ "id_token": id_token });
    if let Some(nonce) = nonce {
        body["nonce"] = nonce.into();
    }
    let url = format!("{}/api/v1/auth/oauth/idp", instance.url());
    let request = Client::new().post(url).header("Content-Type", "application/json").body(body.to_string());
    let answer = request.send().await.unwrap();
    let retry_after = answer.headers().get("Retry-After").map(|value| value.to_str().unwrap().to_owned());
    let status = answer.status();
    Answer { status, retry_after, body: serde_json::from_str(&answer.text().await.unwrap()).unwrap() }
}

/// What `vestibule check` prints.
pub fn check(instance: &Vestibule) -> String {
    String::from_utf8(instance.run(&["check"]).stdout).unwrap()
}
