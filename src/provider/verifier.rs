//! The verification of a token by its provider, for all providers and all means of verification.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout;
use url::Url;

use super::answer::{Class, DEADLINE, Unavailable, late};
use super::error::Error;
use super::upstream::Provider;
use super::{authorization_code, document, probe, tokeninfo};
use crate::config::{ClientAuthentication, Verify};
use crate::domain::claims::{self, Expected};
use crate::domain::id_token::Unverified;
use crate::domain::jws::{Failure, Jws};
use crate::domain::metadata::{Endpoint, Metadata};
use crate::domain::presets::Protocol;
use crate::domain::{IdToken, Object, Refusal, VerifiedClaims, introspection, issuer};

/// Time for the waits before a call, in addition to the timeout of the call itself.
const MARGIN: Duration = Duration::from_millis(300);

impl Provider {
    /// Verifies a token at its provider (OpenID Connect Core §3.1.3.7).
    pub async fn verify(
        &self,
        token: &IdToken,
        nonce: Option<&str>,
        now: i64,
    ) -> Result<VerifiedClaims, Error> {
        let provider = &self.settings;
        let expected = Expected {
            issuers: &provider.issuers,
            audiences: &provider.client_ids,
            companions: &provider.additional_audiences,
            hosted_domains: &provider.allowed_domains,
            nonce,
            nonces: &provider.nonces,
            max_age: provider.max_token_age.into(),
            trust_email: provider.trust_email,
            dialect: provider.dialect(),
            now,
        };
        let claims = async {
            token.refuse_early(provider.token_format, &expected)?;
            // The call itself has a shorter timeout and ends first, so that its result is recorded.
            timeout(DEADLINE + MARGIN, self.confirmed(token, &expected))
                .await
                .unwrap_or_else(late)
        };
        let claims: Result<_, Error> = claims.await;
        self.upstream
            .health
            .record(&provider.name, &claims, Instant::now());
        let claims = claims.map_err(|error| error.named(provider))?;
        if claims.email.is_none() {
            self.warn_without_email();
        }
        Ok(claims)
    }

    async fn confirmed(
        &self,
        token: &IdToken,
        expected: &Expected<'_>,
    ) -> Result<VerifiedClaims, Error> {
        match self.settings.verify {
            Verify::Tokeninfo => {
                // Introspection confirms the token as a whole, and with it the claims of a JWT.
                let own = token
                    .unverified()
                    .filter(|_| self.introspects())
                    .map(Unverified::claims);
                self.asserted(token, own, expected).await
            }
            Verify::Jwks => vouched(self.signature(token, expected).await?, expected),
            Verify::Both => {
                let signed = self.signature(token, expected).await?;
                // The signature proves it; the endpoint's answer does not matter.
                self.asserted(token, Some(signed), expected)
                    .await
                    .map_err(|error| match error {
                        Error::Refused(refusal) => refusal.vouched().into(),
                        unavailable @ Error::Unavailable(_) => unavailable,
                    })
            }
        }
    }

    /// Returns the claims that the endpoint asserts: its own, and the token's claims if it
    /// introspects.
    async fn asserted(
        &self,
        token: &IdToken,
        own: Option<&Object>,
        expected: &Expected<'_>,
    ) -> Result<VerifiedClaims, Error> {
        // A token that fails our own checks is not sent to the provider.
        let checked = own
            .map(|own| VerifiedClaims::validate(own, expected))
            .transpose()?;
        let answer = self.endpoint(token, expected.now).await?;
        match own.zip(checked) {
            Some((own, checked)) if self.introspects() => {
                let claims = introspection::confirmed(own, &answer, expected.dialect)
                    .map_err(Refusal::vouched)?;
                let told = vouched(&claims, expected)?;
                // The answer must not make the token younger.
                Ok(VerifiedClaims {
                    issued_at: told.issued_at.min(checked.issued_at),
                    ..told
                })
            }
            Some((own, _)) => {
                cross_check(own, &answer)?;
                vouched(&answer, expected)
            }
            None => vouched(&answer, expected),
        }
    }

    fn introspects(&self) -> bool {
        self.settings.preset.protocol == Protocol::Introspection
    }

