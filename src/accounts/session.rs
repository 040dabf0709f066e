//! The user of a session.

use std::slice;

use sqlx::PgPool;

use crate::accounts::lanes::SharedStatements;
use crate::accounts::sessions;
use crate::accounts::sessions::SessionUser;
use crate::accounts::tokens::access_token::AccessToken;
use crate::database::{Error, retrying};

/// Finds the user of the session that an access token names. Returns `None` if the session has ended, the user is disabled or
/// the identity is suspended.
pub async fn user(
    pool: &PgPool,
    shared: &SharedStatements,
    token: AccessToken,
) -> Result<Option<SessionUser>, Error> {
    let item = (token.session, token.user);
    if let Some(found) = shared.signed_in.submit(item).await? {
        return Ok(found);
    }
    let mut alone = retrying!(sessions::signed_in(pool, slice::from_ref(&item)))?;
    Ok(alone.pop().flatten())
}
