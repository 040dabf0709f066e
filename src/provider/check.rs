//! Checks the configuration of a provider by sending it a worthless token. There are no retries, caches,
//! statistics or bulkheads here, because an operator runs this by hand.

use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::json;
use tokio::time::timeout;
use url::Url;

use super::answer::{self, DEADLINE};
use super::attempt::{self, Failure};
use super::authorization_code::{self, Grant, No};
use super::{Error, Providers, Unavailable, freshness, tokeninfo};
use crate::config::{CERTIFICATE, ClientAuthentication, Protocol, Provider, Verify};
use crate::domain::id_token::IdToken;
use crate::domain::introspection;
use crate::domain::issuer::Issuers;
use crate::domain::json::Object;
use crate::domain::jwk::KeySet;
use crate::domain::metadata::{Metadata, Unfit};

/// The result of one request to a provider.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The endpoint that was called.
    pub asked: &'static str,
    /// The host of its URL; the rest of the URL is not shown.
    pub host: String,
    /// The duration of the request, if one was sent.
    pub took: Option<Duration>,
    /// Seconds by which the provider's clock is ahead of ours, if it sends a date.
    pub ahead: Option<i64>,
    /// A description of the success or of the problem.
    pub outcome: Result<String, Wrong>,
    /// A possible problem that the check cannot decide.
    pub doubt: Option<Wrong>,
}

/// A problem with its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
}

impl Wrong {
    fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), remedy: remedy.into() }
    }
}

impl Providers {
    /// Calls all endpoints of a provider that a verification needs, at `now` by our clock. It sends no token
    /// of a user, and the responses are not used.
    pub async fn check(&self, provider: &Provider, now: i64) -> Vec<Finding> {
        let client = &self.outside.client;
        let mut check = Check { client, provider, now, started: Instant::now(), findings: Vec::new() };
        check.run().await;
        check.findings
    }

    /// Calls the token endpoint with a made-up code and this redirect URI, as the sign-in of staff would. It
    /// does nothing for a provider without a client secret or without such an endpoint.
    pub async fn check_code_flow(&self, provider: &Provider, redirect_uri: &str, now: i64) -> Vec<Finding> {
        let client = &self.outside.client;
        let mut check = Check { client, provider, now, started: Instant::now(), findings: Vec::new() };
        let endpoint = provider.token_url.is_some() || provider.discovery.is_some();
        if provider.client_secret.is_some() && endpoint {
            let located = async {
                let configured = provider.token_url.as_ref();
                let url =
                    self.outside.locate(provider, configured, now, |metadata| &metadata.token_url).await?;
                Ok((url.into_owned(), self.outside.token_auth(provider, now).await?))
            };
            match located.await.map_err(|error: Error| error.named(provider)) {
                Ok((url, authentication)) => check.code_flow(&url, authentication, redirect_uri).await,
                Err(error) => check.lost(CODE_FLOW, &error),
            }
        }
        check.findings
    }
}

/// The name of this check in the output.
const CODE_FLOW: &str = "staff sign-in";

struct Check<'p> {
    client: &'p Client,
    provider: &'p Provider,
    now: i64,
    started: Instant,
    findings: Vec<Finding>,
}

