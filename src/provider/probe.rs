//! Checks the configuration of a provider for an operator. It sends what a sign-in sends, with a
//! token or a code that no provider has issued, and the answer is read as at a sign-in. No request
//! is repeated.

use std::fmt::Display;
use std::future::Future;
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::StatusCode;
use serde_json::json;
use tokio::time::timeout;
use url::Url;

use super::answer::{Class, DEADLINE, Unavailable};
use super::attempt::{self, Failure};
use super::authorization_code::Rejected;
use super::document::Document;
use super::error::Error;
use super::upstream::Provider;
use super::{freshness, tokeninfo};
use crate::check_result::{CheckResult, Fault};
use crate::config::{self, CERTIFICATE, Verify};
use crate::domain::jwk::KeySet;
use crate::domain::metadata::{Endpoint, Metadata};
use crate::domain::presets::{Protocol, google};
use crate::domain::{IdToken, Issuers, introspection};

/// A code, and a part of its verifier, that no provider has issued.
const MADE_UP: &str = "vestibule-check";

impl Provider {
    /// Calls the endpoints that the settings need, at `now` by our clock, and returns a line for
    /// each. `redirect_uri` is the redirect URI of staff's sign-ins with this provider. If the
    /// provider is switched off, only the revocation is checked.
    pub async fn check(&self, redirect_uri: Option<&str>, now: i64) -> Vec<(String, CheckResult)> {
        let settings = &self.settings;
        let started = Instant::now();
        let mut probe = Probe {
            provider: self,
            settings,
            now,
            started,
            lines: Vec::new(),
        };
        if settings.enabled {
            probe.verification().await;
        }
        probe.revocation().await;
        if settings.enabled {
            probe.events().await;
            if let Some(redirect_uri) = redirect_uri {
                probe.staff(redirect_uri).await;
            }
        }
        probe.lines
    }
}

struct Probe<'p> {
    provider: &'p Provider,
    settings: &'p config::Provider,
    now: i64,
    started: Instant,
    lines: Vec<(String, CheckResult)>,
}

/// A success in words, the provider's time if it sent one, and the input of the next call.
type Success<T> = (String, Option<i64>, T);

