//! For statements that are planned anew for their values each time, and so are not kept prepared.

use sqlx::{PgPool, PgTransaction};

use super::Error;

/// A transaction for one statement with `.persistent(false)`. The statement is prepared without a name
/// and run in a second step; between the two, a pooler that lends connections for one transaction at a
/// time might lend this one to somebody whose nameless statement would then be run instead.
///
/// # Errors
/// See [`Error`].
pub(super) async fn for_once(pool: &PgPool) -> Result<PgTransaction<'static>, Error> {
    Ok(pool.begin().await?)
}
