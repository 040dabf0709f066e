//! Merges of users, and the users as their previews show them.

use uuid::Uuid;

use crate::accounts::users::{custom, user};
use crate::database::{Database, Error};
use crate::domain::{Author, LinkedIdentity, Role, UserState, merged};
use crate::events::SqlAuthor;

pub async fn user(database: &Database, id: Uuid) -> Result<Option<UserState>, Error> {
    Ok(users(database, &[id]).await?.pop())
}

/// Returns the users that exist among `ids`, as of one moment, in the order of `ids`; see
/// `user_states.sql`.
pub async fn users(database: &Database, ids: &[Uuid]) -> Result<Vec<UserState>, Error> {
    let rows = sqlx::query_file!("src/accounts/user_states.sql", ids)
        .fetch_all(database)
        .await?;
    let mut users: Vec<UserState> = Vec::new();
    for row in rows {
        if users.last().is_none_or(|last| last.id != row.user_id) {
            users.push(UserState {
                user: user!(row),
                email_vouched: row.email_vouched,
                own_name: row.own_name,
                updated_at: row.updated_at,
                disabled_at: row.disabled_at,
                claims: custom(row.claims.as_deref())?,
                last_seen_on: row.last_seen_on,
                notes: row.notes,
                identities: Vec::new(),
            });
        }
        let identity = row
            .identity_id
            .zip(row.provider)
            .zip(row.subject)
            .zip(row.linked_at);
        if let (Some((((id, provider), subject), created_at)), Some(user)) =
            (identity, users.last_mut())
        {
            user.identities.push(LinkedIdentity {
                id,
                provider,
                subject,
                email: row.identity_email,
                email_verified: row.identity_email_verified,
                created_at,
                suspended_at: row.suspended_at,
                suspended_reason: row.suspended_reason,
                held: row.held,
                hijacked: row.hijacked,
                tokens_from: row.tokens_from,
                sessions: row.sessions,
            });
        }
    }
    Ok(users)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    Done,
    /// One of the users has changed since the caller read them.
    Stale,
    /// The actor lacks the role, or the session has ended.
    NotPermitted,
}

/// Merges one user into another, on behalf of the remaining user or of staff; see
/// `merge_users.sql`.
pub async fn merge(
    database: &Database,
    from: &UserState,
    into: &UserState,
    author: Author<'_>,
) -> Result<Merge, Error> {
    let merged = merged(from, into);
    let identities: Vec<_> = from.identities.iter().map(|identity| identity.id).collect();
    let new_ids: Vec<_> = identities.iter().map(|_| Uuid::now_v7()).collect();
    let row = sqlx::query_file!(
        "src/accounts/merge_users.sql",
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
        SqlAuthor::needing(Role::Admin, author) as SqlAuthor<'_>,
        author.session(),
        merged.own_name,
        (merged.claims != into.claims).then(|| merged.claims.json()),
        (!from.claims.is_empty()).then(|| from.claims.json()),
        merged.email_vouched,
    );
    let row = row.fetch_one(database).await?;
    Ok(match (row.done, row.allowed) {
        (true, _) => Merge::Done,
        (false, true) => Merge::Stale,
        (false, false) => Merge::NotPermitted,
    })
}

/// Follows one merge or several from the user `id`, who was merged into another one, and returns
/// the user who remains.
pub async fn merged_into(database: &Database, id: Uuid) -> Result<Option<Uuid>, Error> {
    let remains = sqlx::query_scalar!(
        "WITH RECURSIVE merged AS (
             SELECT $1::uuid AS id
             UNION
             SELECT (e.detail->>'into')::uuid
             FROM merged m
             JOIN events e ON e.user_id = m.id AND e.kind = 'users_merged' AND e.detail->>'into' IS NOT NULL
         )
         SELECT u.id FROM merged m JOIN users u ON u.id = m.id",
        id,
    );
    Ok(remains.fetch_optional(database).await?)
}
