//! Made-up rows for development.

use figment::Figment;
use rocket::futures::stream::{self, StreamExt, TryStreamExt};
use sqlx::PgPool;
use tokio::sync::mpsc::channel;
use tokio::task::spawn_blocking;

use super::{Error, database};
use crate::store::seed::{self, Batch, CONNECTIONS, Table};

/// The number of rows written, by table.
#[derive(Debug, Clone, Copy, Default)]
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
    batches: impl Iterator<Item = Batch> + Send + 'static,
    written: impl FnMut(usize),
) -> Result<Written, Error> {
    let pool = database(figment).await?;
    seed::create_indexes(&pool).await?;
    seed::drop_indexes(&pool).await?;
    let all = Box::pin(write(&pool, batches, written)).await;
    seed::create_indexes(&pool).await?;
    seed::walk_again(&pool).await?;
    seed::analyze(&pool).await?;
    pool.close().await;
    all
}

async fn write(
    pool: &PgPool,
    mut batches: impl Iterator<Item = Batch> + Send + 'static,
    mut written: impl FnMut(usize),
) -> Result<Written, Error> {
    let (ready, mut received) = channel(1);
    // The next batch is made up while others are written. The end of either side ends the other.
    spawn_blocking(move || batches.all(|batch| ready.blocking_send(batch).is_ok()));
    let writes = stream::poll_fn(|context| received.poll_recv(context))
        .map(|batch| async move { seed::write(pool, &batch).await.map(|()| batch) });
    let mut writes = writes.buffer_unordered(CONNECTIONS);
    let mut all = Written::default();
    while let Some(batch) = writes.try_next().await? {
        all.users += batch.rows(Table::Users);
        all.identities += batch.rows(Table::Identities);
        all.sessions += batch.rows(Table::Sessions);
        all.events += batch.rows(Table::Events);
        written(batch.rows(Table::Users));
    }
    Ok(all)
}
