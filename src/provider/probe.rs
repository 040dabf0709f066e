//! Checks the configuration of a provider for an operator. It sends what a sign-in sends, with a token or a code
//! that no provider has issued, and the answer is read as at a sign-in. Each request is sent once and is timed.

use std::fmt::Display;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::json;
use tokio::time::timeout;
use url::Url;

use super::answer::{Class, DEADLINE, Unavailable};
use super::attempt::{self, Failure};
use super::authorization_code::{Rejected, tokens};
use super::document::Document;
use super::error::Error;
use super::revocation::Code;
use super::upstream::Provider;
use super::{freshness, tokeninfo};
use crate::config::{self, CERTIFICATE, Protocol, Verify};
use crate::domain::jwk::KeySet;
use crate::domain::metadata::Metadata;
use crate::domain::{IdToken, Issuers, introspection};

#[derive(Debug, Clone)]
pub struct Finding {
    pub endpoint: &'static str,
    /// The host of its URL; the rest of the URL is not shown.
    pub host: String,
    pub took: Option<Duration>,
    /// Seconds by which the provider's clock is ahead of ours, if it sends a date.
    pub ahead: Option<i64>,
    /// A description of the success or of the problem.
    pub outcome: Result<String, Fault>,
    /// A possible problem that the check cannot decide.
    pub warning: Option<Fault>,
}

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

/// The names of checks in the output.
const CODE_FLOW: &str = "staff sign-in";
const SIGN_IN_PAGE: &str = "staff sign-in page";
const REVOCATION: &str = "revocation";
/// A code, and a part of its verifier, that no provider has issued.
const MADE_UP: &str = "vestibule-check";

impl Provider {
    /// Calls all endpoints that a verification needs, at `now` by our clock. It sends no token of a user, and
    /// the responses are not used.
    pub async fn check(&self, now: i64) -> Vec<Finding> {
        let mut probe = self.probe(now);
        probe.verification().await;
        probe.findings
    }

    /// Calls the token endpoint with a made-up code and this redirect URI, as the sign-in of staff would. It
    /// does nothing for a provider without a client secret or without such an endpoint.
    pub async fn check_code_flow(&self, redirect_uri: &str, now: i64) -> Vec<Finding> {
        let (settings, mut probe) = (&self.settings, self.probe(now));
        let endpoint = settings.token_url.is_some() || settings.discovery.is_some();
        if settings.client_secret.is_some() && endpoint {
            match self.token_endpoint(now).await {
                Ok((url, authentication)) => {
                    if let Err(error) = self.authorization_url(now).await {
                        probe.not_located(SIGN_IN_PAGE, error);
                    }
                    let verifier = MADE_UP.repeat(3);
                    let request = self.code_request(&url, authentication, MADE_UP, &verifier, redirect_uri);
                    probe.code(CODE_FLOW, &url, request, None).await;
                }
                Err(unavailable) => probe.not_located(CODE_FLOW, unavailable.named(settings)),
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
                    Ok::<_, Unavailable>((self.request_for_code(&url, authentication, code, now)?, url))
                };
                match request.await {
                    Ok((request, url)) => probe.code(REVOCATION, &url, request, Some(client_id)).await,
                    Err(unavailable) => probe.not_located(REVOCATION, unavailable.named(settings)),
                }
            }
        }
        probe.findings
    }

    /// Fetches the document about the provider's security events, and the keys that it names. It does nothing for a provider
    /// without a setting for that.
    pub async fn check_events(&self, now: i64) -> Vec<Finding> {
        let (documents, mut probe) = (&self.upstream.events, self.probe(now));
        if let Some(url) = &self.settings.ssf_url {
            let read = |_: &_| "states the issuer and the keys".into();
            if let Some(sender) = probe.document("events", &documents.transmitter, url, read).await {
                probe.document("keys of events", &documents.keys, &sender.jwks_url, usable).await;
            }
        }
        probe.findings
    }

    fn probe(&self, now: i64) -> Probe<'_> {
        Probe { provider: self, settings: &self.settings, now, started: Instant::now(), findings: Vec::new() }
    }
}

struct Probe<'p> {
    provider: &'p Provider,
    settings: &'p config::Provider,
    now: i64,
    started: Instant,
    findings: Vec<Finding>,
}

