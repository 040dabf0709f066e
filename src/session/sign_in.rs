//! Sign in with what a provider vouches for: decide, remember, hand out a credential.

use std::sync::Arc;

use sqlx::PgPool;
use uuid::Uuid;

use super::access_token::Issuer;
use super::lanes::SharedStatements;
use super::refresh_token::RefreshToken;
use super::signing_key;
use crate::config;
use crate::domain::claims::VerifiedClaims;
use crate::domain::refusal::Reason;
use crate::secret::Secret;
use crate::store;
use crate::store::error::Retries;
use crate::store::turns::in_turn;
use crate::store::users::{Origin, SignIn, SignedIn};

/// A verified identity that wants a session.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// The provider that vouches.
    pub provider: &'a config::Provider,
    /// What it vouches for.
    pub claims: &'a VerifiedClaims,
    /// Whether an unknown identity may become a user.
    pub create: bool,
    /// What the device calls itself.
    pub device_name: Option<&'a str>,
    /// What the device runs.
    pub device_platform: Option<&'a str>,
    /// Where the request came from.
    pub origin: &'a Origin,
    /// Seconds since the epoch.
    pub now: i64,
}

/// What a sign-in ends with.
#[derive(Debug)]
pub struct Opened {
    /// Whose session it is.
    pub signed_in: SignedIn,
    /// The credential for other services.
    pub access_token: Secret<String>,
    /// The credential for a new access token.
    pub refresh_token: Secret<String>,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A rule says no.
    #[error("refused: {0}")]
    Refused(Reason),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// No access token could be made.
    #[error(transparent)]
    Sign(#[from] signing_key::Error),
}

/// Finds, creates or links the user and opens a session.
///
/// Known identities, and new ones with an e-mail that nobody has, share a statement with whoever signs in at the same
/// moment. All the rest, and whatever such a statement does not do, is one statement of its own.
///
/// # Errors
/// See [`Error`]. Nothing but the event of a refusal was written.
pub async fn sign_in(
    pool: &PgPool,
    shared: &SharedStatements,
    issuer: &Issuer,
    attempt: &Attempt<'_>,
) -> Result<Opened, Error> {
    let decision = attempt.provider.policy.decide(attempt.claims, attempt.create);
    // A run whose connection broke may have taken effect, so each has a session of its own.
    let new_session = || {
        let token = RefreshToken::first(Uuid::now_v7());
        let item = SignIn {
            provider: attempt.provider.name.clone(),
            claims: attempt.claims.clone(),
            decision,
            session_id: token.session(),
            family_hash: token.family_hash(),
            token_hash: token.token_hash(),
            origin: attempt.origin.clone(),
            device_name: attempt.device_name.map(str::to_owned),
            device_platform: attempt.device_platform.map(str::to_owned),
        };
        (token, Arc::new(item))
    };
    let (mut token, mut item) = new_session();
    let mut signed_in = shared.known.submit(item.clone()).await?;
    if signed_in.is_none() && decision.if_free.is_ok() {
        (token, item) = new_session();
        signed_in = shared.new.submit(item).await?;
    }
    let mut retries = Retries::default();
    let signed_in = loop {
        if let Some(done) = signed_in {
            break done;
        }
        (token, item) = new_session();
        let person = (&item.provider, &item.claims.subject);
        match in_turn(pool, person, store::users::sign_in(pool, &item, shared.lifetimes.refresh_token)).await
        {
            Ok(verdict) => signed_in = Some(verdict.map_err(Error::Refused)?),
            Err(error) => retries.after(error).await?,
        }
    };
    let access_token =
        issuer.issue(signed_in.user.id, token.session(), &attempt.claims.client_id, attempt.now)?;
    Ok(Opened { signed_in, access_token, refresh_token: token.text() })
}
