//! The access log of staff: an event for every view of personal data, so that staff can be asked for the reason later
//! (OWASP ASVS 5.0, 16.3).

use sqlx::PgPool;
use uuid::Uuid;

use crate::admin::sign_in::store::StaffRow;
use crate::domain::actor::Origin;
use crate::store;
use crate::store::events::{Look, record_look};

/// The fields of a search and its filters that are filled in, by name.
pub type Search<'a> = &'a [(&'a str, &'a str)];

/// The data that were viewed.
#[derive(Debug, Clone, Copy)]
pub enum DataAccess<'a> {
    /// A user's page.
    Person(Uuid),
    /// The list of users, with a search and filters.
    Users {
        /// The search and filters.
        search: Search<'a>,
    },
    /// The list as a file.
    UsersExport {
        /// The search and filters.
        search: Search<'a>,
    },
    /// The audit, with filters.
    Audit {
        /// The search and filters.
        search: Search<'a>,
    },
    /// The audit as a file.
    AuditExport {
        /// The search and filters.
        search: Search<'a>,
    },
}

/// The reason why nothing may be shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The viewer has ceased to be a member of staff during the request.
    #[error("no longer a member of staff")]
    NotStaff,
    /// The view could not be recorded.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Records a view. Data may be shown only after it has been recorded.
///
/// # Errors
/// See [`enum@Error`].
pub async fn record(
    pool: &PgPool,
    member: &StaffRow,
    look: &DataAccess<'_>,
    origin: &Origin,
) -> Result<(), Error> {
    let (kind, user, search): (_, _, Search<'_>) = match *look {
        DataAccess::Person(id) => ("user_viewed", Some(id), &[]),
        DataAccess::Users { search } => ("users_viewed", None, search),
        DataAccess::UsersExport { search } => ("users_exported", None, search),
        DataAccess::Audit { search } => ("audit_viewed", None, search),
        DataAccess::AuditExport { search } => ("audit_exported", None, search),
    };
    let recorded = record_look(pool, Look { kind, user, search }, &member.email, origin).await?;
    if recorded { Ok(()) } else { Err(Error::NotStaff) }
}