impl Check<'_> {
    async fn run(&mut self) {
        let provider = self.provider;
        let (asked, signed) = (provider.verify != Verify::Jwks, provider.verify != Verify::Tokeninfo);
        let discover = asked && provider.tokeninfo_url.is_none() || signed && provider.jwks_url.is_none();
        let published = match &provider.discovery {
            Some(url) if discover => self.metadata(url).await,
            _ => Some(Metadata::default()),
        };
        // The finding for the metadata has reported the problem.
        let Some(published) = published else { return };
        if signed {
            match provider.jwks_url.as_ref().or(published.jwks_url.as_ref()) {
                Some(url) => self.keys(url).await,
                None => self.unnamed("keys", "jwks_uri", "jwks_url"),
            }
        }
        if asked {
            match provider.tokeninfo_url.as_ref().or(published.introspection_url.as_ref()) {
                Some(url) => self.endpoint(url).await,
                None => self.unnamed("endpoint", "introspection_endpoint", "tokeninfo_url"),
            }
        }
    }

    async fn metadata(&mut self, url: &Url) -> Option<Metadata> {
        let (provider, setting) = (self.provider, self.provider.setting("issuer"));
        let read = async |response| {
            let document = document(response, &["application/json"], &setting).await?;
            let metadata = Metadata::read(&document, provider.issuer.as_deref().unwrap_or_default());
            let metadata = metadata.map_err(|unfit| {
                let remedy = match &unfit {
                    Unfit::Issuer(Some(issuer)) => {
                        format!("set {setting} to {issuer:?} if that is the provider's")
                    }
                    Unfit::Issuer(None) | Unfit::Endpoint => correct(&setting),
                };
                Wrong::new(unfit.to_string(), remedy)
            })?;
            Ok(("names its issuer and its endpoints".into(), metadata))
        };
        self.visit("discovery", url, &setting, self.client.get(url.clone()), read).await
    }

    async fn keys(&mut self, url: &Url) {
        // A discovered URL depends on the setting `issuer`.
        let found = self.provider.jwks_url.is_none();
        let setting = self.provider.setting(if found { "issuer" } else { "jwks_url" });
        let read = async |response| {
            let types = ["application/json", "application/jwk-set+json"];
            let keys = KeySet::read(&document(response, &types, &setting).await?);
            let keys = keys.map_err(|none| Wrong::new(format!("hold {none}"), correct(&setting)))?;
            Ok((format!("hold {} that can be used", keys.keys().len()), ()))
        };
        self.visit("keys", url, &setting, self.client.get(url.clone()), read).await;
    }

    async fn endpoint(&mut self, url: &Url) {
        let provider = self.provider;
        let found = provider.tokeninfo_url.is_none();
        let setting = provider.setting(if found { "issuer" } else { "tokeninfo_url" });
        let Some(token) = worthless(provider, self.time()) else { return };
        let read = async |response| Ok((refusal(provider, response, &setting).await?, ()));
        let question = tokeninfo::question(self.client, provider, url, &token);
        self.visit("endpoint", url, &setting, question, read).await;
        if !provider.introspects_id_tokens
            && let Some(finding) = self.findings.last_mut()
        {
            let problem =
                "may know no id_tokens: RFC 7662 speaks of access tokens, and only a sign-in shows it";
            let remedy = format!(
                "sign in once, and set {} to \"jwks\" if that is refused",
                provider.setting("verify")
            );
            finding.doubt = finding.outcome.is_ok().then(|| Wrong::new(problem, remedy));
        }
    }

    async fn code_flow(&mut self, url: &Url, authentication: ClientAuthentication, redirect_uri: &str) {
        let provider = self.provider;
        let found = provider.token_url.is_none();
        let setting = provider.setting(if found { "issuer" } else { "token_url" });
        let made_up =
            Grant { code: "vestibule-check", code_verifier: &"vestibule-check".repeat(3), redirect_uri };
        let read = async |response: Response| {
            let code = response.status().as_u16();
            match code {
                400 | 401 => {}
                200 => return Err(Wrong::new("accepts a code that was made up", correct(&setting))),
                _ => return Err(unexpected(&response, &setting)),
            }
            match authorization_code::error(response).await {
                No::Client => {
                    let Wrong { problem, remedy } = not_us(provider);
                    let token_auth = provider.setting("token_auth");
                    Err(Wrong::new(problem, format!("{remedy}; some providers need {token_auth}")))
                }
                No::Code(error) if error == "unsupported_grant_type" => Err(Wrong::new(
                    "exchanges no authorization codes",
                    "switch the authorization-code flow on for this client at the provider",
                )),
                No::Code(_) => Ok((format!("refuses a made-up code, as it should ({code})"), ())),
            }
        };
        let request = authorization_code::request(self.client, provider, authentication, url, made_up);
        self.visit(CODE_FLOW, url, &setting, request, read).await;
    }

    /// Reports that the endpoint, or our authentication at it, could not be determined.
    fn lost(&mut self, asked: &'static str, error: &Error) {
        let host = self.provider.discovery.as_ref().and_then(Url::host_str).unwrap_or_default().to_owned();
        let remedy = format!("check {}", self.provider.setting("issuer"));
        let outcome = Err(Wrong::new(format!("cannot be asked: {error}"), remedy));
        self.findings.push(Finding { asked, host, took: None, ahead: None, outcome, doubt: None });
    }

    /// Sends a request, reads the response with `read` and records the finding.
    async fn visit<T>(
        &mut self,
        asked: &'static str,
        url: &Url,
        setting: &str,
        request: RequestBuilder,
        read: impl AsyncFnOnce(Response) -> Result<(String, T), Wrong>,
    ) -> Option<T> {
        let host = url.host_str().unwrap_or_default().to_owned();
        let stuck =
            |problem| Wrong::new(problem, format!("check {setting}, and that this machine may reach {host}"));
        let (started, mut ahead) = (Instant::now(), None);
        let visit = async {
            let response = attempt::reach(request).await;
            let response = response.map_err(|cause| {
                let wrong = stuck(format!("cannot be reached ({cause})"));
                let remedy =
                    if attempt::names_certificate(&cause) { CERTIFICATE.into() } else { wrong.remedy };
                Wrong { remedy, ..wrong }
            })?;
            ahead = freshness::told_time(response.headers()).map(|told| told.saturating_sub(self.time()));
            read(response).await
        };
        let outcome = timeout(DEADLINE, visit).await;
        let outcome = outcome.unwrap_or_else(|_| Err(stuck("does not answer in time".into())));
        let (outcome, value) = match outcome {
            Ok((told, value)) => (Ok(told), Some(value)),
            Err(wrong) => (Err(wrong), None),
        };
        let took = Some(started.elapsed());
        self.findings.push(Finding { asked, host, took, ahead, outcome, doubt: None });
        value
    }

    /// Reports an endpoint that is neither set nor discovered.
    fn unnamed(&mut self, asked: &'static str, member: &str, field: &str) {
        let host = self.provider.discovery.as_ref().and_then(Url::host_str).unwrap_or_default().to_owned();
        let remedy = format!("set {}", self.provider.setting(field));
        let outcome =
            Err(Wrong::new(format!("cannot be found: the discovery document has no `{member}`"), remedy));
        self.findings.push(Finding { asked, host, took: None, ahead: None, outcome, doubt: None });
    }

    /// Returns the current time by our clock.
    fn time(&self) -> i64 {
        let elapsed = i64::try_from(self.started.elapsed().as_secs()).unwrap_or_default();
        self.now.saturating_add(elapsed)
    }
}

