//! The service on its own port, with its own database and provider.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use figment::Figment;
use reqwest::{Method, StatusCode};
use rocket::{Build, Rocket};
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use uuid::Uuid;
use vestibule::admin::changes::{self, Change, Outcome};
use vestibule::admin::staff::api_keys;
use vestibule::app;
use vestibule::app::drain::Stop;
use vestibule::config::{self, Config};
use vestibule::domain::actor::Author;
use vestibule::domain::api_key::KeyRole;
use vestibule::keys::KeyRing;
use vestibule::prune::Limits;

use super::cluster::Database;
use super::description::assert_described;
use super::provider::Provider;
use super::token;

/// Default limits of pruning.
pub const LIMITS: Limits = Limits {
    event_days: 400,
    sessions_per_identity: 100,
    refresh_token_ttl: 30 * 86_400,
    absolute_ttl: 365 * 86_400,
};

/// Names of the providers, the default first.
pub const PROVIDERS: [&str; 4] = ["idp", "second", "third", "fourth"];

pub struct App {
    pub database: Database,
    /// The server behind all of its providers.
    pub provider: Provider,
    /// The keys in its memory.
    pub keys: KeyRing,
    /// Its base URL.
    pub url: String,
    /// Its routes: their methods, and their paths with their `<parameters>`.
    pub routes: Vec<(rocket::http::Method, String)>,
    client: reqwest::Client,
    shutdown: rocket::Shutdown,
    served: Option<JoinHandle<Result<(), app::Error>>>,
}

/// A response of the service.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
}

