//! Erasure of deleted users from events, in batches.

use sqlx::PgPool;

use crate::database::Error;

/// Erases one trace, of `only` or of all pending ones, from some events; see `erase.sql`. Returns the number of events, or `None`
/// if no trace is left or other instances work on them.
pub async fn erase(pool: &PgPool, only: Option<&[String]>) -> Result<Option<usize>, Error> {
    let erased = sqlx::query_file_scalar!("src/events/erase.sql", only)
        .fetch_optional(pool)
        .await?;
    Ok(erased.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
}
