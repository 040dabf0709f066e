//! The messages that a provider pushes, such as security events: their issuer, their keys and their
//! signature.

use std::sync::Arc;

use reqwest::Client;
use tokio::time::timeout;
use url::Url;

use super::answer::{Class, DEADLINE, Unavailable, late};
use super::document::{self, Document};
use super::upstream::Provider;
use crate::config;
use crate::domain::jwk::KeySet;
use crate::domain::jws::{Failure, Jws};
use crate::domain::metadata::{Endpoint, Transmitter, transmitter_address};
use crate::domain::security_event::{self, Fault, Refused};
use crate::domain::{IdToken, Issuers, Object, Refusal};
use crate::secret::{Replaceable, Secret};

/// The reason why a message was not verified. It must not be acknowledged.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EventError {
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The provider's keys, or the secret that it signs with, are not available; the message may be
    /// genuine.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// The published documents about a provider's security events.
pub(super) struct Documents {
    /// The URL of the first, if there is one to look for.
    url: Option<Url>,
    pub transmitter: Arc<Document<Transmitter>>,
    pub keys: Arc<Document<KeySet>>,
}

impl Documents {
    pub fn new(client: &Client, settings: &config::Provider) -> Self {
        // A document at the issuer's own URL speaks for that issuer only.
        let issuer = settings
            .issuer
            .clone()
            .filter(|_| settings.ssf_url.is_none());
        let derived = issuer.as_deref().and_then(|issuer| Url::parse(issuer).ok());
        let url = settings
            .ssf_url
            .clone()
            .or_else(|| derived.as_ref().map(transmitter_address));
        let transmitter = Document::new(
            client.clone(),
            &settings.name,
            "ssf_url",
            Box::new(move |document| {
                Transmitter::read(document, issuer.as_deref()).map_err(document::unfit("ssf_url"))
            }),
        );
        let keys = document::keys(client.clone(), &settings.name, "ssf_url");
        Self {
            url,
            transmitter,
            keys,
        }
    }
}

/// The issuer and the keys of a provider's messages.
struct Source<'p> {
    issuers: Issuers,
    url: Url,
    keys: &'p Arc<Document<KeySet>>,
}

impl Provider {
    /// Returns true if the provider publishes keys, with which it can sign messages.
    pub fn signs_events(&self) -> bool {
        self.upstream.events.url.is_some()
            || self.settings.jwks_url.is_some()
            || self.settings.discovery.is_some()
    }

    pub async fn verify_event(&self, token: &IdToken, now: i64) -> Result<Object, EventError> {
        timeout(DEADLINE, self.judge(token, now))
            .await
            .unwrap_or_else(late)
            .map_err(|error| match error {
                EventError::Unavailable(unavailable) => unavailable.named(&self.settings).into(),
                refused @ EventError::Refused(_) => refused,
            })
    }

    /// Returns the secret that the provider signs its requests to us with.
    pub fn app_secret(&self) -> Result<Secret<String>, Unavailable> {
        self.settings
            .client_secret
            .as_ref()
            .map(Replaceable::now)
            .ok_or_else(|| Unavailable {
                check: vec![self.settings.setting("client_secret").into()],
                ..Unavailable::new(Class::NoClientSecret)
            })
    }

    async fn judge(&self, token: &IdToken, now: i64) -> Result<Object, EventError> {
        // Checks that cost no call come first: attackers can send messages, too.
        security_event::check_kind(token, self.settings.preset.messages_expire)?;
        let jws = Jws::read_event(token).map_err(|refusal| Refused {
            fault: Fault::InvalidKey,
            ..failed(refusal)
        })?;
        let claims = token
            .unverified()
            .ok_or(Refused::malformed("the message is not a signed JWT"))?
            .claims();
        security_event::check_audience(claims, &self.settings.client_ids)?;
        let Source { issuers, url, keys } = self.event_source(now).await?;
        security_event::check_issuer(claims, &issuers)?;
        match keys.verify(&jws, &issuers, &url, now).await? {
            Err(Failure::UnknownKey) => {
                let detail = "the message is not signed with a published key of the provider";
                Err(Refused::new(Fault::InvalidKey, detail).into())
            }
            verdict => Ok(verdict
                .map_err(|failure| failed(failure.into_refusal()))?
                .clone()),
        }
    }

    /// Returns the issuer and the keys of the provider's messages, from its document about security
    /// events. Without such a document, its tokens' issuer and keys apply; if the document has no
    /// keys, its tokens' keys apply.
    async fn event_source(&self, now: i64) -> Result<Source<'_>, Unavailable> {
        let Documents {
            url,
            transmitter,
            keys,
        } = &self.upstream.events;
        let mut issuers = self.settings.issuers.clone();
        if let Some(url) = url {
            match transmitter.get(url, now).await {
                Ok(held) => {
                    let Transmitter { issuer, jwks_url } = &held.value;
                    issuers = Issuers::Listed(vec![issuer.clone()]);
                    if let Some(url) = jwks_url.clone() {
                        return Ok(Source { issuers, url, keys });
                    }
                }
                Err(unavailable)
                    if self.settings.ssf_url.is_none() && is_no_document(&unavailable) => {}
                Err(unavailable) => return Err(unavailable),
            }
        }
        let configured = self.settings.jwks_url.as_ref();
        let url = self
            .locate(configured, now, Endpoint::Keys)
            .await?
            .into_owned();
        Ok(Source {
            issuers,
            url,
            keys: &self.upstream.keys,
        })
    }
}

/// Returns true for the response of a server that has no document at this URL. Some answer every
/// unknown path with a page, or lead to one.
fn is_no_document(unavailable: &Unavailable) -> bool {
    matches!(
        unavailable.class,
        Class::Status4xx | Class::Status3xx | Class::ContentType
    )
}

fn failed(refusal: Refusal) -> Refused {
    Refused {
        log: refusal.log,
        ..Refused::new(Fault::AuthenticationFailed, refusal.detail)
    }
}
