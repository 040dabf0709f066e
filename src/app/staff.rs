//! The commands for staff, which need no running service.

use figment::Figment;

use super::{Error, database};
use crate::domain::email::Email;
use crate::domain::staff::Role;
use crate::service::staff_access;
use crate::store::staff::{self, StaffRow};
pub use crate::store::staff_access::Changed;
use crate::store::staff_access::{Actor, By};
use crate::store::users::Origin;

/// Adds a member of staff or changes the role; see [`staff_access::give`].
///
/// # Errors
/// The database cannot be used.
pub async fn add(figment: &Figment, email: &Email, role: Role) -> Result<Changed, Error> {
    let origin = Origin::default();
    Ok(staff_access::give(&database(figment).await?, email, role, by(&origin)).await?)
}

/// Removes a member of staff; see [`staff_access::take_away`].
///
/// # Errors
/// The database cannot be used.
pub async fn remove(figment: &Figment, email: &Email) -> Result<Changed, Error> {
    let origin = Origin::default();
    Ok(staff_access::take_away(&database(figment).await?, email, by(&origin)).await?)
}

/// Removes a member's link to an identity; see [`staff_access::forget_identity`].
///
/// # Errors
/// The database cannot be used.
pub async fn reset(figment: &Figment, email: &Email) -> Result<Changed, Error> {
    Ok(staff_access::forget_identity(&database(figment).await?, email, COMMAND_LINE).await?)
}

/// The actor in the audit log: anyone with a shell on the server.
const COMMAND_LINE: &str = "the command line";

const fn by(origin: &Origin) -> By<'_> {
    By { actor: Actor::Operator(COMMAND_LINE), reason: None, origin }
}

/// Returns all members of staff.
///
/// # Errors
/// The database cannot be used.
pub async fn list(figment: &Figment) -> Result<Vec<StaffRow>, Error> {
    Ok(staff::all(&database(figment).await?).await?)
}
