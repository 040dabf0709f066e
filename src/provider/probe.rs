//! Checks the configuration of a provider by sending it a worthless token. There are no retries, caches,
//! statistics or bulkheads here, because an operator runs this by hand.

use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::header::LOCATION;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::json;
use tokio::time::timeout;
use url::Url;

use super::answer::{self, Class, DEADLINE};
use super::attempt::{self, Failure};
use super::authorization_code::{self, ErrorResponse, Grant};
use super::{Code, Error, Unavailable, freshness, tokeninfo};
use crate::config::{CERTIFICATE, Protocol, Provider, Verify};
use crate::domain::id_token::IdToken;
use crate::domain::introspection;
use crate::domain::issuer::Issuers;
use crate::domain::json::Object;
use crate::domain::jwk::KeySet;
use crate::domain::metadata::{Metadata, Transmitter, Unfit};

/// The result of one request to a provider.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The endpoint that was called.
    pub endpoint: &'static str,
    /// The host of its URL; the rest of the URL is not shown.
    pub host: String,
    /// The duration of the request, if one was sent.
    pub took: Option<Duration>,
    /// Seconds by which the provider's clock is ahead of ours, if it sends a date.
    pub ahead: Option<i64>,
    /// A description of the success or of the problem.
    pub outcome: Result<String, Fault>,
    /// A possible problem that the check cannot decide.
    pub warning: Option<Fault>,
}

/// A problem with its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub problem: String,
    pub remedy: String,
}

impl Fault {
    fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), remedy: remedy.into() }
    }
}

impl super::Provider {
    /// Calls all endpoints that a verification needs, at `now` by our clock. It sends no token of a user, and
    /// the responses are not used.
    pub async fn check(&self, now: i64) -> Vec<Finding> {
        let mut probe = self.probe(now);
        probe.run().await;
        probe.findings
    }

    /// Calls the token endpoint with a made-up code and this redirect URI, as the sign-in of staff would. It
    /// does nothing for a provider without a client secret or without such an endpoint.
    pub async fn check_code_flow(&self, redirect_uri: &str, now: i64) -> Vec<Finding> {
        let (settings, mut probe) = (&self.settings, self.probe(now));
        let endpoint = settings.token_url.is_some() || settings.discovery.is_some();
        if settings.client_secret.is_some() && endpoint {
            match self.token_endpoint(now).await.map_err(|error| error.named(settings)) {
                Ok((url, authentication)) => {
                    if let Err(error) = self.authorization_url(now).await {
                        probe.not_located(SIGN_IN_PAGE, &error);
                    }
                    let code_verifier = MADE_UP.repeat(3);
                    let made_up = Grant { code: MADE_UP, code_verifier: &code_verifier, redirect_uri };
                    let client = &self.upstream.client;
                    let request =
                        authorization_code::request(client, settings, authentication, &url, made_up);
                    probe.code_flow(CODE_FLOW, &url, request, None).await;
                }
                Err(error) => probe.not_located(CODE_FLOW, &error),
            }
        }
        if let Some(strayed) = settings.strayed_endpoint() {
            let problem = "is Google's, but the tokens come from elsewhere";
            let remedy = format!("set {} to the provider's own endpoint", settings.setting(strayed));
            probe.not_called(SIGN_IN_PAGE, Fault::new(problem, remedy));
        }
        probe.findings
    }

    /// Calls the token endpoint with a made-up code of each client, as for a token that can be revoked. It does nothing
    /// for a provider without a setting for that.
    pub async fn check_revocation(&self, now: i64) -> Vec<Finding> {
        let (settings, mut probe) = (&self.settings, self.probe(now));
        if settings.client_key.is_some() || settings.revocation_url.is_some() {
            for client_id in settings.client_ids.iter().filter(|client| settings.revokes(client)) {
                let code = Code { code: MADE_UP, redirect_uri: None, client_id, subject: MADE_UP };
                let request = async {
                    let (url, authentication) = self.token_endpoint(now).await?;
                    let request = self.request_for_code(&url, authentication, code, now)?;
                    Ok((url, request))
                };
                match request.await.map_err(|error: Error| error.named(settings)) {
                    Ok((url, request)) => probe.code_flow(REVOCATION, &url, request, Some(client_id)).await,
                    Err(error) => probe.not_located(REVOCATION, &error),
                }
            }
        }
        probe.findings
    }