impl Answer {
    /// The body as JSON, or `null` if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    pub fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_default().to_owned()
    }

    pub fn outcome(&self) -> String {
        self.json()["outcome"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub fn access_token(&self) -> String {
        self.json()["access_token"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub fn refresh_token(&self) -> String {
        self.json()["refresh_token"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// The claims of the access token, as text.
    pub fn payload_text(&self) -> String {
        let token = self.access_token();
        String::from_utf8(
            URL_SAFE_NO_PAD
                .decode(token.split('.').nth(1).unwrap())
                .unwrap(),
        )
        .unwrap()
    }

    /// The claims of the access token.
    pub fn payload(&self) -> Value {
        serde_json::from_str(&self.payload_text()).unwrap()
    }

    pub fn user_id(&self) -> String {
        self.json()["user"]["id"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub fn user(&self) -> Uuid {
        self.user_id().parse().unwrap()
    }

    /// The identity that the session was opened with.
    pub fn identity_id(&self) -> String {
        self.json()["identity"]["id"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub fn identity(&self) -> Uuid {
        self.identity_id().parse().unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl App {
    pub async fn start() -> Self {
        Self::start_with(|figment| figment).await
    }

    pub async fn start_with(settings: impl FnOnce(Figment) -> Figment) -> Self {
        let database = Database::create().await;
        Self::start_on(database, settings).await
    }

    /// Hands the database over to another instance.
    pub fn release(mut self) -> Database {
        std::mem::replace(&mut self.database, Database::gone())
    }

    pub async fn start_on(database: Database, settings: impl FnOnce(Figment) -> Figment) -> Self {
        Self::start_altered(database, settings, |rocket| rocket).await
    }

    /// Starts another instance on a database.
    pub async fn start_beside(
        database: &Database,
        settings: impl FnOnce(Figment) -> Figment,
    ) -> Self {
        let url = database.url.clone();
        let settings = |figment: Figment| settings(figment.merge(("databases.vestibule.url", url)));
        Self::start_on(Database::gone(), settings).await
    }

    /// Starts the service with further routes or fairings.
    pub async fn start_altered(
        database: Database,
        settings: impl FnOnce(Figment) -> Figment,
        alter: impl FnOnce(Rocket<Build>) -> Rocket<Build>,
    ) -> Self {
        let provider = Provider::start().await;
        let figment = settings(figment(&database.url, &provider.tokeninfo_url()));
        let config = Config::read(figment).expect("the settings are sound");
        app::migrate(&config.figment)
            .await
            .expect("the schema is current");
        let (rocket, start) = app::build(config).await.expect("the service builds");
        let rocket = alter(rocket);
        start.open().await.expect("the service starts");
        let keys = rocket.state::<KeyRing>().expect("it has keys").clone();
        let routes = rocket
            .routes()
            .map(|route| (route.method, route.uri.path().to_owned()))
            .collect();
        let (lifted_off, running) = oneshot::channel();
        let served = tokio::spawn(app::launch(
            rocket,
            Stop::listen().unwrap(),
            move |rocket| {
                let _ = lifted_off.send((
                    rocket.config().address,
                    rocket.config().port,
                    rocket.shutdown(),
                ));
            },
        ));
        let Ok((address, port, shutdown)): Result<(IpAddr, u16, _), _> = running.await else {
            panic!("the service does not start: {:?}", served.await)
        };
        Self {
            url: format!("http://{address}:{port}"),
            client: reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .build()
                .unwrap(),
            database,
            provider,
            keys,
            routes,
            shutdown,
            served: Some(served),
        }
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: Option<&str>,
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        let headers: Vec<_> = content_type
            .into_iter()
            .map(|its| ("Content-Type", its))
            .collect();
        self.send_with(method, path, &headers, body).await
    }

    /// Sends a request with these headers. Asserts that the API's description contains the
    /// response.
    pub async fn send_with(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        let request = self
            .client
            .request(method.clone(), format!("{}{path}", self.url))
            .body(body);
        let request = headers.iter().fold(request, |request, (name, value)| {
            request.header(*name, *value)
        });
        let answer = Self::answer(request.send().await.expect("the service answers")).await;
        // Not in benchmarks, which would measure it.
        if cfg!(debug_assertions) {
            assert_described(method.as_str(), path, &answer);
        }
        answer
    }

    pub async fn answer(response: reqwest::Response) -> Answer {
        let status = response.status();
        let headers = response.headers().clone();
        Answer {
            status,
            headers,
            text: response.text().await.unwrap(),
        }
    }

    /// Sends a request as the user of an access token.
    pub async fn as_user(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Answer {
        let bearer = format!("Bearer {token}");
        let media_type = body.map(|_| ("Content-Type", "application/json"));
        let headers: Vec<_> = [("Authorization", &*bearer)]
            .into_iter()
            .chain(media_type)
            .collect();
        self.send_with(
            method,
            path,
            &headers,
            body.map(Value::to_string).unwrap_or_default(),
        )
        .await
    }

    pub async fn api_key(&self, name: &str, role: KeyRole) -> String {
        let name = name.parse().unwrap();
        let added = api_keys::add(
            &self.database.service,
            &name,
            role,
            None,
            Author::COMMAND_LINE,
        )
        .await;
        added.unwrap().expect("a new name").expose().clone()
    }

    pub async fn get(&self, token: &str, path: &str) -> Answer {
        self.as_user(token, Method::GET, path, None).await
    }

    pub async fn delete(&self, token: &str, path: &str) -> Answer {
        self.as_user(token, Method::DELETE, path, None).await
    }

    pub async fn refresh(&self, token: &str) -> Answer {
        self.post_to("/api/v1/auth/refresh", &json!({ "refresh_token": token }))
            .await
    }

    pub async fn post_to(&self, path: &str, body: &Value) -> Answer {
        self.send(
            Method::POST,
            path,
            Some("application/json"),
            body.to_string(),
        )
        .await
    }

    /// Ends the sessions in a scope: `local`, `others` or `global`.
    pub async fn sign_out(&self, token: &str, scope: &str) -> Answer {
        self.as_user(
            token,
            Method::POST,
            &format!("/api/v1/auth/logout?scope={scope}"),
            None,
        )
        .await
    }

    /// Makes all sessions older.
    pub async fn age(&self, seconds: f64) {
        let older = "UPDATE sessions SET created_at = created_at - $1 * interval '1 second'";
        run!(&self.database.pool, older, seconds);
    }

    /// Skips the 30 seconds in which a repeated refresh gets the same token.
    pub async fn half_a_minute_later(&self) {
        self.database
            .run("UPDATE sessions SET rotated_at = rotated_at - interval '31 seconds'")
            .await;
    }

    /// Sends requests that call the provider, which responds once all calls have arrived.
    pub async fn together<T>(
        &self,
        requests: impl ExactSizeIterator<Item = impl Future<Output = T>>,
    ) -> Vec<T> {
        self.provider.holding(requests.len(), requests).await
    }

    pub async fn post(&self, provider: &str, body: &Value) -> Answer {
        self.post_to(&format!("/api/v1/auth/oauth/{provider}"), body)
            .await
    }

    /// Signs in, again after a 503, as a client does: on a busy machine, the last of many sign-ins
    /// at once does not always get a connection in time.
    pub async fn post_until_served(&self, provider: &str, id_token: &str) -> Answer {
        let body = json!({ "id_token": id_token });
        let mut answer = self.post(provider, &body).await;
        for _ in 0..20 {
            if answer.status != 503 {
                break;
            }
            answer = self.post(provider, &body).await;
        }
        answer
    }

    /// Signs in at a provider that returns these claims for the token.
    pub async fn sign_in_at(&self, provider: &str, claims: &Value) -> Answer {
        let token = self.token(claims);
        self.post(provider, &json!({ "id_token": token })).await
    }

    pub async fn sign_in(&self, claims: &Value) -> Answer {
        self.sign_in_at("idp", claims).await
    }

    /// Links an identity, which a provider proves with these claims, to that user.
    pub async fn link(&self, token: &str, provider: &str, claims: &Value) -> Answer {
        let body = json!({ "id_token": self.token(claims) });
        self.as_user(
            token,
            Method::POST,
            &format!("/api/v1/me/identities/{provider}"),
            Some(&body),
        )
        .await
    }

    /// Merges the user whose identity a provider proves, with these claims, into that user.
    pub async fn merge(&self, token: &str, provider: &str, claims: &Value) -> Answer {
        let body = json!({ "provider": provider, "id_token": self.token(claims) });
        self.as_user(token, Method::POST, "/api/v1/me/merge", Some(&body))
            .await
    }

    /// Makes a change to users as staff who have not seen its preview.
    pub async fn by_staff(&self, change: Change) -> Option<Outcome> {
        made(
            &self.database.pool,
            change,
            None,
            Author {
                reason: Some("asked"),
                ..Author::COMMAND_LINE
            },
        )
        .await
    }

    /// A token for which the provider returns these claims.
    pub fn token(&self, claims: &Value) -> String {
        self.provider.token(claims.clone())
    }

    /// Stops the service as a signal does, and waits for its end.
    pub async fn stop(&mut self) {
        self.shutdown.clone().notify();
        if let Some(served) = self.served.take() {
            served.await.expect("no panic").expect("a clean end");
        }
    }
}

impl Drop for App {
    fn drop(&mut self) {
        if let Some(served) = self.served.take() {
            served.abort();
        }
    }
}

/// The settings of the tests, complete.
pub fn figment(database_url: &str, tokeninfo_url: &str) -> Figment {
    let provider = |name: &str| {
        json!({
            "client_id": token::CLIENT_ID, "tokeninfo_url": tokeninfo_url, "token_format": "jwt",
            "issuers": if name == "idp" { token::ISSUER.to_owned() } else { format!("https://{name}.example") },
        })
    };
    let [main, others @ ..] = PROVIDERS;
    let others: serde_json::Map<_, _> = others
        .iter()
        .map(|name| ((*name).to_owned(), provider(name)))
        .collect();
    config::defaults()
        .merge(("port", 0))
        .merge(("workers", 2))
        .merge(("public_url", "http://127.0.0.1:8000"))
        .merge(("secret_key", "a secret key that only the tests use"))
        .merge(("databases.vestibule.url", database_url))
        .merge(("rate_limit.enabled", false))
        .merge(("idp", provider(main)))
        .merge(("providers", others))
}

/// Makes a change, whose objects must still be as `seen`, if given. Returns `None` if the users or
/// the identity do not exist.
pub async fn made(
    pool: &PgPool,
    change: Change,
    seen: Option<&str>,
    by: Author<'_>,
) -> Option<Outcome> {
    let database = pool.clone().into();
    let preview = changes::preview(&database, change, by.actor)
        .await
        .unwrap()?;
    Some(changes::make(&database, &preview, seen, by).await.unwrap())
}
