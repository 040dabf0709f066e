//! Registration for a provider's security events: Google's RISC API ("Protect user accounts with Cross-Account Protection"),
//! and streams of OpenID Shared Signals Framework 1.0 §8.1. An operator runs this by hand.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::time::timeout;
use url::Url;

use super::answer::{self, DEADLINE};
use super::{Provider, attempt};
use crate::config::Preset;
use crate::domain::json::Object;
use crate::domain::secure_url::secure;
use crate::domain::service_account::ServiceAccount;
use crate::domain::signing::NotSigned;
use crate::domain::text::printable;
use crate::secret::Secret;

const GOOGLE: &str = "https://risc.googleapis.com/v1beta/stream";
/// The audience of tokens for Google's RISC API.
const GOOGLE_AUDIENCE: &str = "https://risc.googleapis.com/google.identity.risc.v1beta.RiscManagementService";
const GOOGLE_PUSH: &str = "https://schemas.openid.net/secevent/risc/delivery-method/push";
const PUSH: &str = "urn:ietf:rfc:8935";
/// What a verification event repeats.
const STATE: &str = "vestibule";

/// The ends of the types of events that this service acts on, at Google and everywhere.
const GOOGLE_EVENTS: [&str; 7] = [
    "risc/event-type/sessions-revoked",
    "oauth/event-type/tokens-revoked",
    "risc/event-type/account-disabled",
    "risc/event-type/account-enabled",
    "risc/event-type/account-purged",
    "risc/event-type/account-credential-change-required",
    "risc/event-type/verification",
];
const EVENTS: [&str; 9] = [
    "caep/event-type/session-revoked",
    "caep/event-type/credential-change",
    "risc/event-type/account-disabled",
    "risc/event-type/account-enabled",
    "risc/event-type/account-purged",
    "risc/event-type/account-credential-change-required",
    "risc/event-type/credential-compromise",
    "risc/event-type/identifier-changed",
    "risc/event-type/identifier-recycled",
];

/// Our right to manage the stream.
#[derive(Debug)]
pub enum Access {
    /// The key of a service account, for Google.
    ServiceAccount(ServiceAccount),
    /// A bearer token.
    Token(Secret<String>),
}

/// The task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Register the address, or change what is registered.
    Register,
    /// Return what is registered.
    Status,
    /// Have a verification event sent.
    Verify,
}

/// The reason why a task was not done, in one line.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// There is no document to look into.
    #[error("no document about the provider's events is known; set {0} to its URL")]
    NoDocument(String),
    /// The provider publishes no such interface.
    #[error("the provider's document about events names no {0}; register {1} in its console")]
    NoEndpoint(&'static str, String),
    /// No stream leads to our address.
    #[error("no stream at the provider leads to {0}; register it first")]
    NoStream(String),
    /// The provider refuses the request.
    #[error("{0} answers {1}: {2}")]
    Refused(String, u16, String),
    /// There is no usable answer.
    #[error("{0} cannot be reached, or its answer not be read: {1}")]
    Unreachable(String, String),
    /// The token was not signed.
    #[error(transparent)]
    NotSigned(#[from] NotSigned),
}

impl Provider {
    /// Does a task with the stream of events that leads to `ours`. Returns what the provider says about it, as JSON.
    pub async fn event_stream(
        &self,
        task: Task,
        ours: &str,
        access: &Access,
        now: i64,
    ) -> Result<Value, StreamError> {
        let token = match access {
            Access::ServiceAccount(account) => account.token(GOOGLE_AUDIENCE, now)?,
            Access::Token(token) => token.clone(),
        };
        let stream = Stream { provider: self, token, document: self.transmitter_document().await?, ours };
        if self.settings.kind == Preset::Google { stream.google(task).await } else { stream.any(task).await }
    }

    async fn transmitter_document(&self) -> Result<Object, StreamError> {
        let url = self.upstream.events.url.as_ref();
        let url = url.ok_or_else(|| StreamError::NoDocument(self.settings.setting("ssf_url")))?;
        match exchange(url, self.upstream.client.get(url.clone())).await? {
            Value::Object(document) => Ok(document.into()),
            _ => Err(StreamError::Unreachable(url.to_string(), "it is not a JSON object".into())),
        }
    }
}

struct Stream<'a> {
    provider: &'a Provider,
    token: Secret<String>,
    document: Object,
    ours: &'a str,
}

