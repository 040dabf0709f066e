//! Reports of providers about their accounts, and their effects.

mod effects;
mod history;
mod judgement;
mod limits;
mod proofs;
mod races;
mod refusals;

use figment::Figment;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::app::{Answer, App};
use crate::support::cluster::Database;
use crate::support::provider::{Behaviour, Provider};
use crate::support::signer::{Signer, jwks};
use crate::support::token::{CLIENT_ID, at, now};

/// The provider that sends messages, and the issuer of its tokens.
const NAME: &str = "second";
const ISSUER: &str = "https://second.example";
/// The issuer of its messages; like Google's, it ends with a slash.
const SENDER: &str = "https://second.example/";
const EVENTS: &str = "/api/v1/providers/second/events";
const MEDIA_TYPE: &str = "application/secevent+jwt";

const RISC: &str = "https://schemas.openid.net/secevent/risc/event-type";
const CAEP: &str = "https://schemas.openid.net/secevent/caep/event-type";
const OAUTH: &str = "https://schemas.openid.net/secevent/oauth/event-type";

/// An app with a provider that signs messages with keys of the tests.
struct EventsApp {
    app: App,
    /// The server of the keys.
    keys: Provider,
    /// The server of the metadata, which contains the issuer and the keys' URL.
    transmitter: Provider,
}

impl EventsApp {
    async fn open() -> Self {
        Self::open_on(Database::create().await).await
    }

    async fn open_on(database: Database) -> Self {
        Self::open_with(database, |figment| figment).await
    }

    /// Like `open`, with further settings.
    async fn open_with(database: Database, settings: impl FnOnce(Figment) -> Figment) -> Self {
        let (keys, transmitter) = transmitter().await;
        let ssf_url = format!("{}/.well-known/risc-configuration", transmitter.url());
        let settings =
            |figment: Figment| settings(figment.merge(("providers.second.ssf_url", ssf_url)));
        Self {
            app: App::start_on(database, settings).await,
            keys,
            transmitter,
        }
    }

    /// Signs in with an account of the provider.
    async fn sign_in(&self, subject: &str) -> Answer {
        self.app.sign_in_at(NAME, &account(subject)).await
    }

    /// Sends a message.
    async fn send(&self, token: &str) -> Answer {
        self.app
            .send(Method::POST, EVENTS, Some(MEDIA_TYPE), token.to_owned())
            .await
    }

    /// Sends a genuine message and asserts that it is accepted.
    async fn tell(&self, claims: &Value) {
        let answer = self.send(&genuine(claims)).await;
        assert_eq!(
            (answer.status.as_u16(), answer.text.as_str()),
            (202, ""),
            "{claims}"
        );
    }

    /// Sends a genuine RISC event about an account.
    async fn risc(&self, event: &str, subject: &str) {
        self.tell(&message(&format!("{RISC}/{event}"), subject, &json!({})))
            .await;
    }

    /// Reports an account as hijacked.
    async fn hijacked(&self, subject: &str) {
        let reason = json!({ "reason": "hijacking" });
        self.tell(&message(
            &format!("{RISC}/account-disabled"),
            subject,
            &reason,
        ))
        .await;
    }

    /// Returns everything that a message may change about an account.
    async fn state(&self, subject: &str) -> State {
        let row: (i64, bool, Option<String>) = sqlx::query_as(
            "SELECT (SELECT count(*) FROM sessions s WHERE s.identity_id = i.id AND s.ended_at IS NULL),
                    i.suspended_at IS NOT NULL, i.suspended_reason
             FROM identities i WHERE i.provider = $1 AND i.subject = $2",
        )
        .bind(NAME)
        .bind(subject)
        .fetch_one(&self.app.database.pool)
        .await
        .unwrap();
        State {
            sessions: row.0,
            suspended: row.1,
            why: row.2,
        }
    }

    /// Returns the events recorded for messages, oldest first: reason, user and detail.
    async fn recorded(&self) -> Vec<(String, Option<uuid::Uuid>, Value)> {
        self.app
            .database
            .all("SELECT reason, user_id, detail FROM events WHERE kind = 'provider_event' ORDER BY id")
            .await
    }

    /// Returns the number of messages whose id is stored.
    async fn known(&self) -> i64 {
        self.app
            .database
            .count("SELECT count(*) FROM provider_events")
            .await
    }
}

/// Starts the server of the keys, and the server of the metadata.
async fn transmitter() -> (Provider, Provider) {
    let keys = Provider::start().await;
    let transmitter = Provider::start().await;
    keys.behave(Behaviour::Json(jwks(&[
        Signer::Ec.jwk(),
        Signer::Rsa.jwk(),
    ])));
    let jwks_uri = format!("{}/keys", keys.url());
    transmitter.behave(Behaviour::Json(
        json!({ "issuer": SENDER, "jwks_uri": jwks_uri }),
    ));
    (keys, transmitter)
}

/// The state of an account that messages change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    sessions: i64,
    suspended: bool,
    why: Option<String>,
}

/// Returns the claims of an account's token.
fn account(subject: &str) -> Value {
    at(NAME, subject, &format!("{subject}@example.com"))
}

/// Returns the claims of a message with one event about an account.
fn message(event: &str, subject: &str, more: &Value) -> Value {
    let subject = json!({ "subject_type": "iss-sub", "iss": SENDER, "sub": subject });
    let mut event_claims = json!({ "subject": subject });
    for (name, value) in more.as_object().unwrap() {
        event_claims[name] = value.clone();
    }
    json!({
        "iss": SENDER, "aud": CLIENT_ID, "iat": now(), "jti": uuid::Uuid::now_v7().to_string(),
        "events": { event: event_claims },
    })
}

/// Signs a message with the provider's key.
fn genuine(claims: &Value) -> String {
    Signer::Ec.token_with(&header(Signer::Ec), claims)
}

fn header(signer: Signer) -> Value {
    json!({ "alg": signer.alg(), "typ": "secevent+jwt", "kid": signer.kid() })
}

/// Asserts that the message is refused with this error, in the form of RFC 8935.
#[track_caller]
fn assert_refused(answer: &Answer, err: &str) {
    assert_eq!(answer.status, 400, "{err}: {}", answer.text);
    assert_eq!(
        answer.header("Content-Type"),
        Some("application/json; charset=utf-8"),
        "{err}"
    );
    assert_eq!(answer.header("Cache-Control"), Some("no-store"), "{err}");
    assert_eq!(answer.header("Content-Language"), Some("en"), "{err}");
    let body = answer.json();
    let mut members: Vec<_> = body
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    members.sort_unstable();
    assert_eq!(
        (&*members, &body["err"]),
        (&["description", "err"][..], &json!(err)),
        "{body}"
    );
}
