//! The PostgreSQL connection pool that Rocket manages. It implements `rocket_db_pools`' `Pool` over
//! a current sqlx, since that crate's own sqlx support pins a release with an advisory
//! (RUSTSEC-2024-0363).

use figment::Figment;
use rocket_db_pools::{Database, Pool};
use sqlx::Postgres;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPool;

use super::openapi::problems::errors;
use super::problem::ErrorCode;
use crate::database::pool::{Error, Settings};

/// The service's database, configured by `[default.databases.vestibule]`.
#[derive(Debug, Database)]
#[database("vestibule")]
pub struct Db(PostgresPool);

impl Db {
    /// Returns the connection pool. Take a connection late: a connection that is held during a
    /// provider's call starves other requests.
    pub fn pool(&self) -> &PgPool {
        &self.0.0
    }
}

errors!(Db: [ErrorCode::ServiceUnavailable, ErrorCode::InternalError]);

/// The sqlx pool behind `rocket_db_pools`' `Pool` trait.
#[derive(Debug)]
pub struct PostgresPool(PgPool);

#[rocket::async_trait]
impl Pool for PostgresPool {
    type Connection = PoolConnection<Postgres>;
    type Error = Error;

    async fn init(figment: &Figment) -> Result<Self, Error> {
        Ok(Self(Settings::read(figment)?.pool()))
    }

    async fn get(&self) -> Result<Self::Connection, Error> {
        Ok(self.0.acquire().await?)
    }

    /// Does nothing. Rocket calls this while requests are still in flight, and closing the pool
    /// would fail them. `app` closes it afterwards.
    async fn close(&self) {}
}
