//! Sign-out: ends one session, the others, or all of a user's.

use std::iter;

use uuid::Uuid;

pub use crate::accounts::sessions::Scope;
use crate::accounts::sessions::{by_refresh_token, end, is_of};
use crate::accounts::tokens::refresh_token::{REPEAT, RefreshToken, Successors};
use crate::database::{Database, Error};
use crate::domain::{Origin, Thumbprint};

/// Ends sessions of the user of `session`. Sessions that have already ended stay as they are.
pub async fn sign_out(
    database: &Database,
    session: Uuid,
    scope: Scope,
    origin: &Origin,
) -> Result<(), Error> {
    database
        .run(|_| end(database, session, scope, origin))
        .await
        .map(drop)
}

/// Ends sessions by a refresh token. An unknown token ends nothing and is no error (RFC 7009 §2.2).
/// A token that can no longer be exchanged can end only its own session. If the session is bound to
/// another key than `key`, nothing ends, and the session's id is returned.
pub async fn sign_out_by_token(
    database: &Database,
    successors: &Successors,
    token: &str,
    key: Option<Thumbprint>,
    scope: Scope,
    origin: &Origin,
) -> Result<Option<Uuid>, Error> {
    let Some(token) = RefreshToken::parse(token) else {
        return Ok(None);
    };
    let exchangeable = (scope != Scope::Local).then_some(REPEAT);
    let family = token.family_hash();
    let secret = token.token_hash();
    let derivations = iter::once(successors).chain(successors.previous());
    let successors: Vec<_> = derivations.map(|by| by.of(&token).token_hash()).collect();
    let id = token.session();
    match database
        .run(|_| {
            by_refresh_token(
                database,
                id,
                &family,
                &secret,
                &successors,
                exchangeable,
                key,
            )
        })
        .await?
    {
        Some(true) => sign_out(database, id, scope, origin).await.map(|()| None),
        Some(false) => Ok(Some(id)),
        None => Ok(None),
    }
}

/// Ends one of the user's sessions. Returns `false` if it is not theirs or has already ended.
pub async fn end_session(
    database: &Database,
    user: Uuid,
    session: Uuid,
    origin: &Origin,
) -> Result<bool, Error> {
    let found = database.run(|_| is_of(database, session, user)).await?;
    if found {
        sign_out(database, session, Scope::Local, origin).await?;
    }
    Ok(found)
}
