//! Merges of users, and the users as their previews show them.

use sqlx::PgPool;
use uuid::Uuid;

use super::Error;
use crate::domain::actor::By;
use crate::domain::merging::{LinkedIdentity, UserState, merged};
use crate::domain::staff::Role;

/// Returns those of the users that exist, as of one moment, ordered by id; see `user_states.sql`.
///
/// # Errors
/// See [`Error`].
pub async fn users(pool: &PgPool, ids: &[Uuid]) -> Result<Vec<UserState>, Error> {
    let rows = sqlx::query_file!("src/store/user_states.sql", ids).fetch_all(pool).await?;
    let mut users: Vec<UserState> = Vec::new();
    for row in rows {
        if users.last().is_none_or(|last| last.id != row.id) {
            users.push(UserState {
                id: row.id,
                email: row.email,
                email_verified: row.email_verified,
                name: row.name,
                picture: row.picture,
                created_at: row.created_at,
                updated_at: row.updated_at,
                disabled_at: row.disabled_at,
                claims: row.claims,
                identities: Vec::new(),
            });
        }
        let identity = row.identity_id.zip(row.provider).zip(row.subject);
        if let (Some(((id, provider), subject)), Some(user)) = (identity, users.last_mut()) {
            let (email, suspended, sessions) = (row.identity_email, row.suspended, row.sessions);
            user.identities.push(LinkedIdentity { id, provider, subject, email, suspended, sessions });
        }
    }
    Ok(users)
}

/// The result of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// The users were merged.
    Done,
    /// One of the users is no longer as they were looked at.
    Changed,
    /// The actor lacks the role.
    NotPermitted,
}

/// Merges one user into another; see `merge_users.sql`.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn merge(pool: &PgPool, from: &UserState, into: &UserState, by: By<'_>) -> Result<Merge, Error> {
    let merged = merged(from, into);
    let identities: Vec<_> = from.identities.iter().map(|identity| identity.id).collect();
    let new_ids: Vec<_> = identities.iter().map(|_| Uuid::now_v7()).collect();
    let row = sqlx::query_file!(
        "src/store/merge_users.sql",
        from.id,
        from.updated_at,
        into.id,
        into.updated_at,
        &identities,
        &new_ids,
        merged.email,
        merged.email_verified,
        merged.name,
        merged.picture,
        merged.disabled_at,
        Uuid::now_v7(),
        Uuid::now_v7(),
        by.actor.name(),
        by.reason,
        by.origin.ip as _,
        by.origin.user_agent,
        by.origin.request_id,
        by.actor.needs(Role::Admin),
    );
    let row = row.fetch_one(pool).await?;
    Ok(match (row.done, row.permitted) {
        (true, _) => Merge::Done,
        (false, true) => Merge::Changed,
        (false, false) => Merge::NotPermitted,
    })
}
