//! Changes that staff make to users after a preview. A change is made to the users as previewed, or not at all.

use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::admin::changes::decision::{LinkedIdentity, Merged, Person};
use crate::admin::staff::store::Made;
use crate::domain::actor::By;
use crate::domain::staff::Role;
use crate::domain::user::{Identity, User};
use crate::store::Error;

/// Returns those of the users that exist, as of one moment, ordered by id; see `people.sql`.
///
/// # Errors
/// See [`Error`].
pub async fn people(pool: &PgPool, ids: &[Uuid]) -> Result<Vec<Person>, Error> {
    let rows = sqlx::query_file!("src/admin/changes/people.sql", ids).fetch_all(pool).await?;
    let mut people: Vec<Person> = Vec::new();
    for row in rows {
        if people.last().is_none_or(|last| last.user.id != row.id) {
            people.push(Person {
                user: User {
                    id: row.id,
                    email: row.email,
                    email_verified: row.email_verified,
                    name: row.name,
                    picture: row.picture,
                    created_at: row.created_at,
                },
                updated_at: row.updated_at,
                disabled_at: row.disabled_at,
                identities: Vec::new(),
            });
        }
        let identity = row.identity_id.zip(row.provider).zip(row.subject);
        if let (Some(((id, provider), subject)), Some(person)) = (identity, people.last_mut()) {
            let identity = Identity { id, provider, subject, email: row.identity_email };
            person.identities.push(LinkedIdentity { identity, sessions: row.sessions });
        }
    }
    Ok(people)
}

/// Merges one user into another, who gets the data of `merged`; see `merge_users.sql`. Nothing happens if either user
/// has changed since the preview.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn merge(
    pool: &PgPool,
    from: &Person,
    into: &Person,
    merged: &Merged,
    by: By<'_>,
) -> Result<Made, Error> {
    let identities: Vec<_> = from.identities.iter().map(|linked| linked.identity.id).collect();
    let new_ids: Vec<_> = identities.iter().map(|_| Uuid::now_v7()).collect();
    let row = sqlx::query_file!(
        "src/admin/changes/merge_users.sql",
        from.id(),
        from.updated_at,
        into.id(),
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
        by.origin.ip.map(|ip| ip.to_string()),
        by.origin.user_agent,
        by.origin.request_id,
        by.actor.needs(Role::Admin),
    );
    let row = row.fetch_one(pool).await?;
    Ok(Made::of(row.done, row.permitted))
}

/// Moves an identity from one user to another; see `move_identity.sql`. Nothing happens if either user has changed
/// since the preview.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn move_identity(
    pool: &PgPool,
    identity: Uuid,
    from: &Person,
    to: &Person,
    by: By<'_>,
) -> Result<Made, Error> {
    let row = sqlx::query_file!(
        "src/admin/changes/move_identity.sql",
        identity,
        from.id(),
        from.updated_at,
        to.id(),
        to.updated_at,
        Uuid::now_v7(),
        Uuid::now_v7(),
        Uuid::now_v7(),
        by.actor.name(),
        by.reason,
        by.origin.ip.map(|ip| ip.to_string()),
        by.origin.user_agent,
        by.origin.request_id,
        by.actor.needs(Role::Admin),
    );
    let row = row.fetch_one(pool).await?;
    Ok(Made::of(row.done, row.permitted))
}

/// Unlinks a user's identity; see `unlink_identity_by_staff.sql`. Nothing happens unless `updated_at` still is `seen`.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn unlink(
    pool: &PgPool,
    identity: Uuid,
    user: Uuid,
    seen: OffsetDateTime,
    by: By<'_>,
) -> Result<Made, Error> {
    let row = sqlx::query_file!(
        "src/admin/changes/unlink_identity_by_staff.sql",
        identity,
        user,
        seen,
        Uuid::now_v7(),
        by.actor.name(),
        by.reason,
        by.origin.ip.map(|ip| ip.to_string()),
        by.origin.user_agent,
        by.origin.request_id,
        by.actor.needs(Role::Admin),
    );
    let row = row.fetch_one(pool).await?;
    Ok(Made::of(row.done, row.permitted))
}
