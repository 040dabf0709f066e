//! Everything that is asked outside to verify a token: one function, [`Outside::ask`], for all
//! providers and all ways of verifying. Whatever is to stand between the service and its providers
//! stands around it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Once};
use std::time::Duration;

use reqwest::Client;
use tokio::time::timeout;
use url::Url;

use super::answer::{DEADLINE, Unavailable};
use super::document::{self, Document};
use super::endpoint::Endpoint;
use super::health::Snapshot;
use super::{Error, agreement, authorization_code, check, tokeninfo};
use crate::config::{ClientAuthentication, Protocol, Provider, Verify};
use crate::domain::claims::{self, Expected, VerifiedClaims};
use crate::domain::id_token::{IdToken, Unverified};
use crate::domain::json::Object;
use crate::domain::jwk::KeySet;
use crate::domain::jws::{Failure, Jws};
use crate::domain::metadata::Metadata;

/// The way out: the one HTTP client, and what the providers publish.
pub(super) struct Outside {
    pub client: Client,
    published: BTreeMap<String, Published>,
}

/// What is left of the time of a call for the waits before it.
const MARGIN: Duration = Duration::from_millis(300);

/// Claims, and in whose words.
pub(super) enum Claims<'t> {
    /// The token's own, which the provider has signed, or introspected.
    Own(&'t Object),
    /// The endpoint's.
    Told(Arc<Object>),
}

impl Deref for Claims<'_> {
    type Target = Object;

    fn deref(&self) -> &Object {
        match self {
            Self::Own(claims) => claims,
            Self::Told(claims) => claims,
        }
    }
}

/// One provider: its endpoint, and what it publishes, as far as it is used.
struct Published {
    endpoint: Endpoint,
    metadata: Arc<Document<Metadata>>,
    keys: Arc<Document<KeySet>>,
    /// Whether the operator knows that its tokens have no `email`.
    without_email: Once,
}

impl Outside {
    pub fn new(client: Client, providers: &BTreeMap<String, Provider>) -> Self {
        let published = providers.iter().map(|(name, provider)| {
            let issuer = provider.issuer.clone().unwrap_or_default();
            let metadata = Document::new(
                client.clone(),
                name,
                "issuer",
                Box::new(move |document| {
                    Metadata::read(document, &issuer).map_err(|unfit| Unavailable {
                        why: Some(unfit.to_string()),
                        ..Unavailable::misconfigured("metadata", "issuer")
                    })
                }),
            );
            let keys = Document::new(
                client.clone(),
                name,
                if provider.jwks_url.is_some() { "jwks_url" } else { "issuer" },
                Box::new(|document| KeySet::read(document).map_err(|_| Unavailable::new("no_keys"))),
            );
            (
                name.clone(),
                Published { endpoint: Endpoint::new(provider), metadata, keys, without_email: Once::new() },
            )
        });
        Self { published: published.collect(), client }
    }

    /// How the calls to each endpoint went.
    pub fn health(&self) -> BTreeMap<&str, Snapshot> {
        self.published.iter().map(|(name, published)| (name.as_str(), published.endpoint.health())).collect()
    }

