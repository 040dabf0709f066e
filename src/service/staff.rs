//! Who may use the admin pages, changed without a running service.

use super::{Error, database};
use crate::config::Config;
use crate::domain::staff::Role;
use crate::store::staff::{self, StaffRow};

/// Adds a member or changes their role; see [`staff::add`].
///
/// # Errors
/// The database cannot be used.
pub async fn add(config: &Config, email: &str, role: Role) -> Result<bool, Error> {
    Ok(staff::add(&database(config).await?, email, role).await?)
}

/// Removes a member; see [`staff::remove`].
///
/// # Errors
/// The database cannot be used.
pub async fn remove(config: &Config, email: &str) -> Result<bool, Error> {
    Ok(staff::remove(&database(config).await?, email).await?)
}

/// Everyone.
///
/// # Errors
/// The database cannot be used.
pub async fn list(config: &Config) -> Result<Vec<StaffRow>, Error> {
    Ok(staff::all(&database(config).await?).await?)
}
