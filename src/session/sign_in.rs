//! Sign in with what a provider vouches for: decide, remember, hand out a credential.

use sqlx::PgPool;
use uuid::Uuid;

use super::access_token::Issuer;
use super::refresh_token::RefreshToken;
use super::signing_key;
use crate::config;
use crate::domain::claims::VerifiedClaims;
use crate::domain::refusal::Reason;
use crate::domain::user::{Identity, User};
use crate::secret::Secret;
use crate::store;
use crate::store::error::Retries;
use crate::store::turns::in_turn;
use crate::store::users::{Origin, Outcome};

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
pub struct SignedIn {
    /// Whether the user is new.
    pub outcome: Outcome,
    /// The person.
    pub user: User,
    /// What they signed in with.
    pub identity: Identity,
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

/// Finds, creates or links the user and opens a session, in one round trip to the database.
///
/// # Errors
/// See [`Error`]. Nothing but the event of a refusal was written.
pub async fn sign_in(
    pool: &PgPool,
    issuer: &Issuer,
    lifetimes: config::Session,
    attempt: &Attempt<'_>,
) -> Result<SignedIn, Error> {
    let decision = attempt.provider.policy.decide(attempt.claims, attempt.create);
    let mut retries = Retries::default();
    let (session_id, refresh_token, verdict) = loop {
        // A run whose connection broke may have taken effect, so each has a session of its own.
        let session_id = Uuid::now_v7();
        let refresh_token = RefreshToken::generate();
        let input = store::users::SignIn {
            provider: &attempt.provider.name,
            claims: attempt.claims,
            decision,
            session_id,
            refresh_token_hash: &refresh_token.hash,
            refresh_token_ttl: lifetimes.refresh_token_ttl,
            max_sessions: lifetimes.max_per_identity,
            origin: attempt.origin,
            device_name: attempt.device_name,
            device_platform: attempt.device_platform,
        };
        let person = (&attempt.provider.name, &attempt.claims.subject);
        match in_turn(pool, person, store::users::sign_in(pool, &input)).await {
            Ok(verdict) => break (session_id, refresh_token, verdict),
            Err(error) => retries.after(error).await?,
        }
    };
    let (outcome, user, identity) = verdict.map_err(Error::Refused)?;
    let access_token = issuer.issue(user.id, session_id, &attempt.claims.client_id, attempt.now)?;
    Ok(SignedIn { outcome, user, identity, access_token, refresh_token: refresh_token.text })
}