impl Probe<'_> {
    async fn verification(&mut self) {
        let settings = self.settings;
        let upstream = &self.provider.upstream;
        let asked = settings.verify != Verify::Jwks;
        let signed = settings.verify != Verify::Tokeninfo;
        let discover =
            asked && settings.tokeninfo_url.is_none() || signed && settings.jwks_url.is_none();
        let published = match &settings.discovery {
            Some(url) if discover => {
                let read = |_: &_| "states the issuer and the endpoints".into();
                self.document("discovery", &upstream.metadata, url, read)
                    .await
            }
            _ => Some(Metadata::default()),
        };
        // The line about the document has the problem.
        let Some(published) = published else { return };
        if let Some(problem) = published.warning() {
            let remedy = "correct it at the provider, because what needs it does not work; nothing else is affected";
            let host = settings.discovery.as_ref().map(host).unwrap_or_default();
            self.add("discovery", host, CheckResult::warn(problem, remedy));
        }
        if signed {
            let published = published.url(Endpoint::Keys).ok().flatten();
            match settings.jwks_url.as_ref().or(published) {
                Some(url) => drop(self.document("keys", &upstream.keys, url, usable).await),
                None => self.not_discovered("keys", Endpoint::Keys, "jwks_url"),
            }
        }
        if asked {
            let published = published.url(Endpoint::Introspection).ok().flatten();
            match settings.tokeninfo_url.as_ref().or(published) {
                Some(url) => self.endpoint(url).await,
                None => self.not_discovered("endpoint", Endpoint::Introspection, "tokeninfo_url"),
            }
        }
    }

    /// Fetches the document about security events, and the keys that it names, if it is set.
    async fn events(&mut self) {
        let documents = &self.provider.upstream.events;
        if let Some(url) = &self.settings.ssf_url {
            let read = |_: &_| "states the issuer and the keys".into();
            let sender = self
                .document("events", &documents.transmitter, url, read)
                .await;
            if let Some(url) = sender.and_then(|sender| sender.jwks_url) {
                self.document("keys of events", &documents.keys, &url, usable)
                    .await;
            }
        }
    }

    /// Fetches a document, without its cache.
    async fn document<T: Send + Sync + 'static>(
        &mut self,
        endpoint: &str,
        document: &Document<T>,
        url: &Url,
        describe: impl FnOnce(&T) -> String,
    ) -> Option<T> {
        let settings = self.settings;
        let setting = self.settings.setting(document.setting);
        let fetched = async {
            let (value, headers) = document.download(url).await.map_err(Failure::into_error)?;
            Ok((describe(&value), freshness::server_time(&headers), value))
        };
        let failed = |unavailable| fault(settings, unavailable, &setting, url);
        self.call(endpoint, url, &setting, async {
            fetched.await.map_err(failed)
        })
        .await
    }

    /// Asks the token-information endpoint about a made-up token.
    async fn endpoint(&mut self, url: &Url) {
        let settings = self.settings;
        let client = &self.provider.upstream.client;
        let setting = settings.setting(tokeninfo::endpoint_setting(settings));
        let introspected = settings.preset.protocol == Protocol::Introspection;
        let Some(token) = worthless_token(settings, self.time()) else {
            return;
        };
        let call = async {
            let response = attempt::send(tokeninfo::request(client, settings, url, &token)).await;
            let response = response.map_err(|failure| {
                fault(
                    settings,
                    Failure::<Unavailable>::into_error(failure),
                    &setting,
                    url,
                )
            })?;
            let status = response.status();
            let time = freshness::server_time(response.headers());
            let answer = if introspected && status == StatusCode::BAD_REQUEST {
                // RFC 7662 §2.2 answers an invalid token with a 200, so a 400 comes from another
                // kind of endpoint, which would refuse valid tokens, too. Only an error that names
                // the token is accepted.
                let problem =
                    "responds with 400 instead of the `active` member of token introspection";
                let answer = tokeninfo::client_or_token(status, response).await;
                Err(answer.ok_or_else(|| Fault::new(problem, correct(&setting)))?)
            } else {
                tokeninfo::classify(settings, response).await
            };
            match answer.map_err(Failure::into_error) {
                Ok(claims) if introspection::active(&claims).is_some() && !introspected => {
                    Err(Fault::new(
                        "responds like a token introspection endpoint",
                        format!(
                            "set {} to \"rfc7662\", or correct {setting}",
                            settings.setting("preset")
                        ),
                    ))
                }
                Ok(_) => Err(Fault::new("accepts an unsigned token", correct(&setting))),
                // The made-up token is short and of plain letters.
                Err(Error::Refused(_)) if status > StatusCode::UNAUTHORIZED => Err(Fault::new(
                    format!("responds with {}", status.as_u16()),
                    correct(&setting),
                )),
                Err(Error::Refused(_)) => Ok((
                    format!("rejects an invalid token as expected ({})", status.as_u16()),
                    time,
                    (),
                )),
                Err(Error::Unavailable(unavailable)) => {
                    Err(fault(settings, unavailable, &setting, url))
                }
            }
        };
        if self.call("endpoint", url, &setting, call).await.is_some()
            && !settings.preset.introspects_id_tokens
        {
            let problem = "may not support id_tokens: RFC 7662 is about access tokens, and only a sign-in can tell";
            let verify = settings.setting("verify");
            let remedy =
                format!("sign in once, and set {verify} to \"jwks\" if the sign-in is refused");
            self.add("endpoint", host(url), CheckResult::warn(problem, remedy));
        }
    }

    /// Sends a made-up code of each client to the token endpoint, as for a token that can be
    /// revoked, if there is a setting for that.
    async fn revocation(&mut self) {
        let settings = self.settings;
        if settings.client_key.is_some() || settings.revocation_url.is_some() {
            for client_id in settings
                .client_ids
                .iter()
                .filter(|client| settings.revokes(client))
            {
                self.code("revocation", client_id, &[], &format!(" of {client_id}"))
                    .await;
            }
        }
    }

    /// Sends a made-up code to the token endpoint, as the sign-in of staff does, unless it has no
    /// client secret or no endpoint.
    async fn staff(&mut self, redirect_uri: &str) {
        const PAGE: &str = "staff sign-in page";
        let settings = self.settings;
        let endpoint = settings.token_url.is_some() || settings.discovery.is_some();
        if settings.client_secret.is_some() && endpoint {
            if let Err(error) = self.provider.authorization_url(self.now).await {
                self.not_located(PAGE, error);
            }
            let verifier = MADE_UP.repeat(3);
            let fields = [("redirect_uri", redirect_uri), ("code_verifier", &verifier)];
            self.code("staff sign-in", &settings.client_ids[0], &fields, "")
                .await;
        }
        if let Some(stray) = settings.stray_endpoint() {
            let remedy = format!(
                "set {} to the provider's own endpoint",
                settings.setting(stray)
            );
            self.not_called(PAGE, Fault::new(google::STRAY, remedy));
        }
    }

    /// Checks that the token endpoint refuses a made-up code of a client.
    async fn code(
        &mut self,
        endpoint: &str,
        client_id: &str,
        fields: &[(&str, &str)],
        whose: &str,
    ) {
        let provider = self.provider;
        let settings = self.settings;
        let now = self.now;
        let url = match provider.token_endpoint(now).await {
            Ok((url, _)) => url,
            Err(unavailable) => return self.not_located(endpoint, unavailable.named(settings)),
        };
        let setting = settings.setting(provider.token_setting());
        let call = async {
            let fields = [&[("code", MADE_UP)], fields].concat();
            match provider.send_code(client_id, &fields, now).await {
                Ok(_) => Err(Fault::new("accepts an invalid code", correct(&setting))),
                Err(Rejected::Client(error)) => {
                    let [first, second, third] =
                        provider.credentials().map(|field| settings.setting(field));
                    let enabled = match settings.client_key {
                        Some(_) => ", and that the key is enabled for the primary App ID",
                        None => "",
                    };
                    let problem = format!("rejects the client credentials{whose} ({error})");
                    Err(Fault::new(
                        problem,
                        format!("check {first}, {second} and {third}{enabled}"),
                    ))
                }
                Err(Rejected::Code(error)) if error == "unsupported_grant_type" => Err(Fault::new(
                    "does not support the authorization-code grant",
                    "enable the authorization-code flow for this client at the provider",
                )),
                Err(Rejected::Code(error)) => Ok((
                    format!("rejects an invalid code{whose} as expected ({error})"),
                    None,
                    (),
                )),
                Err(Rejected::Unavailable(unavailable)) => {
                    Err(fault(settings, unavailable, &setting, &url))
                }
            }
        };
        self.call(endpoint, &url, &setting, call).await;
    }

    /// Reports that the endpoint, or our authentication at it, could not be determined.
    fn not_located(&mut self, endpoint: &str, error: impl Display) {
        let remedy = format!("check {}", self.settings.setting("issuer"));
        self.not_called(
            endpoint,
            Fault::new(format!("cannot be called: {error}"), remedy),
        );
    }

    fn not_discovered(&mut self, endpoint: &str, member: Endpoint, field: &str) {
        let remedy = format!("set {}", self.settings.setting(field));
        let problem = format!("is unknown: the discovery document has no `{member}`");
        self.not_called(endpoint, Fault::new(problem, remedy));
    }

    fn not_called(&mut self, endpoint: &str, fault: Fault) {
        let discovery = self.settings.discovery.as_ref();
        self.add(
            endpoint,
            discovery.map(host).unwrap_or_default(),
            CheckResult::Fail(fault),
        );
    }

    /// Makes a call, and adds a line about it, and one about the provider's clock.
    async fn call<T>(
        &mut self,
        endpoint: &str,
        url: &Url,
        setting: &str,
        call: impl Future<Output = Result<Success<T>, Fault>>,
    ) -> Option<T> {
        let started = Instant::now();
        let late = |_| {
            Err(fault(
                self.settings,
                Unavailable::new(Class::Timeout),
                setting,
                url,
            ))
        };
        let outcome = timeout(DEADLINE, call).await.unwrap_or_else(late);
        let took = started.elapsed().as_millis();
        match outcome {
            Ok((well, time, value)) => {
                self.add(
                    endpoint,
                    host(url),
                    CheckResult::Ok(format!("{well}, {took} ms")),
                );
                if let (Some(time), Some((subject, _))) = (time, self.lines.last()) {
                    let ahead =
                        CheckResult::of_clock(time.saturating_sub(self.time()), "the provider's");
                    self.lines.push((format!("{subject}, its clock"), ahead));
                }
                Some(value)
            }
            Err(Fault { problem, remedy }) => {
                self.add(
                    endpoint,
                    host(url),
                    CheckResult::fail(format!("{problem}, {took} ms"), remedy),
                );
                None
            }
        }
    }

    fn add(&mut self, endpoint: &str, host: &str, check_result: CheckResult) {
        self.lines.push((
            format!("provider {}, {endpoint} ({host})", self.settings.name),
            check_result,
        ));
    }

    fn time(&self) -> i64 {
        let elapsed = i64::try_from(self.started.elapsed().as_secs()).unwrap_or_default();
        self.now.saturating_add(elapsed)
    }
}

