//! The access log of staff: an event for every view of personal data, so that staff can be asked for the reason later
//! (OWASP ASVS 5.0, 16.3).

use sqlx::PgPool;

use crate::admin::sign_in::store::StaffRow;
use crate::domain::{Actor, Origin};
use crate::store;
use crate::store::Look;
use crate::store::events::record_look;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The viewer has ceased to be a member of staff, or lost the right to export, during the request.
    #[error("no longer a member of staff")]
    NotStaff,
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Records a view. Data may be shown only after it has been recorded.
pub async fn record(pool: &PgPool, member: &StaffRow, look: Look<'_>, origin: &Origin) -> Result<(), Error> {
    let viewer = Actor::Staff(&member.email);
    let recorded = record_look(pool, look, viewer, origin).await?;
    if recorded { Ok(()) } else { Err(Error::NotStaff) }
}

/// Records a view by an operator at the command line. Data may be shown only after it has been recorded.
pub async fn record_operator(pool: &PgPool, look: Look<'_>) -> Result<(), store::Error> {
    record_look(pool, look, Actor::COMMAND_LINE, &Origin::default()).await.map(drop)
}