    /// Fetches the document about the provider's security events, and the keys that it names. It does nothing for a provider
    /// without a setting for that.
    pub async fn check_events(&self, now: i64) -> Vec<Finding> {
        let mut probe = self.probe(now);
        if let Some(url) = &self.settings.ssf_url
            && let Some(transmitter) = probe.transmitter(url).await
        {
            probe.keys("keys of events", &transmitter.jwks_url, &self.settings.setting("ssf_url")).await;
        }
        probe.findings
    }

    fn probe(&self, now: i64) -> Probe<'_> {
        let (client, provider) = (&self.upstream.client, &self.settings);
        Probe { client, provider, now, started: Instant::now(), findings: Vec::new() }
    }
}

const HTML: &str = "text/html";
/// The name of this check in the output.
const CODE_FLOW: &str = "staff sign-in";
/// The name of the check of codes of apps.
const REVOCATION: &str = "revocation";
/// A code, and a part of its verifier, that no provider has issued.
const MADE_UP: &str = "vestibule-check";
/// The name of the check of the page to which it leads.
const SIGN_IN_PAGE: &str = "staff sign-in page";

struct Probe<'p> {
    client: &'p Client,
    provider: &'p Provider,
    now: i64,
    started: Instant,
    findings: Vec<Finding>,
}

