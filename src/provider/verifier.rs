//! The verification of a token by its provider: one function, [`Provider::ask`], for all providers and all
//! means of verification. Anything that protects the providers belongs around it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Once};
use std::time::Duration;

use reqwest::Client;
use tokio::time::timeout;
use url::Url;

use super::answer::{Class, DEADLINE, Unavailable, late};
use super::document::{self, Document};
use super::endpoint::Endpoint;
use super::{Error, Provider, authorization_code, events, probe, tokeninfo};
use crate::config::{self, ClientAuthentication, Protocol, Verify};
use crate::domain::claims::{self, Expected};
use crate::domain::id_token::Unverified;
use crate::domain::jwk::KeySet;
use crate::domain::jws::{Failure, Jws};
use crate::domain::metadata::Metadata;
use crate::domain::{IdToken, Object, Refusal, VerifiedClaims, introspection, issuer};

/// Time for the waits before a call, in addition to the timeout of the call itself.
const MARGIN: Duration = Duration::from_millis(300);

/// Verified claims, by their source.
pub(super) enum Claims<'t> {
    /// The token's own claims, which the provider has signed.
    Own(&'t Object),
    /// The endpoint's claims, with those of a token that it has introspected.
    Asserted(Arc<Object>),
}

impl Deref for Claims<'_> {
    type Target = Object;

    fn deref(&self) -> &Object {
        match self {
            Self::Own(claims) => claims,
            Self::Asserted(claims) => claims,
        }
    }
}

/// The HTTP client, the endpoint and the published documents of one provider.
pub(super) struct Upstream {
    pub client: Client,
    pub endpoint: Endpoint,
    pub(super) metadata: Arc<Document<Metadata>>,
    pub(super) keys: Arc<Document<KeySet>>,
    pub(super) events: events::Documents,
    /// Used once the operator has been warned that its tokens have no `email`.
    without_email: Once,
}

impl Upstream {
    pub fn new(client: Client, settings: &config::Provider) -> Self {
        let issuer = settings.issuer.clone().unwrap_or_default();
        let metadata = Document::new(
            client.clone(),
            &settings.name,
            "issuer",
            Box::new(move |document| Metadata::read(document, &issuer).map_err(document::unfit("issuer"))),
        );
        let setting = if settings.jwks_url.is_some() { "jwks_url" } else { "issuer" };
        let keys = document::keys(client.clone(), &settings.name, setting);
        let events = events::Documents::new(&client, settings);
        Self { client, endpoint: Endpoint::new(settings), metadata, keys, events, without_email: Once::new() }
    }
}