impl Probe<'_> {
    async fn verification(&mut self) {
        let (settings, upstream) = (self.settings, &self.provider.upstream);
        let (asked, signed) = (settings.verify != Verify::Jwks, settings.verify != Verify::Tokeninfo);
        let discover = asked && settings.tokeninfo_url.is_none() || signed && settings.jwks_url.is_none();
        let published = match &settings.discovery {
            Some(url) if discover => {
                let read = |_: &_| "states the issuer and the endpoints".into();
                self.document("discovery", &upstream.metadata, url, read).await
            }
            _ => Some(Metadata::default()),
        };
        // The finding for the metadata has reported the problem.
        let Some(published) = published else { return };
        if signed {
            match settings.jwks_url.as_ref().or(published.jwks_url.as_ref()) {
                Some(url) => drop(self.document("keys", &upstream.keys, url, usable).await),
                None => self.not_discovered("keys", "jwks_uri", "jwks_url"),
            }
        }
        if asked {
            match settings.tokeninfo_url.as_ref().or(published.introspection_url.as_ref()) {
                Some(url) => self.endpoint(url).await,
                None => self.not_discovered("endpoint", "introspection_endpoint", "tokeninfo_url"),
            }
        }
    }

    /// Fetches a document, without its cache.
    async fn document<T: Send + Sync + 'static>(
        &mut self,
        endpoint: &'static str,
        document: &Document<T>,
        url: &Url,
        describe: impl FnOnce(&T) -> String,
    ) -> Option<T> {
        let setting = self.settings.setting(document.setting);
        let read = async |response| match document.value(response).await.map_err(Failure::into_error) {
            Ok(value) => Ok((describe(&value), value)),
            Err(unavailable) => Err(fault(unavailable, &setting, url)),
        };
        self.call(endpoint, url, &setting, self.provider.upstream.client.get(url.clone()), read).await
    }

    async fn endpoint(&mut self, url: &Url) {
        let settings = self.settings;
        let setting = settings.setting(tokeninfo::endpoint_setting(settings));
        let introspected = settings.protocol() == Protocol::Introspection;
        let Some(token) = worthless_token(settings, self.time()) else { return };
        let read = async |response: Response| {
            let status = response.status();
            let answer = if introspected && status == StatusCode::BAD_REQUEST {
                // RFC 7662 §2.2 answers an invalid token with a 200, so a 400 comes from another kind of endpoint,
                // which would refuse valid tokens, too. Only an error that names the token is accepted.
                let problem = "responds with 400 instead of the `active` member of token introspection";
                let answer = tokeninfo::client_or_token(status, response).await;
                Err(answer.ok_or_else(|| Fault::new(problem, correct(&setting)))?)
            } else {
                tokeninfo::classify(settings, response).await
            };
            match answer.map_err(Failure::into_error) {
                Ok(claims) if introspection::active(&claims).is_some() && !introspected => Err(Fault::new(
                    "responds like a token introspection endpoint",
                    format!("set {} to \"rfc7662\", or correct {setting}", settings.setting("preset")),
                )),
                Ok(_) => Err(Fault::new("accepts an unsigned token", correct(&setting))),
                // The made-up token is short and of plain letters.
                Err(Error::Refused(_)) if status > StatusCode::UNAUTHORIZED => {
                    Err(Fault::new(format!("responds with {}", status.as_u16()), correct(&setting)))
                }
                Err(Error::Refused(_)) => {
                    Ok((format!("rejects an invalid token as expected ({})", status.as_u16()), ()))
                }
                Err(Error::Unavailable(unavailable)) => Err(match unavailable.class {
                    Class::ClientAuthentication => client_rejected(settings),
                    Class::NotIntrospected => Fault::new(
                        "does not introspect id_tokens",
                        format!("set {} to \"jwks\"", settings.setting("verify")),
                    ),
                    Class::NotIntrospection => Fault::new(
                        "does not respond like a token introspection endpoint",
                        format!("correct {setting} or {}", settings.setting("preset")),
                    ),
                    Class::Status4xx if unavailable.why.as_deref() == Some(tokeninfo::CONFIDENTIAL) => {
                        let Fault { problem, remedy } = fault(unavailable, &setting, url);
                        let secret = settings.setting("client_secret");
                        Fault::new(problem, format!("{remedy}; {}: check {secret}", tokeninfo::CONFIDENTIAL))
                    }
                    _ => fault(unavailable, &setting, url),
                }),
            }
        };
        let request = tokeninfo::request(&self.provider.upstream.client, settings, url, &token);
        self.call("endpoint", url, &setting, request, read).await;
        if !settings.introspects_id_tokens()
            && let Some(finding) = self.findings.last_mut()
        {
            let problem =
                "may not support id_tokens: RFC 7662 is about access tokens, and only a sign-in can tell";
            let verify = settings.setting("verify");
            let remedy = format!("sign in once, and set {verify} to \"jwks\" if the sign-in is refused");
            finding.warning = finding.outcome.is_ok().then(|| Fault::new(problem, remedy));
        }
    }

    /// Checks that the token endpoint refuses a made-up code, of an app's client if one is named.
    async fn code(
        &mut self,
        endpoint: &'static str,
        url: &Url,
        request: RequestBuilder,
        client_id: Option<&str>,
    ) {
        let settings = self.settings;
        let field = self.provider.token_setting();
        let setting = settings.setting(field);
        let read = async |response: Response| {
            let status = response.status().as_u16();
            match tokens(response, field).await {
                Ok(_) => Err(Fault::new("accepts an invalid code", correct(&setting))),
                Err(Rejected::Client(error)) if settings.client_key.is_some() => {
                    let [team, key, file] =
                        ["team_id", "key_id", "private_key"].map(|field| settings.setting(field));
                    let client = client_id.unwrap_or_default();
                    let problem = format!("rejects the client secret for {client} ({error})");
                    let remedy = format!(
                        "check {team}, {key} and {file}, and that the key is enabled for the primary App ID of {client}"
                    );
                    Err(Fault::new(problem, remedy))
                }
                Err(Rejected::Client(error)) => {
                    let Fault { problem, remedy } = client_rejected(settings);
                    let token_auth = settings.setting("token_auth");
                    let remedy = format!("{remedy}; some providers require {token_auth}");
                    Err(Fault::new(format!("{problem} ({error})"), remedy))
                }
                Err(Rejected::Code(error)) if error == "unsupported_grant_type" => Err(Fault::new(
                    "does not support the authorization-code grant",
                    "enable the authorization-code flow for this client at the provider",
                )),
                Err(Rejected::Code(_)) => {
                    let whose = client_id.map(|client| format!(" of {client}")).unwrap_or_default();
                    Ok((format!("rejects an invalid code{whose} as expected ({status})"), ()))
                }
                Err(Rejected::Unavailable(unavailable)) => Err(fault(unavailable, &setting, url)),
            }
        };
        self.call(endpoint, url, &setting, request, read).await;
    }

    /// Reports that the endpoint, or our authentication at it, could not be determined.
    fn not_located(&mut self, endpoint: &'static str, error: impl Display) {
        let remedy = format!("check {}", self.settings.setting("issuer"));
        self.not_called(endpoint, Fault::new(format!("cannot be called: {error}"), remedy));
    }

    fn not_discovered(&mut self, endpoint: &'static str, member: &str, field: &str) {
        let remedy = format!("set {}", self.settings.setting(field));
        let problem = format!("is unknown: the discovery document has no `{member}`");
        self.not_called(endpoint, Fault::new(problem, remedy));
    }

    fn not_called(&mut self, endpoint: &'static str, fault: Fault) {
        let host = self.settings.discovery.as_ref().map(host).unwrap_or_default().to_owned();
        let finding = Finding { endpoint, host, took: None, ahead: None, outcome: Err(fault), warning: None };
        self.findings.push(finding);
    }

    async fn call<T>(
        &mut self,
        endpoint: &'static str,
        url: &Url,
        setting: &str,
        request: RequestBuilder,
        read: impl AsyncFnOnce(Response) -> Result<(String, T), Fault>,
    ) -> Option<T> {
        let (started, mut ahead) = (Instant::now(), None);
        let failed = |unavailable| fault(unavailable, setting, url);
        let call = async {
            let response = request.send().await.map_err(attempt::unreached).map_err(failed)?;
            ahead =
                freshness::server_time(response.headers()).map(|theirs| theirs.saturating_sub(self.time()));
            read(response).await
        };
        let outcome = timeout(DEADLINE, call).await;
        let (outcome, value) = match outcome.unwrap_or_else(|_| Err(failed(Unavailable::new(Class::Timeout))))
        {
            Ok((success, value)) => (Ok(success), Some(value)),
            Err(fault) => (Err(fault), None),
        };
        let (host, took) = (host(url).to_owned(), Some(started.elapsed()));
        self.findings.push(Finding { endpoint, host, took, ahead, outcome, warning: None });
        value
    }

    fn time(&self) -> i64 {
        let elapsed = i64::try_from(self.started.elapsed().as_secs()).unwrap_or_default();
        self.now.saturating_add(elapsed)
    }
}

