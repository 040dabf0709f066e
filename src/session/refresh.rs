//! Refresh: a new access token, and a new refresh token in place of the one that is used up
//! (RFC 9700 §4.14.2).

use sqlx::PgPool;

use super::access_token::Issuer;
use super::refresh_token::RefreshToken;
use super::signing_key;
use crate::config;
use crate::secret::Secret;
use crate::store;
use crate::store::error::Retries;
use crate::store::sessions::{Lifetimes, NotRefreshed};
use crate::store::turns::in_turn;
use crate::store::users::Origin;

/// For how long the token just used up is good for another successor, in seconds. A phone whose
/// answer got lost tries again within it.
pub(super) const GRACE: u32 = 30;

/// What a refresh ends with.
#[derive(Debug)]
pub struct Refreshed {
    /// The credential for other services.
    pub access_token: Secret<String>,
    /// The credential for the next refresh.
    pub refresh_token: Secret<String>,
    /// For how many seconds it is good unless it is used: as long as any, or for the rest of the session's life.
    pub refresh_expires_in: u32,
}

/// Why there is no new credential.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The token is not one that can be exchanged.
    #[error("refused: {0:?}")]
    Refused(NotRefreshed),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// No access token could be made.
    #[error(transparent)]
    Sign(#[from] signing_key::Error),
}

/// Exchanges a refresh token at `now` (seconds since the epoch).
///
/// # Errors
/// See [`Error`].
pub async fn refresh(
    pool: &PgPool,
    issuer: &Issuer,
    lifetimes: config::Session,
    presented: &str,
    origin: &Origin,
    now: i64,
) -> Result<Refreshed, Error> {
    let hash = RefreshToken::parse(presented).ok_or(Error::Refused(NotRefreshed::Unknown))?;
    let lifetimes = Lifetimes {
        refresh_token: lifetimes.refresh_token_ttl,
        session: lifetimes.absolute_ttl,
        grace: GRACE,
    };
    let mut retries = Retries::default();
    let (successor, verdict) = loop {
        // Should a broken connection have exchanged the token after all, the next run is a lost
        // answer's second try.
        let successor = RefreshToken::generate();
        let exchange = store::sessions::refresh(pool, &hash, &successor.hash, lifetimes, origin);
        match in_turn(pool, &hash, exchange).await {
            Ok(verdict) => break (successor, verdict),
            Err(error) => retries.after(error).await?,
        }
    };
    let session = verdict.map_err(Error::Refused)?;
    let access_token = issuer.issue(session.user_id, session.session_id, &session.client_id, now)?;
    let refresh_expires_in = session.refresh_expires_in;
    Ok(Refreshed { access_token, refresh_token: successor.text, refresh_expires_in })
}
