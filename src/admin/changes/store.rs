//! The statements that change users for staff. Each checks the actor's role itself and records its
//! event. A statement that gets the `updated_at` of the preview changes nothing if a user has
//! another one by now.

use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

use super::Outcome;
use crate::database::{Database, Error};
use crate::domain::{Author, Role, UserState};
use crate::events::{EventKind, SqlAuthor};

/// Runs a statement by staff, and returns the outcome.
macro_rules! change {
    ($file:literal, $database:expr, $by:expr, $role:expr, $($parameter:expr),+) => {{
        let author = SqlAuthor::needing($role, $by);
        let row = sqlx::query_file!($file, $($parameter,)+ author as SqlAuthor<'_>).fetch_one($database).await?;
        Ok(match (row.done, row.permitted) {
            (true, _) => Outcome::Done,
            (false, true) => Outcome::Stale,
            (false, false) => Outcome::NotPermitted,
        })
    }};
}

pub(super) async fn move_identity(
    database: &Database,
    identity: Uuid,
    from: &UserState,
    to: &UserState,
    by: Author<'_>,
) -> Result<Outcome, Error> {
    change!(
        "src/admin/changes/move_identity.sql",
        database,
        by,
        Role::Admin,
        identity,
        from.id,
        from.updated_at,
        to.id,
        to.updated_at,
        Uuid::now_v7()
    )
}

pub(super) async fn release(
    database: &Database,
    identity: Uuid,
    user: Uuid,
    by: Author<'_>,
) -> Result<Outcome, Error> {
    change!(
        "src/admin/changes/release_identity.sql",
        database,
        by,
        Role::Admin,
        identity,
        user
    )
}

/// Makes the change that `event` names to a user, whose `updated_at` must still be `seen`, if that
/// is given; see `act.sql`. It needs that role or a higher one.
pub(super) async fn act(
    database: &Database,
    (user, seen): (Uuid, Option<OffsetDateTime>),
    session: Option<Uuid>,
    event: EventKind,
    role: Role,
    by: Author<'_>,
) -> Result<Outcome, Error> {
    change!(
        "src/admin/changes/act.sql",
        database,
        by,
        role,
        user,
        seen,
        event.name(),
        session
    )
}

/// A deletion, as its event describes it.
#[derive(Debug, Clone, Serialize)]
pub struct DeletionRow {
    pub id: Uuid,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    pub user_id: Uuid,
    /// Member of staff, API key (`key:<name>`) or operator who deleted the user.
    pub actor: Option<String>,
    pub reason: Option<String>,
    pub identities: i64,
    /// The active ones.
    pub sessions: i64,
    /// True while the user's own trace, or one of an address, is to be erased from events.
    pub pending: bool,
}

/// Returns the deletion that the event records. The erasure counts as unfinished while the user's
/// trace is pending, or the trace of any address requested within a minute after the deletion: an
/// address does not say whose it was.
pub async fn deletion(database: &Database, event: Uuid) -> Result<Option<DeletionRow>, Error> {
    let row = sqlx::query_as!(
        DeletionRow,
        r#"SELECT e.id, e.created_at, e.user_id AS "user_id!", e.actor, e.detail->>'reason' AS reason,
                  coalesce((e.detail->>'identity_count')::bigint, 0) AS "identities!",
                  coalesce((e.detail->>'session_count')::bigint, 0) AS "sessions!",
                  EXISTS (SELECT FROM pending_erasures t
                          WHERE CASE t.field WHEN 'user_id' THEN t.value = e.user_id::text
                                ELSE t.requested_at >= e.created_at
                                     AND t.requested_at < e.created_at + interval '1 minute' END)
                      AS "pending!"
           FROM events e WHERE e.id = $1 AND e.kind = 'user_deleted' AND e.user_id IS NOT NULL"#,
        event,
    );
    Ok(row.fetch_optional(database).await?)
}

pub async fn deletion_of(database: &Database, user: Uuid) -> Result<Option<Uuid>, Error> {
    let id = sqlx::query_scalar!(
        "SELECT id FROM events WHERE user_id = $1 AND kind = 'user_deleted'",
        user
    );
    Ok(id.fetch_optional(database).await?)
}