impl Provider {
    /// Returns the claims that a provider confirms. They are not yet compared with what is expected of them.
    pub(super) async fn ask<'t>(
        &self,
        token: &'t IdToken,
        expected: &Expected<'_>,
    ) -> Result<Claims<'t>, Error> {
        let introspects = matches!(self.settings.protocol, Protocol::Introspection(_));
        let claims = async {
            match self.settings.verify {
                Verify::Tokeninfo => {
                    // Introspection confirms the token as a whole, and with it the claims of a JWT.
                    let own = token.unverified().filter(|_| introspects).map(Unverified::claims);
                    self.confirmed(token, own, expected).await
                }
                Verify::Jwks => self.signature(token, expected).await.map(Claims::Own),
                Verify::Both => {
                    let signed = self.signature(token, expected).await?;
                    // The signature proves it; the endpoint's answer does not matter.
                    self.confirmed(token, Some(signed), expected).await.map_err(|error| match error {
                        Error::Refused(refusal) => refusal.vouched().into(),
                        unavailable @ Error::Unavailable(_) => unavailable,
                    })
                }
            }
        };
        // The call itself has a shorter timeout and ends first, so that its result is recorded.
        timeout(DEADLINE + MARGIN, claims).await.unwrap_or_else(late)
    }

    /// Returns the claims that the endpoint confirms: its own, with those of the token if it introspects.
    async fn confirmed<'t>(
        &self,
        token: &IdToken,
        own: Option<&'t Object>,
        expected: &Expected<'_>,
    ) -> Result<Claims<'t>, Error> {
        if let Some(own) = own {
            // A token that fails our own checks is not sent to the provider.
            VerifiedClaims::validate(own, expected)?;
        }
        let answer = self.endpoint(token, expected.now).await?;
        let Some(own) = own else { return Ok(Claims::Asserted(answer)) };
        if matches!(self.settings.protocol, Protocol::Introspection(_)) {
            let claims =
                introspection::confirmed(own, &answer, expected.dialect).map_err(Refusal::vouched)?;
            return Ok(Claims::Asserted(Arc::new(claims)));
        }
        cross_check(own, &answer)?;
        Ok(Claims::Asserted(answer))
    }

    async fn endpoint(&self, token: &IdToken, now: i64) -> Result<Arc<Object>, Error> {
        let (settings, upstream) = (&self.settings, &self.upstream);
        let configured = settings.tokeninfo_url.as_ref();
        let url = self.locate(configured, now, |metadata| &metadata.introspection_url).await?;
        let call = || tokeninfo::ask(&upstream.client, settings, &url, token);
        let probe = || async {
            let token = probe::worthless_token(settings, now).ok_or(Unavailable::new(Class::NoProbe))?;
            tokeninfo::ask(&upstream.client, settings, &url, &token).await
        };
        upstream.endpoint.ask(token, now, call, probe).await
    }

    async fn signature<'t>(&self, token: &'t IdToken, expected: &Expected<'_>) -> Result<&'t Object, Error> {
        let jws = Jws::read(token)?;
        let now = expected.now;
        let configured = self.settings.jwks_url.as_ref();
        let url = self.locate(configured, now, |metadata| &metadata.jwks_url).await?;
        let verdict = self.upstream.keys.verify(&jws, expected.issuers, &url, now).await?;
        Ok(verdict.map_err(Failure::into_refusal)?)
    }

    /// Warns the operator, once, that a provider's tokens have no `email`. Many providers return it only at
    /// the userinfo endpoint, which is not called.
    pub(super) fn warn_without_email(&self) {
        if self.settings.discovery.is_some() {
            self.upstream.without_email.call_once(|| {
                tracing::warn!(
                    provider = self.settings.name,
                    "the id_token has no `email`, so the user has no e-mail address and staff cannot be recognised; request the \
                     scope `email` in the app, and configure the provider to add `email` and `email_verified` to the id_token"
                );
            });
        }
    }

    /// Returns the URL of an endpoint: the one that is set, or the one that the provider publishes.
    pub(super) async fn locate<'p>(
        &self,
        configured: Option<&'p Url>,
        now: i64,
        published: impl Fn(&Metadata) -> &Option<Url>,
    ) -> Result<Cow<'p, Url>, Unavailable> {
        if let Some(url) = configured {
            return Ok(Cow::Borrowed(url));
        }
        let missing = || Unavailable::misconfigured(Class::NoEndpoint, "issuer");
        let metadata = self.settings.discovery.as_ref().ok_or_else(missing)?;
        let metadata = self.upstream.metadata.get(metadata, now).await?;
        Ok(Cow::Owned(published(&metadata.value).clone().ok_or_else(missing)?))
    }

    pub(super) async fn token_endpoint(
        &self,
        now: i64,
    ) -> Result<(Cow<'_, Url>, ClientAuthentication), Unavailable> {
        let settings = &self.settings;
        let url = self.locate(settings.token_url.as_ref(), now, |metadata| &metadata.token_url).await?;
        let published = match &settings.discovery {
            Some(url) if settings.token_auth.is_none() => Some(self.upstream.metadata.get(url, now).await?),
            _ => None,
        };
        let published = published.as_ref().map(|held| &held.value);
        Ok((url, authorization_code::authentication(settings, published)?))
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").finish_non_exhaustive()
    }
}

/// Compares the endpoint's answer with the token's own claims: issuer, subject and audience.
///
/// The claims have passed every check by now, so a contradiction is the provider's fault.
fn cross_check(own: &Object, answer: &Object) -> Result<(), Unavailable> {
    let text = |claims: &'_ Object, name| claims.str(name).unwrap_or_default().to_owned();
    let agreed = issuer::same(&text(own, "iss"), &text(answer, "iss"))
        && text(own, "sub") == text(answer, "sub")
        && claims::audience(own) == claims::audience(answer);
    agreed.then_some(()).ok_or_else(|| Unavailable::new(Class::Disagreement).by_token())
}