    /// What a provider vouches for. The claims are the provider's own words, yet to be held against
    /// what is expected of them.
    pub async fn ask<'t>(
        &self,
        provider: &Provider,
        token: &'t IdToken,
        expected: &Expected<'_>,
    ) -> Result<Claims<'t>, Error> {
        let introspects = matches!(provider.protocol, Protocol::Introspection(_));
        let verdict = async {
            match provider.verify {
                Verify::Tokeninfo => {
                    // Introspection vouches for the token that it is shown, a JWT with what is in it.
                    let own = token.unverified().filter(|_| introspects).map(Unverified::claims);
                    self.told(provider, token, own, expected).await
                }
                Verify::Jwks => self.signature(provider, token, expected).await.map(Claims::Own),
                Verify::Both => {
                    let signed = self.signature(provider, token, expected).await?;
                    self.told(provider, token, Some(signed), expected).await
                }
            }
        };
        // The call itself has the same time and ends first, so that it is known how it ended.
        timeout(DEADLINE + MARGIN, verdict).await.unwrap_or_else(|_| Err(Unavailable::new("timeout").into()))
    }

    /// What the endpoint vouches for: its own words, or, where it introspects, the token's.
    async fn told<'t>(
        &self,
        provider: &Provider,
        token: &IdToken,
        own: Option<&'t Object>,
        expected: &Expected<'_>,
    ) -> Result<Claims<'t>, Error> {
        if let Some(own) = own {
            // What is not good enough here is not shown to anybody.
            VerifiedClaims::validate(own, expected)?;
        }
        let answer = self.endpoint(provider, token, expected.now).await?;
        let Some(own) = own else { return Ok(Claims::Told(answer)) };
        let introspected = matches!(provider.protocol, Protocol::Introspection(_));
        agreement::check(own, &answer, introspected)?;
        if introspected {
            // Whom it was issued to is the endpoint's to say, where it does (RFC 7662 §2.2).
            claims::check_client_id(&answer, expected)?;
        }
        Ok(if introspected { Claims::Own(own) } else { Claims::Told(answer) })
    }

    async fn endpoint(&self, provider: &Provider, token: &IdToken, now: i64) -> Result<Arc<Object>, Error> {
        let configured = provider.tokeninfo_url.as_ref();
        let url = self.locate(provider, configured, now, |metadata| &metadata.introspection_url).await?;
        let call = || tokeninfo::ask(&self.client, provider, &url, token);
        let probe = || async {
            let token = check::worthless(provider, now).ok_or(Unavailable::new("no_probe"))?;
            tokeninfo::ask(&self.client, provider, &url, &token).await
        };
        self.published(provider)?.endpoint.ask(token, now, call, probe).await
    }

    async fn signature<'t>(
        &self,
        provider: &Provider,
        token: &'t IdToken,
        expected: &Expected<'_>,
    ) -> Result<&'t Object, Error> {
        let jws = Jws::read(token)?;
        let now = expected.now;
        let configured = provider.jwks_url.as_ref();
        let url = self.locate(provider, configured, now, |metadata| &metadata.jwks_url).await?;
        let document = &self.published(provider)?.keys;
        let keys = document.get(&url, now).await?;
        match jws.verify(&keys.value, expected.issuers) {
            Err(Failure::UnknownKey) => {}
            Err(Failure::Refused(refusal)) => return Err(refusal.into()),
            Ok(claims) => return Ok(claims),
        }
        // Perhaps the provider has new ones.
        let (keys, since) = document.renew(&url, now, &keys).await?;
        match jws.verify(&keys.value, expected.issuers) {
            // They were asked for before this token came, and its key may be newer.
            Err(Failure::UnknownKey) if !since => Err(document::unknown(1).into()),
            verdict => Ok(verdict.map_err(Failure::into_refusal)?),
        }
    }

    /// Tells the operator, once, that tokens of a provider that may have one have no `email`: many tell it by the
    /// userinfo endpoint only, which nobody asks.
    pub fn tell_without_email(&self, provider: &Provider) {
        if let (Some(_), Ok(published)) = (&provider.discovery, self.published(provider)) {
            published.without_email.call_once(|| {
                tracing::warn!(
                    provider = provider.name,
                    "its id_token has no `email`, so users have none and staff are not known; let the app ask for \
                     the scope `email`, and have the provider put `email` and `email_verified` into the id_token"
                );
            });
        }
    }

    /// An endpoint of a provider: the one that is set, or the one that it publishes.
    pub async fn locate<'p>(
        &self,
        provider: &'p Provider,
        configured: Option<&'p Url>,
        now: i64,
        published: impl Fn(&Metadata) -> &Option<Url>,
    ) -> Result<Cow<'p, Url>, Error> {
        if let Some(url) = configured {
            return Ok(Cow::Borrowed(url));
        }
        let missing = || Unavailable::misconfigured("no_endpoint", "issuer");
        let metadata = provider.discovery.as_ref().ok_or_else(missing)?;
        let metadata = self.published(provider)?.metadata.get(metadata, now).await?;
        Ok(Cow::Owned(published(&metadata.value).clone().ok_or_else(missing)?))
    }

    /// How we prove to the provider's token endpoint who asks.
    pub async fn token_auth(&self, provider: &Provider, now: i64) -> Result<ClientAuthentication, Error> {
        let published = match &provider.discovery {
            Some(url) if provider.token_auth.is_none() => {
                Some(self.published(provider)?.metadata.get(url, now).await?)
            }
            _ => None,
        };
        Ok(authorization_code::authentication(provider, published.as_ref().map(|held| &held.value))?)
    }

    fn published(&self, provider: &Provider) -> Result<&Published, Unavailable> {
        self.published.get(&provider.name).ok_or(Unavailable::new("unknown_provider"))
    }
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside").finish_non_exhaustive()
    }
}
