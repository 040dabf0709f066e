//! A client that makes changes of all kinds to its own users, one after the other, and records the
//! committed changes.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::sleep;
use uuid::Uuid;

use super::message_type;
use crate::support::provider::Provider;
use crate::support::token;

/// The attempts at a request, and the pause in between.
const ATTEMPTS: u32 = 2_400;
const PAUSE: Duration = Duration::from_millis(50);

/// What all clients share: the service, its provider, and the counts.
#[derive(Clone)]
pub struct Shared {
    pub url: String,
    pub api_key: String,
    pub provider: Arc<Provider>,
    pub pool: PgPool,
    /// Receives a signal for each change.
    pub changes: UnboundedSender<()>,
    /// The requests without an answer.
    pub unanswered: Arc<AtomicUsize>,
}

#[derive(Debug, Clone)]
pub struct Change {
    pub id: Uuid,
    pub users: Vec<Uuid>,
    /// The number of the request after which the change was found. Changes of one request have no
    /// order.
    pub step: usize,
}

/// A response to a sign-in.
struct Session {
    access: String,
    refresh: String,
    user: Uuid,
    identity: String,
}

impl Session {
    fn new(answer: &Value) -> Self {
        let text = |value: &Value| {
            value
                .as_str()
                .unwrap_or_else(|| panic!("{answer}"))
                .to_owned()
        };
        Self {
            access: text(&answer["access_token"]),
            refresh: text(&answer["refresh_token"]),
            user: text(&answer["user"]["id"]).parse().unwrap(),
            identity: text(&answer["identity"]["id"]),
        }
    }