/// Builds a token with the claims of a valid one but without a valid signature. It always parses, because its
/// parts have the required form.
pub(super) fn worthless(provider: &Provider, now: i64) -> Option<IdToken> {
    let issuer = match &provider.issuers {
        Issuers::Listed(issuers) => issuers.first(),
        Issuers::Tenants(_) => None,
    };
    let header = json!({ "alg": "RS256", "typ": "JWT", "kid": "vestibule-check" });
    let claims = json!({
        "iss": issuer, "aud": provider.client_ids[0], "sub": "vestibule-check", "iat": now, "exp": now + 300,
    });
    let parts = [header.to_string().into_bytes(), claims.to_string().into_bytes(), vec![0; 256]];
    let text = parts.map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
    IdToken::parse(&text, provider.token_format).ok()
}

/// Checks that the endpoint refuses a worthless token.
async fn refusal(provider: &Provider, response: Response, setting: &str) -> Result<String, Wrong> {
    let status = response.status();
    let introspected = matches!(provider.protocol, Protocol::Introspection(_));
    if !matches!(status, StatusCode::OK | StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED) {
        let Wrong { problem, mut remedy } = unexpected(&response, setting);
        if introspected && status == StatusCode::FORBIDDEN {
            let secret = provider.setting("client_secret");
            remedy = format!("{remedy}; {}: check {secret}", tokeninfo::CONFIDENTIAL);
        }
        return Err(Wrong { problem, remedy });
    }
    if status == StatusCode::OK && !is_json(&response) {
        return Err(unexpected(&response, setting));
    }
    if introspected && status == StatusCode::BAD_REQUEST {
        return introspection_refused(provider, response, setting).await;
    }
    match tokeninfo::judge(provider, response).await {
        Ok(claims) if introspection::active(&claims).is_some() && !introspected => Err(Wrong::new(
            "answers as token introspection does",
            format!("set {} to \"rfc7662\", or correct {setting}", provider.setting("preset")),
        )),
        Ok(_) => Err(Wrong::new("accepts a token that nobody has signed", correct(setting))),
        Err(Failure::Final(Error::Refused(_))) => {
            Ok(format!("refuses a worthless token, as it should ({})", status.as_u16()))
        }
        Err(Failure::Final(Error::Unavailable(unavailable)) | Failure::Transient(unavailable)) => {
            Err(unusable(&unavailable, provider, setting))
        }
    }
}

