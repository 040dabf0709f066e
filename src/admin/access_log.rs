//! The access log of staff: an event for every view of personal data, so that staff can be asked for the reason later
//! (OWASP ASVS 5.0, 16.3).

use sqlx::PgPool;
use uuid::Uuid;

use crate::admin::sign_in::store::StaffRow;
use crate::domain::actor::{Actor, Origin};
use crate::store;
use crate::store::events::{Look, record_look};

/// The fields of a search and its filters that are filled in, by name.
pub type Search<'a> = &'a [(&'a str, &'a str)];

#[derive(Debug, Clone, Copy)]
pub enum DataAccess<'a> {
    Person(Uuid),
    /// The list of users, with a search and filters.
    Users {
        search: Search<'a>,
    },
    UsersExport {
        search: Search<'a>,
        reason: &'a str,
    },
    /// The audit, with filters.
    Audit {
        search: Search<'a>,
    },
    AuditExport {
        search: Search<'a>,
        reason: &'a str,
    },
}

/// The reason why nothing may be shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The viewer has ceased to be a member of staff, or lost the right to export, during the request.
    #[error("no longer a member of staff")]
    NotStaff,
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Records a view. Data may be shown only after it has been recorded.
pub async fn record(
    pool: &PgPool,
    member: &StaffRow,
    look: &DataAccess<'_>,
    origin: &Origin,
) -> Result<(), Error> {
    let viewer = Actor::Staff(&member.email);
    let recorded = record_look(pool, look.event(), viewer, origin).await?;
    if recorded { Ok(()) } else { Err(Error::NotStaff) }
}

/// Records a view by an operator at the command line. Data may be shown only after it has been recorded.
pub async fn record_operator(pool: &PgPool, look: &DataAccess<'_>) -> Result<(), store::Error> {
    record_look(pool, look.event(), Actor::COMMAND_LINE, &Origin::default()).await.map(drop)
}

impl DataAccess<'_> {
    fn event(&self) -> Look<'_> {
        let viewed = |kind, user, search| Look { kind, user, search, reason: None };
        match *self {
            Self::Person(id) => viewed("user_viewed", Some(id), &[]),
            Self::Users { search } => viewed("users_viewed", None, search),
            Self::Audit { search } => viewed("audit_viewed", None, search),
            Self::UsersExport { search, reason } => {
                Look { reason: Some(reason), ..viewed("users_exported", None, search) }
            }
            Self::AuditExport { search, reason } => {
                Look { reason: Some(reason), ..viewed("audit_exported", None, search) }
            }
        }
    }
}
