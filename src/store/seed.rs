//! Bulk writes of generated rows.

use std::fmt::Display;

use sqlx::{Connection, PgPool};
use strum::VariantArray;

use super::Error;
use super::copy::Rows;

/// A table to fill; referenced ones precede those that refer to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
#[expect(missing_docs, reason = "they are the tables")]
pub enum Table {
    Users,
    Identities,
    Sessions,
    Events,
}

impl Table {
    /// Returns the `COPY` statement, with columns in the order of the values of [`Batch::push`].
    const fn copy(self) -> &'static str {
        match self {
            Self::Users => {
                "COPY users (id, email, email_verified, name, picture, created_at, updated_at, disabled_at, last_seen_on)
                 FROM STDIN"
            }
            Self::Identities => {
                "COPY identities (id, user_id, provider, subject, email, email_verified, name, picture, created_at,
                                  updated_at)
                 FROM STDIN"
            }
            Self::Sessions => {
                "COPY sessions (id, identity_id, family_hash, token_hash, parent_hash, created_at, rotated_at,
                                expires_at, ended_at, client_id, ip, user_agent, device_name, device_platform)
                 FROM STDIN"
            }
            Self::Events => {
                "COPY events (id, created_at, kind, reason, provider, email, user_id, session_id, ip, user_agent,
                              request_id, detail)
                 FROM STDIN"
            }
        }
    }
}

/// A few thousand rows that refer only to each other.
#[derive(Debug, Default)]
pub struct Batch {
    tables: [Rows; Table::VARIANTS.len()],
    rows: [usize; Table::VARIANTS.len()],
}

impl Batch {
    /// Adds a row; `None` is NULL.
    pub fn push(&mut self, table: Table, values: &[Option<&dyn Display>]) {
        self.tables[table as usize].push(values);
        self.rows[table as usize] += 1;
    }

    /// Returns the number of rows for a table.
    #[must_use]
    pub const fn rows(&self, table: Table) -> usize {
        self.rows[table as usize]
    }
}

/// Writes a batch in one transaction.
///
/// # Errors
/// See [`Error`].
pub async fn write(pool: &PgPool, batch: &Batch) -> Result<(), Error> {
    let mut connection = pool.acquire().await?;
    let mut transaction = connection.begin().await?;
    for &table in Table::VARIANTS {
        batch.tables[table as usize].send(&mut transaction, table.copy()).await?;
    }
    Ok(transaction.commit().await?)
}

/// Updates the planner's statistics and the visibility maps.
///
/// # Errors
/// See [`Error`].
pub async fn analyze(pool: &PgPool) -> Result<(), Error> {
    let mut connection = pool.acquire().await?;
    // This takes longer than a request may.
    sqlx::query("SET statement_timeout = 0").execute(&mut *connection).await?;
    sqlx::query("VACUUM (ANALYZE) users, identities, sessions, events").execute(&mut *connection).await?;
    sqlx::query("RESET statement_timeout").execute(&mut *connection).await?;
    Ok(())
}
