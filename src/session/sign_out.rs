//! Sign out: end one session, the others, or all of a user's.

use sqlx::PgPool;
use uuid::Uuid;

use super::refresh::REPEAT;
use super::refresh_token::RefreshToken;
use crate::store::Error;
use crate::store::error::retrying;
pub use crate::store::sessions::Scope;
use crate::store::sessions::{by_refresh_token, end, is_of};
use crate::store::users::Origin;

/// Ends sessions of the user who is signed in with this one. Whatever is ended already stays so.
///
/// # Errors
/// See [`Error`].
pub async fn sign_out(pool: &PgPool, session: Uuid, scope: Scope, origin: &Origin) -> Result<(), Error> {
    retrying!(end(pool, session, scope, origin)).map(drop)
}

/// The same for whoever has only a refresh token. One that is unknown ends nothing, and is told so
/// no more than RFC 7009 §2.2 does; one that was used up ends no session but its own.
///
/// # Errors
/// See [`Error`].
pub async fn sign_out_by_token(
    pool: &PgPool,
    token: &str,
    scope: Scope,
    origin: &Origin,
) -> Result<(), Error> {
    let Some(token) = RefreshToken::parse(token) else { return Ok(()) };
    let exchangeable = (scope != Scope::Local).then_some(REPEAT);
    let (family, secret) = (token.family_hash(), token.token_hash());
    match by_refresh_token(pool, token.session(), &family, &secret, exchangeable).await? {
        Some(session) => sign_out(pool, session, scope, origin).await,
        None => Ok(()),
    }
}

/// Ends one of the user's sessions; answers whether it was theirs and alive.
///
/// # Errors
/// See [`Error`].
pub async fn end_session(pool: &PgPool, user: Uuid, session: Uuid, origin: &Origin) -> Result<bool, Error> {
    let found = is_of(pool, session, user).await?;
    if found {
        sign_out(pool, session, Scope::Local, origin).await?;
    }
    Ok(found)
}
