//! Erasure of deleted users from events, in batches: from their own events (`erase_user.sql`), and of their e-mail
//! addresses from others' events (`erase_addresses.sql`).

use sqlx::PgPool;
use uuid::Uuid;

use super::Error;

/// Erases one e-mail address, of `only` or of all pending ones, from some events. Returns the number of events, or
/// `None` if no address is left or other instances work on them.
pub async fn addresses(pool: &PgPool, only: Option<&[String]>) -> Result<Option<usize>, Error> {
    let forgotten =
        sqlx::query_file_scalar!("src/store/erase_addresses.sql", only).fetch_optional(pool).await?;
    Ok(forgotten.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
}

/// Erases one user, of `only` or of all pending ones, from some of their own events. Returns the number of events, or
/// `None` if no user is left or other instances work on them.
pub async fn users(pool: &PgPool, only: Option<&[Uuid]>) -> Result<Option<usize>, Error> {
    let forgotten = sqlx::query_file_scalar!("src/store/erase_user.sql", only).fetch_optional(pool).await?;
    Ok(forgotten.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
}
