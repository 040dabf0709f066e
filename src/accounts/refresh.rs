//! Refresh: exchanges a refresh token for a new access token and a new refresh token (RFC 9700
//! §4.14.2).

use std::sync::Arc;

use uuid::Uuid;

use crate::accounts::sessions::{self, Exchange, NotRefreshed};
use crate::accounts::tokens::Tokens;
use crate::accounts::tokens::refresh_token::{REPEAT, RefreshToken, Successors};
use crate::accounts::{Issuer, SharedStatements};
use crate::database;
use crate::database::Database;
use crate::domain::{Origin, Thumbprint};
use crate::keys::signing_key;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The session, of this id, is bound to a key that the request does not prove.
    #[error("the key of the session is not proven")]
    Unproven(Uuid),
    /// The token cannot be exchanged.
    #[error("refused: {0:?}")]
    Refused(NotRefreshed),
    #[error(transparent)]
    Store(#[from] database::Error),
    #[error(transparent)]
    Sign(#[from] signing_key::Error),
}

/// Exchanges a refresh token at `now` (seconds since the epoch). The token of a bound session needs
/// a proof by its `key`.
pub async fn refresh(
    database: &Database,
    shared: &SharedStatements,
    issuer: &Issuer,
    presented: &str,
    key: Option<Thumbprint>,
    origin: &Origin,
    now: i64,
) -> Result<Tokens, Error> {
    let presented = RefreshToken::parse(presented).ok_or(Error::Refused(NotRefreshed::Unknown))?;
    let period = now.div_euclid(REPEAT.into());
    let successors_by = |by: &Successors| {
        [
            by.of(&presented),
            by.reissue(&presented, period),
            by.reissue(&presented, period - 1),
        ]
    };
    let successors = successors_by(&shared.successors);
    let previous = shared.successors.previous().map(successors_by);
    let item = Arc::new(Exchange {
        session_id: presented.session(),
        family_hash: presented.family_hash(),
        presented_hash: presented.token_hash(),
        successor_hashes: successors.each_ref().map(RefreshToken::token_hash),
        previous_hashes: previous
            .as_ref()
            .map(|previous| previous.each_ref().map(RefreshToken::token_hash)),
        key,
        origin: origin.clone(),
    });
    // If a broken connection has exchanged the token after all, the next attempt is a repeat.
    let alone = async {
        let exchange =
            || sessions::refresh(database, std::slice::from_ref(&item), shared.lifetimes);
        let mut verdicts = database.run_on(item.session_id, |_| exchange()).await?;
        let verdict = verdicts.pop().flatten();
        verdict.ok_or_else(|| database::Error::unexpected("none"))
    };
    let verdict = shared.refresh.run(item.clone(), alone).await?;
    let session = verdict.map_err(|why| match why {
        NotRefreshed::Unproven => Error::Unproven(item.session_id),
        why => Error::Refused(why),
    })?;
    let user = session.user_id;
    let id = session.session_id;
    let client_id = &session.client_id;
    let key = key.as_ref().filter(|_| session.bound);
    let refresh_expires_in = session.refresh_expires_in;
    let expires_in = issuer.ttl.min(refresh_expires_in);
    let access_token = issuer.issue(
        user,
        id,
        client_id,
        key,
        &session.claims,
        now..now + i64::from(expires_in),
    )?;
    let refresh_token = successors
        .iter()
        .chain(previous.iter().flatten())
        .nth(session.successor);
    let refresh_token = refresh_token
        .ok_or_else(|| database::Error::unexpected("no successor"))?
        .text();
    Ok(Tokens {
        access_token,
        expires_in,
        refresh_token,
        refresh_expires_in,
        bound: session.bound,
    })
}