/// Checks a 400 from introspection. RFC 7662 §2.2 answers an invalid token with a 200, so a 400 comes from
/// another kind of endpoint, which would refuse valid tokens, too. Only an error that names the token is
/// accepted.
async fn introspection_refused(
    provider: &Provider,
    response: Response,
    setting: &str,
) -> Result<String, Wrong> {
    let error = answer::json(response).await.ok();
    match error.as_ref().and_then(|error| error.str("error")) {
        Some("invalid_token") => Ok("refuses a worthless token, as it should (400)".into()),
        Some("invalid_client" | "unauthorized_client") => Err(not_us(provider)),
        Some(introspection::NOT_INTROSPECTED) => {
            let remedy = format!("set {} to \"jwks\"", provider.setting("verify"));
            Err(Wrong::new("does not introspect id_tokens", remedy))
        }
        _ => Err(Wrong::new("answers 400, where token introspection says `active`", correct(setting))),
    }
}

fn not_us(provider: &Provider) -> Wrong {
    let settings = [provider.setting("client_id"), provider.setting("client_secret")];
    Wrong::new("does not take us for who we are", format!("check {}", settings.join(" and ")))
}

/// Describes a response that could be read only in part or made no sense.
fn unusable(unavailable: &Unavailable, provider: &Provider, setting: &str) -> Wrong {
    match unavailable.class {
        "client_authentication" => not_us(provider),
        "not_introspection" => Wrong::new(
            "does not answer as token introspection does",
            format!("correct {setting} or {}", provider.setting("preset")),
        ),
        "error_in_200" => Wrong::new("says that it fails", "see what the provider says of its state"),
        class => Wrong::new(format!("gives no usable answer ({class})"), correct(setting)),
    }
}

/// Reads a JSON document.
async fn document(response: Response, types: &[&str], setting: &str) -> Result<Object, Wrong> {
    if response.status() != StatusCode::OK {
        return Err(unexpected(&response, setting));
    }
    let html = essence(&response) == "text/html";
    answer::object(response, types).await.map_err(|unavailable| {
        let class = unavailable.class;
        if html { page(setting) } else { Wrong::new(format!("make no document ({class})"), correct(setting)) }
    })
}

/// Describes a response with an unexpected status or media type.
fn unexpected(response: &Response, setting: &str) -> Wrong {
    let status = response.status();
    let code = status.as_u16();
    if status.is_redirection() {
        let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        let elsewhere = location.and_then(|location| Url::parse(location).ok());
        let host = elsewhere.as_ref().and_then(Url::host_str).unwrap_or("the same host");
        let remedy = format!("set {setting} to the address that it leads to; no redirect is followed");
        return Wrong::new(format!("redirects to {host} ({code})"), remedy);
    }
    match code {
        403 => Wrong::new(
            "answers 403",
            format!("correct {setting}, or have the provider admit this machine's address"),
        ),
        429 => Wrong::new("answers 429: too many calls", "try again later, and see what the provider allows"),
        200 if essence(response) == "text/html" => page(setting),
        200 => Wrong::new("answers with something else than JSON", correct(setting)),
        500..=599 => Wrong::new(
            format!("fails ({code})"),
            format!("see what the provider says of its state, or check {setting}"),
        ),
        _ => Wrong::new(format!("answers {code}"), correct(setting)),
    }
}

fn page(setting: &str) -> Wrong {
    Wrong::new("answers with an HTML page", correct(setting))
}

fn correct(setting: &str) -> String {
    format!("correct {setting}")
}

fn is_json(response: &Response) -> bool {
    essence(response) == "application/json"
}

/// Returns the media type in lower case, without its parameters.
fn essence(response: &Response) -> String {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