impl Probe<'_> {
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
                Some(url) => {
                    // A discovered URL depends on the setting `issuer`.
                    let found = provider.jwks_url.is_none();
                    let setting = provider.setting(if found { "issuer" } else { "jwks_url" });
                    self.keys("keys", url, &setting).await;
                }
                None => self.not_discovered("keys", "jwks_uri", "jwks_url"),
            }
        }
        if asked {
            match provider.tokeninfo_url.as_ref().or(published.introspection_url.as_ref()) {
                Some(url) => self.endpoint(url).await,
                None => self.not_discovered("endpoint", "introspection_endpoint", "tokeninfo_url"),
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
                        format!("set {setting} to {issuer:?} if that is the provider's issuer")
                    }
                    Unfit::Issuer(None) | Unfit::Endpoint => correct(&setting),
                };
                Fault::new(unfit.to_string(), remedy)
            })?;
            Ok(("states the issuer and the endpoints".into(), metadata))
        };
        self.call("discovery", url, &setting, self.client.get(url.clone()), read).await
    }

    async fn transmitter(&mut self, url: &Url) -> Option<Transmitter> {
        let setting = self.provider.setting("ssf_url");
        let read = async |response| {
            let document = document(response, &["application/json"], &setting).await?;
            let transmitter = Transmitter::read(&document, None);
            let transmitter =
                transmitter.map_err(|unfit| Fault::new(unfit.to_string(), correct(&setting)))?;
            Ok(("states the issuer and the keys".into(), transmitter))
        };
        self.call("events", url, &setting, self.client.get(url.clone()), read).await
    }

    async fn keys(&mut self, endpoint: &'static str, url: &Url, setting: &str) {
        let read = async |response| {
            let types = ["application/json", "application/jwk-set+json"];
            let keys = KeySet::read(&document(response, &types, setting).await?);
            let keys = keys.map_err(|none| Fault::new(format!("contain {none}"), correct(setting)))?;
            Ok((format!("{} usable", keys.keys().len()), ()))
        };
        self.call(endpoint, url, setting, self.client.get(url.clone()), read).await;
    }

    async fn endpoint(&mut self, url: &Url) {
        let provider = self.provider;
        let found = provider.tokeninfo_url.is_none();
        let setting = provider.setting(if found { "issuer" } else { "tokeninfo_url" });
        let Some(token) = worthless_token(provider, self.time()) else { return };
        let read = async |response| Ok((refusal(provider, response, &setting).await?, ()));
        let request = tokeninfo::request(self.client, provider, url, &token);
        self.call("endpoint", url, &setting, request, read).await;
        if !provider.introspects_id_tokens
            && let Some(finding) = self.findings.last_mut()
        {
            let problem =
                "may not support id_tokens: RFC 7662 is about access tokens, and only a sign-in can tell";
            let remedy = format!(
                "sign in once, and set {} to \"jwks\" if the sign-in is refused",
                provider.setting("verify")
            );
            finding.warning = finding.outcome.is_ok().then(|| Fault::new(problem, remedy));
        }
    }

    /// Sends a made-up code, of an app's client if one is named.
    async fn code_flow(
        &mut self,
        endpoint: &'static str,
        url: &Url,
        request: RequestBuilder,
        client_id: Option<&str>,
    ) {
        let provider = self.provider;
        let found = provider.token_url.is_none();
        let setting = provider.setting(if found { "issuer" } else { "token_url" });
        let read = async |response: Response| {
            let code = response.status().as_u16();
            match code {
                400 | 401 => {}
                200 => return Err(Fault::new("accepts an invalid code", correct(&setting))),
                _ => return Err(unexpected(&response, &setting)),
            }
            match authorization_code::error(response).await {
                ErrorResponse::Client(error) if provider.client_key.is_some() => {
                    let [team, key, file] =
                        ["team_id", "key_id", "private_key"].map(|field| provider.setting(field));
                    let client = client_id.unwrap_or_default();
                    let problem = format!("rejects the client secret for {client} ({error})");
                    let remedy = format!(
                        "check {team}, {key} and {file}, and that the key is enabled for the primary App ID of {client}"
                    );
                    Err(Fault::new(problem, remedy))
                }
                ErrorResponse::Client(error) => {
                    let Fault { problem, remedy } = client_rejected(provider);
                    let problem = format!("{problem} ({error})");
                    let token_auth = provider.setting("token_auth");
                    Err(Fault::new(problem, format!("{remedy}; some providers require {token_auth}")))
                }
                ErrorResponse::Code(error) if error == "unsupported_grant_type" => Err(Fault::new(
                    "does not support the authorization-code grant",
                    "enable the authorization-code flow for this client at the provider",
                )),
                ErrorResponse::Code(_) => {
                    let whose = client_id.map(|client| format!(" of {client}")).unwrap_or_default();
                    Ok((format!("rejects an invalid code{whose} as expected ({code})"), ()))
                }
            }
        };
        self.call(endpoint, url, &setting, request, read).await;
    }

    /// Reports that the endpoint, or our authentication at it, could not be determined.
    fn not_located(&mut self, endpoint: &'static str, error: &Error) {
        let remedy = format!("check {}", self.provider.setting("issuer"));
        self.not_called(endpoint, Fault::new(format!("cannot be called: {error}"), remedy));
    }

    fn not_called(&mut self, endpoint: &'static str, fault: Fault) {
        let host = self.provider.discovery.as_ref().and_then(Url::host_str).unwrap_or_default().to_owned();
        let finding = Finding { endpoint, host, took: None, ahead: None, outcome: Err(fault), warning: None };
        self.findings.push(finding);
    }

    /// Sends a request, reads the response with `read` and records the finding.
    async fn call<T>(
        &mut self,
        endpoint: &'static str,
        url: &Url,
        setting: &str,
        request: RequestBuilder,
        read: impl AsyncFnOnce(Response) -> Result<(String, T), Fault>,
    ) -> Option<T> {
        let host = url.host_str().unwrap_or_default().to_owned();
        let unreachable =
            |problem| Fault::new(problem, format!("check {setting}, and that this machine can reach {host}"));
        let (started, mut ahead) = (Instant::now(), None);
        let call = async {
            let response = attempt::reach(request).await;
            let response = response.map_err(|cause| {
                let fault = unreachable(format!("is unreachable ({cause})"));
                let remedy =
                    if attempt::names_certificate(&cause) { CERTIFICATE.into() } else { fault.remedy };
                Fault { remedy, ..fault }
            })?;
            ahead =
                freshness::server_time(response.headers()).map(|theirs| theirs.saturating_sub(self.time()));
            read(response).await
        };
        let outcome = timeout(DEADLINE, call).await;
        let outcome = outcome.unwrap_or_else(|_| Err(unreachable("did not respond in time".into())));
        let (outcome, value) = match outcome {
            Ok((success, value)) => (Ok(success), Some(value)),
            Err(fault) => (Err(fault), None),
        };
        let took = Some(started.elapsed());
        self.findings.push(Finding { endpoint, host, took, ahead, outcome, warning: None });
        value
    }

    /// Reports an endpoint that is neither set nor discovered.
    fn not_discovered(&mut self, endpoint: &'static str, member: &str, field: &str) {
        let remedy = format!("set {}", self.provider.setting(field));
        let problem = format!("is unknown: the discovery document has no `{member}`");
        self.not_called(endpoint, Fault::new(problem, remedy));
    }

    /// Returns the current time by our clock.
    fn time(&self) -> i64 {
        let elapsed = i64::try_from(self.started.elapsed().as_secs()).unwrap_or_default();
        self.now.saturating_add(elapsed)
    }
}

