//! Made-up rows for development.

use figment::Figment;
use rocket::futures::stream::{self, StreamExt, TryStreamExt};

use super::{Error, database};
use crate::store::seed::{self, Batch, Table};

/// The number of batches that are written at the same time.
const CONNECTIONS: usize = 2;

/// The number of rows written, by table.
#[derive(Debug, Clone, Copy, Default)]
#[expect(missing_docs, reason = "they are the tables")]
pub struct Written {
    pub users: usize,
    pub identities: usize,
    pub sessions: usize,
    pub events: usize,
}

impl Written {
    /// Returns the total.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.users + self.identities + self.sessions + self.events
    }
}

/// Writes batches, each in one transaction. Calls `written` with the number of users in each batch.
///
/// # Errors
/// The database cannot be used. Batches written before stay.
pub async fn fill(
    figment: &Figment,
    batches: impl Iterator<Item = Batch>,
    mut written: impl FnMut(usize),
) -> Result<Written, Error> {
    let pool = database(figment).await?;
    let mut all = Written::default();
    let writes = stream::iter(batches).map(|batch| {
        let pool = &pool;
        async move { seed::write(pool, &batch).await.map(|()| batch) }
    });
    let mut writes = writes.buffer_unordered(CONNECTIONS);
    while let Some(batch) = writes.try_next().await? {
        all.users += batch.rows(Table::Users);
        all.identities += batch.rows(Table::Identities);
        all.sessions += batch.rows(Table::Sessions);
        all.events += batch.rows(Table::Events);
        written(batch.rows(Table::Users));
    }
    seed::analyze(&pool).await?;
    pool.close().await;
    Ok(all)
}