impl Stream<'_> {
    /// Google has one stream for each project, and methods at the end of its URL.
    async fn google(&self, task: Task) -> Result<Value, StreamError> {
        let stream = self.document.str("configuration_endpoint").unwrap_or(GOOGLE);
        let url = |end: &str| self.url("configuration_endpoint", Some(&format!("{stream}{end}")));
        match task {
            Task::Register => {
                let body = json!({
                    "delivery": { "delivery_method": GOOGLE_PUSH, "url": self.ours },
                    "events_requested": uris(&GOOGLE_EVENTS),
                });
                self.call(Method::POST, &url(":update")?, Some(body)).await
            }
            Task::Status => self.call(Method::GET, &url("")?, None).await,
            Task::Verify => self.call(Method::POST, &url(":verify")?, Some(json!({ "state": STATE }))).await,
        }
    }

    async fn any(&self, task: Task) -> Result<Value, StreamError> {
        let endpoint = |name| self.url(name, self.document.str(name));
        let streams = endpoint("configuration_endpoint")?;
        let known = match self.call(Method::GET, &streams, None).await {
            Ok(Value::Array(several)) => several,
            Ok(one) => vec![one],
            Err(StreamError::Refused(_, 404, _)) => Vec::new(),
            Err(error) => return Err(error),
        };
        let ours = known.iter().find(|stream| stream["delivery"]["endpoint_url"] == self.ours);
        let id = ours.map(|stream| stream["stream_id"].clone());
        match (task, id) {
            (Task::Register, None) => {
                let body = json!({
                    "delivery": { "method": PUSH, "endpoint_url": self.ours }, "events_requested": uris(&EVENTS),
                });
                self.call(Method::POST, &streams, Some(body)).await
            }
            (Task::Register, Some(id)) => {
                let body = json!({ "stream_id": id, "events_requested": uris(&EVENTS) });
                self.call(Method::PATCH, &streams, Some(body)).await
            }
            (_, None) => Err(StreamError::NoStream(self.ours.to_owned())),
            (Task::Status, Some(id)) => {
                let mut url = endpoint("status_endpoint")?;
                url.query_pairs_mut().append_pair("stream_id", id.as_str().unwrap_or_default());
                self.call(Method::GET, &url, None).await
            }
            (Task::Verify, Some(id)) => {
                let body = json!({ "stream_id": id, "state": STATE });
                self.call(Method::POST, &endpoint("verification_endpoint")?, Some(body)).await
            }
        }
    }

    /// Returns an endpoint, to which our token may be sent.
    fn url(&self, name: &'static str, text: Option<&str>) -> Result<Url, StreamError> {
        let url = text.and_then(|text| Url::parse(text).ok()).filter(secure);
        url.ok_or_else(|| StreamError::NoEndpoint(name, self.ours.to_owned()))
    }

    async fn call(&self, method: Method, url: &Url, body: Option<Value>) -> Result<Value, StreamError> {
        let mut request = self.provider.upstream.client.request(method, url.clone());
        request = request.bearer_auth(self.token.expose());
        if let Some(body) = body {
            request = request.header("Content-Type", "application/json").body(body.to_string());
        }
        exchange(url, request).await
    }
}

fn uris(ends: &[&str]) -> Vec<String> {
    ends.iter().map(|end| format!("https://schemas.openid.net/secevent/{end}")).collect()
}

/// Sends a request, and returns the JSON of the answer; null if it has none.
async fn exchange(url: &Url, request: RequestBuilder) -> Result<Value, StreamError> {
    let place = || url.host_str().unwrap_or_default().to_owned();
    let sent = async {
        let response = attempt::reach(request).await?;
        let status = response.status();
        let body = answer::body(response).await.map_err(|unavailable| unavailable.class().to_owned())?;
        Ok::<_, String>((status, body))
    };
    let sent = timeout(DEADLINE, sent).await.unwrap_or_else(|_| Err("no answer in time".into()));
    let (status, body) = sent.map_err(|why| StreamError::Unreachable(place(), why))?;
    if !status.is_success() {
        let said = printable(&String::from_utf8_lossy(&body), 500);
        return Err(StreamError::Refused(place(), status.as_u16(), said));
    }
    if body.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&body).map_err(|error| StreamError::Unreachable(place(), error.to_string()))
}
