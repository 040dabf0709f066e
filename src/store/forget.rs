//! Forgetting people who were deleted, in batches: their own events, see `forget_user.sql`, and their addresses in
//! others', see `forget.sql`.

use sqlx::PgPool;
use uuid::Uuid;

use super::Error;

/// Forgets one of these addresses, or any, in some of the events that hold it. Answers in how many; none where there
/// was no address to forget, or other instances are at it.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn addresses(pool: &PgPool, only: Option<&[String]>) -> Result<Option<usize>, Error> {
    let forgotten = sqlx::query_file_scalar!("src/store/forget.sql", only).fetch_optional(pool).await?;
    Ok(forgotten.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
}

/// Forgets one of these users, or any, in some of their own events. Answers in how many; none where there was nobody
/// to forget, or other instances are at it.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn users(pool: &PgPool, only: Option<&[Uuid]>) -> Result<Option<usize>, Error> {
    let forgotten = sqlx::query_file_scalar!("src/store/forget_user.sql", only).fetch_optional(pool).await?;
    Ok(forgotten.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
}
