//! Forgetting the addresses of people who were deleted, in batches: see `forget.sql`.

use sqlx::PgPool;

use super::Error;

/// Forgets one of these addresses, or any, in some of the events that hold it. Answers in how many; none where there
/// was no address to forget, or other instances are at it.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn batch(pool: &PgPool, addresses: Option<&[String]>) -> Result<Option<usize>, Error> {
    let forgotten = sqlx::query_file_scalar!("src/store/forget.sql", addresses).fetch_optional(pool).await?;
    Ok(forgotten.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
}
