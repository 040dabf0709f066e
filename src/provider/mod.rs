//! Asking identity providers: outbound HTTP, and the verdict on what they answer.
//!
//! [`Providers::verify`] is the whole of it: early refusals, the call, the claims. It holds no
//! database connection and knows nothing of users.

mod answer;
mod authorization_code;
mod client;
mod tokeninfo;

use std::collections::BTreeMap;

pub use self::answer::Unavailable;
pub use self::client::ClientError;
use crate::config;
use crate::domain::claims::{Expected, VerifiedClaims};
use crate::domain::id_token::IdToken;
use crate::domain::refusal::Refusal;

/// The configured providers, and the one HTTP client that they share.
#[derive(Debug)]
pub struct Providers {
    client: reqwest::Client,
    by_name: BTreeMap<String, config::Provider>,
}

/// Why a token was not verified.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The token is at fault.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The provider is at fault; the token may be good.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl Providers {
    /// Builds the client. It asks nobody yet.
    ///
    /// # Errors
    /// The system's TLS root certificates cannot be used.
    pub fn new(by_name: BTreeMap<String, config::Provider>) -> Result<Self, ClientError> {
        Ok(Self { client: client::build()?, by_name })
    }

    /// The providers' names.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.by_name.keys().cloned().collect()
    }

    /// The provider of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&config::Provider> {
        self.by_name.get(name)
    }

    /// Exchanges an authorization code for an `id_token` (RFC 6749 §4.1.3 with RFC 7636).
    ///
    /// # Errors
    /// The provider refuses the code, or gives no usable answer within five seconds.
    pub async fn exchange(
        &self,
        provider: &config::Provider,
        code: &str,
        code_verifier: &str,
        redirect_uri: &str,
    ) -> Result<String, Error> {
        authorization_code::exchange(&self.client, provider, code, code_verifier, redirect_uri).await
    }

    /// Verifies a token at its provider (OpenID Connect Core §3.1.3.7).
    ///
    /// # Errors
    /// The token is refused, here or there, or the provider gives no usable answer within
    /// five seconds.
    pub async fn verify(
        &self,
        provider: &config::Provider,
        token: &IdToken,
        nonce: Option<&str>,
        now: i64,
    ) -> Result<VerifiedClaims, Error> {
        let expected = Expected {
            issuers: &provider.issuers,
            audiences: &provider.client_ids,
            hosted_domains: &provider.allowed_domains,
            nonce,
            nonce_rule: provider.nonce,
            max_age: provider.max_token_age.into(),
            trust_email: provider.trust_email,
            now,
        };
        token.refuse_early(provider.token_format, &expected)?;
        let answer = tokeninfo::ask(&self.client, provider, token).await?;
        Ok(VerifiedClaims::validate(&answer, &expected)?)
    }
}