/// Builds a token with the claims of a valid one but without a valid signature. It always parses, because its
/// parts have the required form.
pub(super) fn worthless_token(provider: &config::Provider, now: i64) -> Option<IdToken> {
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

/// Explains what failed, to an operator who can correct `setting`.
fn fault(unavailable: Unavailable, setting: &str, url: &Url) -> Fault {
    let class = unavailable.class();
    let Unavailable { class: kind, why, seen, .. } = unavailable;
    let remedy = match kind {
        Class::Connect | Class::Connection if why.is_some() => CERTIFICATE.into(),
        Class::Connect | Class::Connection | Class::Timeout => {
            format!("check {setting}, and that this machine can reach {}", host(url))
        }
        Class::Status3xx => {
            format!("set {setting} to the target of the redirect, because redirects are not followed")
        }
        Class::Status4xx if seen.as_deref() == Some("responds with 403") => {
            format!("correct {setting}, or allow this machine's IP address at the provider")
        }
        Class::Status429 => "try again later, and check the provider's limits".into(),
        Class::Status5xx => format!("see the provider's status page, or check {setting}"),
        Class::ErrorIn200 => "see the provider's status page".into(),
        _ => correct(setting),
    };
    let problem = seen.unwrap_or_else(|| match kind {
        Class::Timeout => "did not respond in time".into(),
        Class::ErrorIn200 => "reports an error of its own".into(),
        Class::Metadata => why.unwrap_or_default(),
        _ => format!("returns an unusable response ({class})"),
    });
    Fault { problem, remedy }
}

fn client_rejected(provider: &config::Provider) -> Fault {
    let [id, secret] = ["client_id", "client_secret"].map(|field| provider.setting(field));
    Fault::new("rejects the client credentials", format!("check {id} and {secret}"))
}

fn usable(keys: &KeySet) -> String {
    format!("{} usable", keys.keys().len())
}

fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default()
}

fn correct(setting: &str) -> String {
    format!("correct {setting}")
}
