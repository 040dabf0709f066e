//! Who may use the admin pages, changed without a running service.

use rocket_db_pools::Pool;
use sqlx::PgPool;

use super::{DATABASE, Error};
use crate::config::Config;
use crate::domain::staff::Role;
use crate::store::staff::{self, StaffRow};
use crate::web::database::{Db, PostgresPool};

async fn pool(config: &Config) -> Result<PgPool, Error> {
    let db = Db::from(PostgresPool::init(&config.figment.focus(DATABASE)).await?);
    Ok(db.pool().clone())
}

/// Adds a member or changes their role; see [`staff::add`].
///
/// # Errors
/// The database cannot be used.
pub async fn add(config: &Config, email: &str, role: Role) -> Result<bool, Error> {
    Ok(staff::add(&pool(config).await?, email, role).await?)
}

/// Removes a member; see [`staff::remove`].
///
/// # Errors
/// The database cannot be used.
pub async fn remove(config: &Config, email: &str) -> Result<bool, Error> {
    Ok(staff::remove(&pool(config).await?, email).await?)
}

/// Everyone.
///
/// # Errors
/// The database cannot be used.
pub async fn list(config: &Config) -> Result<Vec<StaffRow>, Error> {
    Ok(staff::all(&pool(config).await?).await?)
}
