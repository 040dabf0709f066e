//! The pools of connections, and what they share.

use std::sync::Arc;

use sqlx::PgConnection;
use sqlx::postgres::PgPool;

use crate::database::error::Error;
use crate::database::executor::Checkout;
use crate::database::health::{Disk, Health};
use crate::database::pool::Settings;
use crate::database::run::Turns;
use crate::database::servers::Servers;

/// The connections to PostgreSQL. Clones share them.
///
/// A reference executes one statement, as a reference to an sqlx pool does. [`Self::run`] retries.
#[derive(Debug, Clone)]
pub struct Database(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// For all statements but the lanes' and the readiness check's.
    pool: PgPool,
    lanes: PgPool,
    probe: PgPool,
    servers: Servers,
    health: Arc<Health>,
    turns: Turns,
}

impl Database {
    /// Opens the pools without connecting. `lanes` is the number of connections for lanes; a
    /// command has none.
    pub fn open(settings: Settings, lanes: Option<u32>) -> Self {
        let health = Arc::new(Health::default());
        let pool = settings.pool(&health);
        let lanes = lanes.map(|connections| settings.lanes(connections, &health));
        Self(Arc::new(Inner {
            lanes: lanes.unwrap_or_else(|| pool.clone()),
            pool,
            probe: settings.probe(&health),
            servers: settings.servers,
            health,
            turns: Turns::default(),
        }))
    }

    /// Returns the pool of all statements but the lanes' and the readiness check's.
    pub fn pool(&self) -> &PgPool {
        &self.0.pool
    }

    /// Returns the pool of the statements that requests share.
    pub fn lanes(&self) -> &PgPool {
        &self.0.lanes
    }

    /// Returns the servers that the settings name.
    pub fn servers(&self) -> &Servers {
        &self.0.servers
    }

    pub(super) fn health(&self) -> &Health {
        &self.0.health
    }

    /// Draws the conclusions from an error.
    pub(super) fn note(&self, error: &Error) {
        if let Some(cause) = error.cause() {
            self.0.health.note(cause);
        }
    }

    pub(super) fn turns(&self) -> &Turns {
        &self.0.turns
    }

    /// Returns the same database with the readiness check's connection for all statements. All
    /// connections of the other pools may be busy, which is load and no reason to stop sending
    /// requests here.
    #[must_use]
    pub fn probe(&self) -> Self {
        let Inner {
            lanes,
            probe,
            servers,
            health,
            ..
        } = &*self.0;
        Self(Arc::new(Inner {
            pool: probe.clone(),
            lanes: lanes.clone(),
            probe: probe.clone(),
            servers: servers.clone(),
            health: health.clone(),
            turns: Turns::default(),
        }))
    }

    /// Takes a connection for several statements. Take it late: a connection that is held during a
    /// provider's call starves other requests.
    ///
    /// # Errors
    /// Returns [`Error::Unavailable`] if no connection is free in time.
    pub async fn acquire(&self) -> Result<Checkout, Error> {
        Ok(Checkout::of(&self.0.pool, &self.0.health).await?)
    }

    /// Connects to the primary, and directs the pools to it.
    ///
    /// # Errors
    /// Returns the driver's error if no server can be reached that accepts writes.
    pub async fn reach(&self) -> Result<PgConnection, sqlx::Error> {
        let Inner {
            pool,
            lanes,
            probe,
            servers,
            ..
        } = &*self.0;
        servers.reach([pool, lanes, probe]).await
    }

    /// Directs the pools to the primary for ever. Returns at once if there is one server.
    pub async fn follow(self) {
        let Inner {
            pool,
            lanes,
            probe,
            servers,
            health,
            ..
        } = &*self.0;
        servers.follow([pool, lanes, probe], health).await;
    }

    pub fn is_closed(&self) -> bool {
        self.0.pool.is_closed()
    }

    /// Closes all connections, after the statements that run on them.
    pub async fn close(&self) {
        let Inner {
            pool, lanes, probe, ..
        } = &*self.0;
        tokio::join!(pool.close(), lanes.close(), probe.close());
    }

    /// Returns the number of checks of connections that rested, or rested while another one broke.
    pub fn checks(&self) -> u64 {
        self.0.health.checks()
    }

    /// Returns `true` from the first write that finds the disk full until one succeeds, which this
    /// function attempts every five seconds. Such a database still reads, and writes what fits into
    /// the pages that it has, so that refreshes may work while sign-ins fail.
    pub async fn is_full(&self) -> bool {
        let health = &self.0.health;
        match health.disk() {
            Disk::Free => false,
            Disk::Full => true,
            Disk::Due => {
                let full = self.try_to_grow().await.is_err();
                if !full {
                    health.note_write();
                }
                full
            }
        }
    }

    /// Writes more than fits into the pages that the database has, and rolls it back. The text is
    /// longer than any real one in this table, so it goes to pages that nothing else fills.
    ///
    /// # Errors
    /// Returns PostgreSQL's error, or [`Error::Unavailable`] without a connection.
    pub async fn try_to_grow(&self) -> Result<(), Error> {
        let long = sqlx::query!(
            "INSERT INTO staff_sign_ins (state_hash, browser_hash, nonce, code_verifier, next)
             SELECT uuid_send(gen_random_uuid()), '', '', '', string_agg(md5(line::text), '') FROM generate_series(1, 1000) line"
        );
        long.persistent(false)
            .execute(self.planned_each_time())
            .await?;
        Ok(())
    }
}

/// The database behind one pool, whose connections are not checked before their use: for tests.
impl From<PgPool> for Database {
    fn from(pool: PgPool) -> Self {
        Self(Arc::new(Inner {
            lanes: pool.clone(),
            probe: pool.clone(),
            pool,
            servers: Servers::default(),
            health: Arc::default(),
            turns: Turns::default(),
        }))
    }
}
