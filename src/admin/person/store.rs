//! Single users, as staff see and change them.

use sqlx::PgPool;
use uuid::Uuid;

use crate::admin::users::store::ListedUser;
use crate::domain::actor::By;
use crate::domain::staff::Role;
use crate::store::Error;

/// Returns one user, active or disabled.
///
/// # Errors
/// See [`Error`].
pub async fn user(pool: &PgPool, id: Uuid) -> Result<Option<ListedUser>, Error> {
    let user = sqlx::query_as!(
        ListedUser,
        r#"SELECT u.id, u.email, u.email_verified, u.name, u.created_at, u.disabled_at, u.last_seen_on,
                  ARRAY(SELECT i.provider FROM identities i WHERE i.user_id = u.id ORDER BY i.id) AS "providers!"
           FROM users u WHERE u.id = $1"#,
        id,
    );
    Ok(user.fetch_optional(pool).await?)
}

/// The result of an action on a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acted {
    /// The action was taken.
    Done,
    /// There is no such user.
    NotFound,
    /// Refused: the actor would disable the user with their own, verified e-mail address.
    OwnAccount,
    /// Refused: the actor lacks the role.
    NotPermitted,
}

/// Makes the change that `event` names, and records it with author and reason. It takes that role or a higher one.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn act(pool: &PgPool, user: Uuid, event: &str, role: Role, by: By<'_>) -> Result<Acted, Error> {
    // Enabling ends sessions, too: one may have been opened at the moment of disabling.
    let outcome = sqlx::query_scalar!(
        r#"WITH permitted AS MATERIALIZED (
               SELECT FROM staff WHERE email = $4 AND (role = $9 OR $9 = 'support') FOR SHARE
           ),
           decision AS MATERIALIZED (
               SELECT id, $2::text = 'user_disabled' AND email_verified AND email = $4 AS own FROM users
               WHERE id = $1 AND ($9::text IS NULL OR EXISTS (SELECT FROM permitted))
           ),
           target AS (
               UPDATE users u
               SET disabled_at = CASE $2::text WHEN 'user_disabled' THEN coalesce(u.disabled_at, now())
                                         WHEN 'user_enabled' THEN NULL ELSE u.disabled_at END,
                   updated_at = now()
               FROM decision d WHERE u.id = d.id AND d.own IS NOT TRUE RETURNING u.id
           ),
           ended AS (
               UPDATE sessions s SET ended_at = now()
               FROM target t JOIN identities i ON i.user_id = t.id
               WHERE s.identity_id = i.id AND s.ended_at IS NULL
           ),
           recorded AS (
               INSERT INTO events (id, kind, user_id, actor, detail, ip, user_agent, request_id)
               SELECT $3, $2::text, id, $4, jsonb_build_object('reason', $5::text), $6::text::inet, $7, $8 FROM target
           )
           SELECT CASE WHEN EXISTS (SELECT FROM target) THEN 'done'
                       WHEN EXISTS (SELECT FROM decision WHERE own) THEN 'own_account'
                       WHEN $9::text IS NOT NULL AND NOT EXISTS (SELECT FROM permitted) THEN 'not_permitted'
                       ELSE 'not_found' END AS "outcome!""#,
        user,
        event,
        Uuid::now_v7(),
        by.actor.name(),
        by.reason,
        by.origin.ip.map(|ip| ip.to_string()),
        by.origin.user_agent,
        by.origin.request_id,
        by.actor.needs(role),
    );
    match outcome.fetch_one(pool).await?.as_str() {
        "done" => Ok(Acted::Done),
        "own_account" => Ok(Acted::OwnAccount),
        "not_permitted" => Ok(Acted::NotPermitted),
        "not_found" => Ok(Acted::NotFound),
        outcome => Err(Error::unexpected(outcome)),
    }
}