    async fn endpoint(&self, token: &IdToken, now: i64) -> Result<Arc<Object>, Error> {
        let settings = &self.settings;
        let upstream = &self.upstream;
        let configured = settings.tokeninfo_url.as_ref();
        let url = self
            .locate(configured, now, Endpoint::Introspection)
            .await?;
        let call = || tokeninfo::ask(&upstream.client, settings, &url, token);
        let probe = || async {
            let token =
                probe::worthless_token(settings, now).ok_or(Unavailable::new(Class::NoProbe))?;
            tokeninfo::ask(&upstream.client, settings, &url, &token).await
        };
        upstream.endpoint.ask(token, call, probe).await
    }

    async fn signature<'t>(
        &self,
        token: &'t IdToken,
        expected: &Expected<'_>,
    ) -> Result<&'t Object, Error> {
        let jws = Jws::read(token)?;
        let now = expected.now;
        let configured = self.settings.jwks_url.as_ref();
        let url = self.locate(configured, now, Endpoint::Keys).await?;
        let verdict = self
            .upstream
            .keys
            .verify(&jws, expected.issuers, &url, now)
            .await?;
        Ok(verdict.map_err(Failure::into_refusal)?)
    }

    /// Warns the operator, once, that a provider's tokens have no `email`. Many providers return it
    /// only at the userinfo endpoint, which is called for staff alone.
    fn warn_without_email(&self) {
        if self.settings.discovery.is_some() {
            self.upstream.without_email.call_once(|| {
                tracing::warn!(
                    provider = self.settings.name,
                    "the id_token has no `email`, so the user has no e-mail address; request the scope `email` in the app, and \
                     configure the provider to add `email` and `email_verified` to the id_token"
                );
            });
        }
    }

    /// Returns the URL of an endpoint: the configured one, or else the published one.
    pub(super) async fn locate<'p>(
        &self,
        configured: Option<&'p Url>,
        now: i64,
        endpoint: Endpoint,
    ) -> Result<Cow<'p, Url>, Unavailable> {
        if let Some(url) = configured {
            return Ok(Cow::Borrowed(url));
        }
        let missing = || Unavailable::misconfigured(Class::NoEndpoint, "issuer");
        let metadata = self.settings.discovery.as_ref().ok_or_else(missing)?;
        let metadata = self.upstream.metadata.get(metadata, now).await?;
        self.warn_of_unusable(&metadata.value);
        let url = metadata
            .value
            .url(endpoint)
            .map_err(document::unfit("issuer"))?;
        Ok(Cow::Owned(url.cloned().ok_or_else(missing)?))
    }

    /// Warns the operator, once, of published endpoints that cannot be used.
    fn warn_of_unusable(&self, metadata: &Metadata) {
        if let Some(cause) = metadata.warning() {
            self.upstream.unusable_members.call_once(|| {
                let provider = &self.settings.name;
                tracing::warn!(
                    provider,
                    cause,
                    "the provider publishes endpoints that are not used"
                );
            });
        }
    }

    pub(super) async fn token_endpoint(
        &self,
        now: i64,
    ) -> Result<(Cow<'_, Url>, ClientAuthentication), Unavailable> {
        let settings = &self.settings;
        let url = self
            .locate(settings.token_url.as_ref(), now, Endpoint::Token)
            .await?;
        let published = match &settings.discovery {
            Some(url) if settings.token_auth.is_none() => {
                Some(self.upstream.metadata.get(url, now).await?)
            }
            _ => None,
        };
        let published = published.as_ref().map(|held| &held.value);
        Ok((
            url,
            authorization_code::authentication(settings, published)?,
        ))
    }
}

/// Validates claims that the provider has confirmed.
fn vouched(claims: &Object, expected: &Expected<'_>) -> Result<VerifiedClaims, Error> {
    Ok(VerifiedClaims::validate(claims, expected).map_err(Refusal::vouched)?)
}

/// Compares the endpoint's answer with the token's own claims: issuer, subject and audience.
///
/// The claims have passed every check by now, so a contradiction is the provider's fault.
fn cross_check(own: &Object, answer: &Object) -> Result<(), Unavailable> {
    let text = |claims: &'_ Object, name| claims.str(name).unwrap_or_default().to_owned();
    let agreed = issuer::same(&text(own, "iss"), &text(answer, "iss"))
        && text(own, "sub") == text(answer, "sub")
        && claims::audience(own) == claims::audience(answer);
    agreed
        .then_some(())
        .ok_or_else(|| Unavailable::new(Class::Disagreement).by_token())
}