/// Builds a token with the claims of a valid one but without a valid signature. It always parses,
/// because its parts have the required form.
pub(super) fn worthless_token(provider: &config::Provider, now: i64) -> Option<IdToken> {
    let issuer = match &provider.issuers {
        Issuers::Listed(issuers) => issuers.first(),
        Issuers::Tenants(_) => None,
    };
    let header = json!({ "alg": "RS256", "typ": "JWT", "kid": "vestibule-check" });
    let claims = json!({
        "iss": issuer, "aud": provider.client_ids[0], "sub": "vestibule-check", "iat": now, "exp": now + 300,
    });
    let parts = [
        header.to_string().into_bytes(),
        claims.to_string().into_bytes(),
        vec![0; 256],
    ];
    let text = parts.map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
    IdToken::parse(&text, provider.token_format).ok()
}

/// Explains what failed, to an operator who can correct `setting`.
fn fault(settings: &config::Provider, unavailable: Unavailable, setting: &str, url: &Url) -> Fault {
    let class = unavailable.class();
    let Unavailable {
        class: kind,
        why,
        seen,
        ..
    } = unavailable;
    let named = |field| settings.setting(field);
    let remedy = match kind {
        Class::Connect | Class::Connection if why.is_some() => CERTIFICATE.into(),
        Class::Connect | Class::Connection | Class::Timeout => {
            format!(
                "check {setting}, and that this machine can reach {}, directly or by HTTPS_PROXY",
                host(url)
            )
        }
        Class::Status3xx => {
            format!(
                "set {setting} to the target of the redirect, because redirects are not followed"
            )
        }
        Class::Status4xx if why.as_deref() == Some(tokeninfo::CONFIDENTIAL) => {
            format!(
                "correct {setting}; {}: check {}",
                tokeninfo::CONFIDENTIAL,
                named("client_secret")
            )
        }
        Class::Status4xx if seen.as_deref() == Some("responds with 403") => {
            format!("correct {setting}, or allow this machine's IP address at the provider")
        }
        Class::Status429 => "try again later, and check the provider's limits".into(),
        Class::Status5xx => format!("see the provider's status page, or check {setting}"),
        Class::ErrorIn200 => "see the provider's status page".into(),
        Class::ClientAuthentication => {
            format!(
                "check {} and {}",
                named("client_id"),
                named("client_secret")
            )
        }
        Class::NotIntrospected => format!("set {} to \"jwks\"", named("verify")),
        Class::NotIntrospection => format!("correct {setting} or {}", named("preset")),
        _ => correct(setting),
    };
    let problem = seen.unwrap_or_else(|| match kind {
        Class::Timeout => "did not respond in time".into(),
        Class::ErrorIn200 => "reports an error of its own".into(),
        Class::Metadata => why.unwrap_or_default(),
        Class::ClientAuthentication => "rejects the client credentials".into(),
        Class::NotIntrospected => "does not introspect id_tokens".into(),
        Class::NotIntrospection => "does not respond like a token introspection endpoint".into(),
        _ => format!("returns an unusable response ({class})"),
    });
    Fault { problem, remedy }
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
