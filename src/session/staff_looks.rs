//! What staff looked at: an entry for every look at personal data, so that a look needs a reason
//! that can be asked for later (OWASP ASVS 5.0, 16.3).

use sqlx::PgPool;
use uuid::Uuid;

use crate::store;
use crate::store::events::record_look;
use crate::store::staff::StaffRow;
use crate::store::users::Origin;

/// Something that was looked at.
#[derive(Debug, Clone, Copy)]
pub enum Look<'a> {
    /// One person's page.
    Person(Uuid),
    /// The list of users, as far as a search and filters leave it.
    Users {
        /// What was asked for.
        search: &'a str,
    },
    /// The same as a file.
    UsersExport {
        /// What was asked for.
        search: &'a str,
    },
    /// The audit, as far as filters leave it.
    Audit {
        /// What was asked for.
        search: &'a str,
    },
    /// The same as a file.
    AuditExport {
        /// What was asked for.
        search: &'a str,
    },
}

/// Why nothing may be shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Whoever looks was a member when the request began, and is none any more.
    #[error("no longer a member of staff")]
    NotStaff,
    /// The look could not be recorded.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Records a look. Nothing is shown to whom it cannot be recorded of.
///
/// # Errors
/// See [`enum@Error`].
pub async fn record(pool: &PgPool, member: &StaffRow, look: &Look<'_>, origin: &Origin) -> Result<(), Error> {
    let (kind, user, search) = match *look {
        Look::Person(id) => ("user_viewed", Some(id), ""),
        Look::Users { search } => ("users_viewed", None, search),
        Look::UsersExport { search } => ("users_exported", None, search),
        Look::Audit { search } => ("audit_viewed", None, search),
        Look::AuditExport { search } => ("audit_exported", None, search),
    };
    let search = (!search.is_empty()).then_some(search);
    let recorded = record_look(pool, kind, &member.email, user, search, origin).await?;
    if recorded { Ok(()) } else { Err(Error::NotStaff) }
}
