//! The PostgreSQL connection pool that Rocket manages. It implements `rocket_db_pools`' `Pool` over
//! a current sqlx, since that crate's own sqlx support pins a release with an advisory
//! (RUSTSEC-2024-0363).

use std::ops::Deref;

use figment::Figment;
use rocket_db_pools::Pool;
use sqlx::Postgres;
use sqlx::pool::PoolConnection;

use super::openapi::problems::errors;
use super::problem::ErrorCode;
use crate::accounts::lanes::CONNECTIONS;
use crate::database::Database;
use crate::database::pool::{Error, Settings};

/// The service's database, configured by `[default.databases.vestibule]`.
#[derive(Debug, rocket_db_pools::Database)]
#[database("vestibule")]
pub struct Db(PostgresPool);

impl Deref for PostgresPool {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.0
    }
}

errors!(Db: [ErrorCode::ServiceUnavailable, ErrorCode::InternalError]);

/// The database behind `rocket_db_pools`' `Pool` trait.
#[derive(Debug)]
pub struct PostgresPool(Database);

#[rocket::async_trait]
impl Pool for PostgresPool {
    type Connection = PoolConnection<Postgres>;
    type Error = Error;

    async fn init(figment: &Figment) -> Result<Self, Error> {
        Ok(Self(Database::open(
            Settings::read(figment)?,
            Some(CONNECTIONS),
        )))
    }

    async fn get(&self) -> Result<Self::Connection, Error> {
        Ok(self.0.pool().acquire().await?)
    }

    /// Does nothing. Rocket calls this while requests are still in flight, and closing the pool
    /// would fail them. `app` closes it afterwards.
    async fn close(&self) {}
}
