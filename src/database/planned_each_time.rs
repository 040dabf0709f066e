//! Transactions for statements that are planned for their values each time, and so are not kept
//! prepared: lists, searches and exports.

use std::ops::{Deref, DerefMut};

use sqlx::{PgConnection, PgPool, PgTransaction};
use tracing::Instrument;

use crate::database::deadline::in_time;
use crate::database::error::Error;
use crate::database::row_queue::{Permit, permit};

const BEGIN: &str = "BEGIN; SET LOCAL enable_seqscan = off";

/// A transaction with its permit: only some of these run at a time.
pub(crate) struct PlannedEachTime {
    // Dropped first: the connection is back before the permit is free.
    transaction: PgTransaction<'static>,
    _permit: Permit,
}

impl Deref for PlannedEachTime {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.transaction
    }
}

impl DerefMut for PlannedEachTime {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }
}

/// Begins a transaction for one statement with `.persistent(false)`. Such a statement is prepared
/// without a name and executed in a second step. In between, a pooler that lends connections for
/// one transaction at a time could lend this one to a client whose unnamed statement would then be
/// executed instead.
///
/// Sequential scans are disabled, although they would be the fastest way through a small table: the
/// planner misjudges statements that read only until a page is full.
///
/// Only a quarter of the pool may be in such transactions, so that users' requests find a
/// connection, however many lists are requested.
///
/// A cancelled caller does not cancel the `BEGIN`: its connection would return to the pool inside a
/// transaction that the driver does not know of, and the writes of later callers would be lost
/// (launchbadge/sqlx#4393).
pub(crate) async fn planned_each_time(pool: &PgPool) -> Result<PlannedEachTime, Error> {
    let part = (pool.options().get_max_connections() / 4).max(1);
    let permit = permit(pool, "planned_each_time", part as usize).await?;
    let pool = pool.clone();
    let begun = async move { in_time(async { Ok(pool.begin_with(BEGIN).await?) }).await };
    // A transaction that the caller does not receive is rolled back. A task fails only if it
    // panics.
    let transaction = tokio::spawn(begun.in_current_span())
        .await
        .unwrap_or_else(|_| Err(Error::late()))?;
    Ok(PlannedEachTime {
        transaction,
        _permit: permit,
    })
}
