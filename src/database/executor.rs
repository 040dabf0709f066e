//! Executes statements on connections of the pool, and closes a connection whose caller went away
//! in the middle of its work. A pool would keep such a connection until its server responds, which
//! may take a quarter of an hour; a new one costs some milliseconds.

use std::ops::{Deref, DerefMut};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgPool, PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Connection, Describe, Either, Execute, Executor, PgConnection, Postgres, SqlStr};

use crate::database::connections::Database;
use crate::database::health::Health;

/// A connection of the pool. It goes back when [`Self::release`] is called, and is closed when it
/// is dropped before.
#[derive(Debug)]
pub struct Checkout {
    connection: PoolConnection<Postgres>,
    released: bool,
}

impl Checkout {
    pub(super) async fn of(pool: &PgPool, health: &Health) -> Result<Self, sqlx::Error> {
        let connection = pool
            .acquire()
            .await
            .inspect_err(|error| health.note(error))?;
        Ok(Self {
            connection,
            released: false,
        })
    }

    /// Gives the connection back. No statement is running on it.
    pub fn release(mut self) {
        self.released = true;
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        if !self.released {
            self.connection.close_on_drop();
        }
    }
}

impl Deref for Checkout {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Checkout {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

type Results = Vec<Either<PgQueryResult, PgRow>>;

/// Returns the results as a stream, which is all that sqlx asks for.
fn streamed<'e>(
    results: impl Future<Output = Result<Results, sqlx::Error>> + Send + 'e,
) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, sqlx::Error>> {
    stream::once(results)
        .map_ok(|results| stream::iter(results.into_iter().map(Ok)))
        .try_flatten()
        .boxed()
}

impl<'d> Executor<'d> for &'d Database {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, sqlx::Error>>
    where
        'd: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        streamed(async move {
            let mut checkout = Checkout::of(self.pool(), self.health()).await?;
            let done = checkout.fetch_many(query).try_collect().await;
            checkout.release();
            done.inspect_err(|error| self.health().note(error))
        })
    }

    fn fetch_optional<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxFuture<'e, Result<Option<PgRow>, sqlx::Error>>
    where
        'd: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(async move {
            let mut checkout = Checkout::of(self.pool(), self.health()).await?;
            let done = checkout.fetch_optional(query).await;
            checkout.release();
            done.inspect_err(|error| self.health().note(error))
        })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, sqlx::Error>>
    where
        'd: 'e,
    {
        self.pool().prepare_with(sql, parameters)
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, sqlx::Error>>
    where
        'd: 'e,
    {
        self.pool().describe(sql)
    }
}

const BEGIN: &str = "BEGIN; SET LOCAL enable_seqscan = off";

/// Executes one statement that is planned for its values each time, and so is not kept prepared:
/// a list, a search or an export.
///
/// It runs in a transaction of its own: a statement with `.persistent(false)` is prepared without a
/// name and executed in a second step. In between, a pooler that lends connections for one
/// transaction at a time could lend this one to a client whose unnamed statement would then be
/// executed instead.
///
/// Sequential scans are disabled, although they would be the fastest way through a small table: the
/// planner misjudges statements that read only until a page is full.
///
/// Only a quarter of the pool may be in such transactions, so that users' requests find a
/// connection, however many lists are requested.
#[derive(Debug, Clone, Copy)]
pub struct PlannedEachTime<'d>(&'d Database);

impl Database {
    /// Returns an executor for one statement with `.persistent(false)`.
    pub const fn planned_each_time(&self) -> PlannedEachTime<'_> {
        PlannedEachTime(self)
    }
}

impl<'d> Executor<'d> for PlannedEachTime<'d> {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, sqlx::Error>>
    where
        'd: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let Self(database) = self;
        let permits = database.pool().options().get_max_connections() / 4;
        streamed(async move {
            let turns = database.turns();
            let key = turns.key("planned each time");
            let _permit = turns
                .permit(key, permits.max(1) as usize)
                .await
                .map_err(|_| sqlx::Error::PoolTimedOut)?;
            let mut checkout = Checkout::of(database.pool(), database.health()).await?;
            let mut transaction = checkout
                .begin_with(BEGIN)
                .await
                .inspect_err(|error| database.health().note(error))?;
            let done = transaction.fetch_many(query).try_collect().await;
            // The transaction is rolled back on the connection's way to the pool.
            drop(transaction);
            checkout.release();
            done.inspect_err(|error| database.health().note(error))
        })
    }

    fn fetch_optional<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxFuture<'e, Result<Option<PgRow>, sqlx::Error>>
    where
        'd: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(async move { Ok(self.fetch_all(query).await?.into_iter().next()) })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, sqlx::Error>>
    where
        'd: 'e,
    {
        self.0.pool().prepare_with(sql, parameters)
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, sqlx::Error>>
    where
        'd: 'e,
    {
        self.0.pool().describe(sql)
    }
}