/// Builds a token with the claims of a valid one but without a valid signature. It always parses, because its
/// parts have the required form.
pub(super) fn worthless_token(provider: &Provider, now: i64) -> Option<IdToken> {
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
async fn refusal(provider: &Provider, response: Response, setting: &str) -> Result<String, Fault> {
    let status = response.status();
    let introspected = matches!(provider.protocol, Protocol::Introspection(_));
    if !matches!(status, StatusCode::OK | StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED) {
        let Fault { problem, mut remedy } = unexpected(&response, setting);
        if introspected && status == StatusCode::FORBIDDEN {
            let secret = provider.setting("client_secret");
            remedy = format!("{remedy}; {}: check {secret}", tokeninfo::CONFIDENTIAL);
        }
        return Err(Fault { problem, remedy });
    }
    if status == StatusCode::OK && !answer::has_media_type(&response, "application/json") {
        return Err(unexpected(&response, setting));
    }
    if introspected && status == StatusCode::BAD_REQUEST {
        return introspection_refused(provider, response, setting).await;
    }
    match tokeninfo::classify(provider, response).await {
        Ok(claims) if introspection::active(&claims).is_some() && !introspected => Err(Fault::new(
            "responds like a token introspection endpoint",
            format!("set {} to \"rfc7662\", or correct {setting}", provider.setting("preset")),
        )),
        Ok(_) => Err(Fault::new("accepts an unsigned token", correct(setting))),
        Err(Failure::Final(Error::Refused(_))) => {
            Ok(format!("rejects an invalid token as expected ({})", status.as_u16()))
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
) -> Result<String, Fault> {
    let error = answer::json(response).await.ok();
    match error.as_ref().and_then(|error| error.str("error")) {
        Some("invalid_token") => Ok("rejects an invalid token as expected (400)".into()),
        Some("invalid_client" | "unauthorized_client") => Err(client_rejected(provider)),
        Some(introspection::NOT_INTROSPECTED) => {
            let remedy = format!("set {} to \"jwks\"", provider.setting("verify"));
            Err(Fault::new("does not introspect id_tokens", remedy))
        }
        _ => Err(Fault::new(
            "responds with 400 instead of the `active` member of token introspection",
            correct(setting),
        )),
    }
}

fn client_rejected(provider: &Provider) -> Fault {
    let settings = [provider.setting("client_id"), provider.setting("client_secret")];
    Fault::new("rejects the client credentials", format!("check {}", settings.join(" and ")))
}

/// Describes a response that could be read only in part or made no sense.
fn unusable(unavailable: &Unavailable, provider: &Provider, setting: &str) -> Fault {
    match unavailable.class {
        Class::ClientAuthentication => client_rejected(provider),
        Class::NotIntrospection => Fault::new(
            "does not respond like a token introspection endpoint",
            format!("correct {setting} or {}", provider.setting("preset")),
        ),
        Class::ErrorIn200 => Fault::new("reports an error of its own", "see the provider's status page"),
        _ => Fault::new(format!("returns an unusable response ({})", unavailable.class()), correct(setting)),
    }
}

/// Reads a JSON document.
async fn document(response: Response, types: &[&str], setting: &str) -> Result<Object, Fault> {
    if response.status() != StatusCode::OK {
        return Err(unexpected(&response, setting));
    }
    let html = answer::has_media_type(&response, HTML);
    answer::object(response, types).await.map_err(|unavailable| {
        let class = unavailable.class();
        if html {
            html_page(setting)
        } else {
            Fault::new(format!("is not a valid document ({class})"), correct(setting))
        }
    })
}

/// Describes a response with an unexpected status or media type.
fn unexpected(response: &Response, setting: &str) -> Fault {
    let status = response.status();
    let code = status.as_u16();
    if status.is_redirection() {
        let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        let elsewhere = location.and_then(|location| Url::parse(location).ok());
        let host = elsewhere.as_ref().and_then(Url::host_str).unwrap_or("the same host");
        let remedy =
            format!("set {setting} to the target of the redirect, because redirects are not followed");
        return Fault::new(format!("redirects to {host} ({code})"), remedy);
    }
    match code {
        403 => Fault::new(
            "responds with 403",
            format!("correct {setting}, or allow this machine's IP address at the provider"),
        ),
        429 => Fault::new(
            "responds with 429 (too many requests)",
            "try again later, and check the provider's limits",
        ),
        200 if answer::has_media_type(response, HTML) => html_page(setting),
        200 => Fault::new("does not respond with JSON", correct(setting)),
        500..=599 => Fault::new(
            format!("fails ({code})"),
            format!("see the provider's status page, or check {setting}"),
        ),
        _ => Fault::new(format!("responds with {code}"), correct(setting)),
    }
}

fn html_page(setting: &str) -> Fault {
    Fault::new("responds with an HTML page", correct(setting))
}

fn correct(setting: &str) -> String {
    format!("correct {setting}")
}