    fn id(&self) -> String {
        let payload = URL_SAFE_NO_PAD
            .decode(self.access.split('.').nth(1).unwrap())
            .unwrap();
        serde_json::from_slice::<Value>(&payload).unwrap()["sid"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

/// An account at the provider.
struct Account {
    subject: String,
    token: String,
}

/// The id, the kind, the reason, the user and the other user of an event.
type Event = (Uuid, String, Option<String>, Uuid, Option<String>);

/// Returns the status and the body of a response, or `None` if it is incomplete.
async fn answer(request: reqwest::RequestBuilder) -> Option<(u16, Value)> {
    let answer = request.send().await.ok()?;
    let status = answer.status().as_u16();
    Some((
        status,
        serde_json::from_str(&answer.text().await.ok()?).unwrap_or_default(),
    ))
}

pub struct Person {
    shared: Shared,
    client: reqwest::Client,
    number: usize,
    /// The users of this round.
    users: Vec<Uuid>,
    seen: HashSet<Uuid>,
    step: usize,
    pub ledger: Vec<Change>,
    /// The latest refresh token of each session that nothing has ended.
    pub kept: Vec<String>,
}

impl Person {
    pub fn new(shared: Shared, number: usize) -> Self {
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(20))
            .build()
            .unwrap();
        let users = Vec::new();
        let seen = HashSet::new();
        let ledger = Vec::new();
        let kept = Vec::new();
        Self {
            shared,
            client,
            number,
            users,
            seen,
            step: 0,
            ledger,
            kept,
        }
    }

    /// Repeats a request until there is a response, and returns it. If the change was made and its
    /// response was lost, the repetition may get 401 or 404, since its object is gone.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        bearer: Option<&str>,
        body: Option<&Value>,
        wanted: &[u16],
    ) -> Value {
        for attempt in 0..ATTEMPTS {
            let mut request = self
                .client
                .request(method.clone(), format!("{}{path}", self.shared.url));
            if let Some(bearer) = bearer {
                request = request.bearer_auth(bearer);
            }
            if let Some(body) = body {
                request = request
                    .header("Content-Type", "application/json")
                    .body(body.to_string());
            }
            if let Some((status, answer)) = answer(request).await {
                // A 503: the database is recovering, or a connection broke and the change may have
                // been made.
                if status != 503 {
                    let repeated = attempt > 0 && [401, 404].contains(&status);
                    assert!(
                        wanted.contains(&status) || repeated,
                        "{method} {path}: {status} {answer}"
                    );
                    return answer;
                }
            } else {
                self.shared.unanswered.fetch_add(1, Ordering::Relaxed);
            }
            sleep(PAUSE).await;
        }
        panic!("never: {method} {path} is answered")
    }

    /// Returns the events of this round's users.
    async fn events(&self) -> Vec<Event> {
        let events =
            "SELECT id, kind, reason, user_id, detail->>'from' FROM events WHERE user_id = ANY($1)";
        for _ in 0..ATTEMPTS {
            let events = sqlx::query_as(events)
                .bind(&self.users)
                .fetch_all(&self.shared.pool);
            if let Ok(events) = events.await {
                return events;
            }
            sleep(PAUSE).await;
        }
        panic!("never: the database answers")
    }

    /// Records the changes to this round's users that the database has committed since the last
    /// call. They must include a change of this kind, which was acknowledged.
    async fn did(&mut self, kind: &str) {
        self.step += 1;
        let mut kinds = Vec::new();
        for (id, kind, reason, user, from) in self.events().await {
            let Some(message) = message_type(&kind, reason.as_deref()) else {
                continue;
            };
            if self.seen.insert(id) {
                let from = from.filter(|_| ["user.merged", "identity.moved"].contains(&message));
                let users = [user]
                    .into_iter()
                    .chain(from.map(|from| from.parse().unwrap()))
                    .collect();
                self.ledger.push(Change {
                    id,
                    users,
                    step: self.step,
                });
                // The receiver is gone after a failure of the test.
                let _ = self.shared.changes.send(());
                kinds.push(kind);
            }
        }
        assert!(
            kinds.iter().any(|found| found == kind),
            "{kind} was acknowledged, and there is {kinds:?}"
        );
    }

    /// Returns an account at the provider with these claims.
    fn account(&self, subject: String, claims: Value) -> Account {
        let token = token::opaque();
        self.shared.provider.accept(&token, claims);
        Account { subject, token }
    }

    async fn sign_in(&mut self, account: &Account) -> Session {
        let body = json!({ "id_token": account.token });
        let answer = self
            .ask(
                Method::POST,
                "/api/v1/auth/oauth/idp",
                None,
                Some(&body),
                &[200, 201],
            )
            .await;
        let session = Session::new(&answer);
        if !self.users.contains(&session.user) {
            self.users.push(session.user);
        }
        session
    }

    async fn link(&mut self, session: &Session, account: &Account) -> String {
        let body = json!({ "id_token": account.token });
        let path = "/api/v1/me/identities/idp";
        let answer = self
            .ask(
                Method::POST,
                path,
                Some(&session.access),
                Some(&body),
                &[200, 201],
            )
            .await;
        self.did("identity_linked").await;
        answer["id"].as_str().unwrap().to_owned()
    }

    async fn sign_out(&mut self, session: &Session, scope: &str) {
        let path = format!("/api/v1/auth/logout?scope={scope}");
        self.ask(Method::POST, &path, Some(&session.access), None, &[204])
            .await;
        self.did("signed_out").await;
    }

    async fn refresh(&mut self, token: &str) -> String {
        let body = json!({ "refresh_token": token });
        let answer = self
            .ask(
                Method::POST,
                "/api/v1/auth/refresh",
                None,
                Some(&body),
                &[200],
            )
            .await;
        answer["refresh_token"].as_str().unwrap().to_owned()
    }

    async fn administer(
        &mut self,
        user: Uuid,
        change: &str,
        further: Option<(&str, &str)>,
        kind: &str,
    ) {
        let mut body = json!({ "reason": "the ledger" });
        if let Some((name, value)) = further {
            body[name] = json!(value);
        }
        let path = format!("/api/v1/admin/users/{user}/{change}");
        self.ask(
            Method::POST,
            &path,
            Some(&self.shared.api_key),
            Some(&body),
            &[200],
        )
        .await;
        self.did(kind).await;
    }

    async fn set_claims(&mut self, user: Uuid, claims: Value) {
        let body = json!({ "reason": "the ledger", "claims": claims });
        let path = format!("/api/v1/admin/users/{user}/claims");
        self.ask(
            Method::PUT,
            &path,
            Some(&self.shared.api_key),
            Some(&body),
            &[200],
        )
        .await;
        self.did("claims_changed").await;
    }

    /// Makes every kind of change to some users.
    pub async fn live(&mut self, round: usize) {
        self.users.clear();
        let name = |person: &str| format!("{person}-{}-{round}", self.number);
        let email = |person: &str| format!("{}@example.com", name(person));
        let known = |subject: &str, person: &str| {
            let subject = name(subject);
            let claims = token::claims(&subject, &email(person));
            self.account(subject, claims)
        };
        let phone = known("phone", "ada");
        let tablet = known("tablet", "ada");
        let third = known("third", "ada");
        let bobs = known("bobs", "bob");
        let second = known("second", "bob");
        let squatter = known("squatter", "carol");
        let owner = known("owner", "carol");
        let stays = known("stays", "dora");
        let adas_email = email("ada");
        let carols_email = email("carol");

        // A phone that stays signed in.
        let session = self.sign_in(&stays).await;
        self.did("user_created").await;
        let token = self.refresh(&session.refresh).await;
        self.kept.push(token);

        // Accounts that come and go.
        let first = self.sign_in(&phone).await;
        let ada = first.user;
        self.did("user_created").await;
        let on_tablet = self.sign_in(&tablet).await;
        assert_eq!(on_tablet.user, ada, "linked by the e-mail address");
        self.did("identity_linked").await;
        let news = json!({ "name": "Ada King" });
        let claims = token::with(token::claims(&phone.subject, &adas_email), &news);
        self.shared.provider.accept(&phone.token, claims);
        self.sign_in(&phone).await;
        self.did("user_updated").await;
        let linked = self.link(&first, &third).await;
        let path = format!("/api/v1/me/identities/{linked}");
        self.ask(Method::DELETE, &path, Some(&first.access), None, &[204])
            .await;
        self.did("identity_unlinked").await;
        self.set_claims(ada, json!({ "roles": ["author"] })).await;

        // Sessions that end.
        self.sign_out(&first, "others").await;
        self.sign_out(&first, "local").await;
        self.set_claims(ada, json!({})).await;
        self.administer(ada, "disable", None, "user_disabled").await;
        self.administer(ada, "enable", None, "user_enabled").await;
        let session = self.sign_in(&tablet).await;
        self.administer(
            ada,
            "end-session",
            Some(("session", &session.id())),
            "session_ended",
        )
        .await;
        self.sign_in(&tablet).await;
        self.administer(ada, "end-sessions", None, "sessions_ended")
            .await;
        let session = self.sign_in(&phone).await;
        let next = self.refresh(&session.refresh).await;
        self.refresh(&next).await;
        let body = json!({ "refresh_token": session.refresh });
        self.ask(
            Method::POST,
            "/api/v1/auth/refresh",
            None,
            Some(&body),
            &[401],
        )
        .await;
        self.did("refresh_token_replayed").await;
        let session = self.sign_in(&phone).await;
        self.sign_out(&session, "global").await;

        // Two users become one.
        let session = self.sign_in(&bobs).await;
        let bob = session.user;
        self.did("user_created").await;
        let identity = self.link(&session, &second).await;
        let body = json!({ "reason": "the ledger", "identity": identity, "to": ada });
        let path = format!("/api/v1/admin/users/{bob}/move");
        self.ask(
            Method::POST,
            &path,
            Some(&self.shared.api_key),
            Some(&body),
            &[200],
        )
        .await;
        self.did("identity_moved").await;
        let moved = self.sign_in(&second).await;
        assert_eq!(moved.user, ada, "it was moved");
        self.administer(
            ada,
            "unlink",
            Some(("identity", &moved.identity)),
            "identity_unlinked",
        )
        .await;
        let (from, into) = if round.is_multiple_of(2) {
            (ada, bob)
        } else {
            (bob, ada)
        };
        self.administer(
            from,
            "merge",
            Some(("into", &into.to_string())),
            "users_merged",
        )
        .await;
        self.administer(into, "disable", None, "user_disabled")
            .await;
        self.administer(into, "enable", None, "user_enabled").await;

        // A user with an unverified address, which its owner then proves.
        let unverified = json!({ "email_verified": "false" });
        let claims = token::with(token::claims(&squatter.subject, &carols_email), &unverified);
        self.shared.provider.accept(&squatter.token, claims);
        let carol = self.sign_in(&squatter).await.user;
        self.did("user_created").await;
        assert_ne!(self.sign_in(&owner).await.user, carol);
        self.did("email_lost").await;
        self.administer(carol, "delete", None, "user_deleted").await;
        let session = self.sign_in(&phone).await;
        self.ask(
            Method::DELETE,
            "/api/v1/me",
            Some(&session.access),
            None,
            &[204],
        )
        .await;
        self.did("user_deleted").await;
    }
}
