//! What staff see of users: lists, searches, one person's record.

use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

use super::Error;
use super::staff_access::By;

/// A user in a list.
#[derive(Debug, Clone)]
pub struct ListedUser {
    /// Key of the user.
    pub id: Uuid,
    /// Address.
    pub email: Option<String>,
    /// Whether a provider vouches for it.
    pub email_verified: bool,
    /// Display name.
    pub name: Option<String>,
    /// When the user was created.
    pub created_at: OffsetDateTime,
    /// When the user was disabled.
    pub disabled_at: Option<OffsetDateTime>,
    /// Providers of the linked identities.
    pub providers: Vec<String>,
}

/// Users before that one, the newest first.
///
/// # Errors
/// See [`Error`].
pub async fn page(pool: &PgPool, before: Option<Uuid>, limit: i64) -> Result<Vec<ListedUser>, Error> {
    let users = sqlx::query_as!(
        ListedUser,
        r#"SELECT u.id, u.email, u.email_verified, u.name, u.created_at, u.disabled_at,
                  ARRAY(SELECT i.provider FROM identities i WHERE i.user_id = u.id ORDER BY i.id) AS "providers!"
           FROM users u WHERE u.id < $1 ORDER BY u.id DESC LIMIT $2"#,
        before.unwrap_or(Uuid::max()),
        limit,
    );
    Ok(users.fetch_all(pool).await?)
}

/// Users that a text may mean; see `search_users.sql`.
///
/// # Errors
/// See [`Error`].
pub async fn search(
    pool: &PgPool,
    text: &str,
    providers: &[String],
    limit: i64,
) -> Result<Vec<ListedUser>, Error> {
    let users = sqlx::query_file_as!(
        ListedUser,
        "src/store/search_users.sql",
        text.to_lowercase(),
        text,
        Uuid::parse_str(text).ok(),
        providers,
        limit,
    );
    Ok(users.fetch_all(pool).await?)
}

/// One user, whatever their state.
///
/// # Errors
/// See [`Error`].
pub async fn user(pool: &PgPool, id: Uuid) -> Result<Option<ListedUser>, Error> {
    let user = sqlx::query_as!(
        ListedUser,
        r#"SELECT u.id, u.email, u.email_verified, u.name, u.created_at, u.disabled_at,
                  ARRAY(SELECT i.provider FROM identities i WHERE i.user_id = u.id ORDER BY i.id) AS "providers!"
           FROM users u WHERE u.id = $1"#,
        id,
    );
    Ok(user.fetch_optional(pool).await?)
}

/// What became of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acted {
    /// It is done.
    Done,
    /// There is no such user.
    NotFound,
    /// It would disable whoever acts: the user with their own, verified address.
    OwnAccount,
}

/// Does what the event of that name says, and records who did and why.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn act(pool: &PgPool, user: Uuid, event: &str, by: By<'_>) -> Result<Acted, Error> {
    // Enabling ends sessions, too: one may have been opened at the moment of disabling.
    let outcome = sqlx::query_scalar!(
        r#"WITH decision AS MATERIALIZED (
               SELECT id, $2::text = 'user_disabled' AND email_verified AND email = $4 AS own FROM users WHERE id = $1
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
                       ELSE 'not_found' END AS "outcome!""#,
        user,
        event,
        Uuid::now_v7(),
        by.actor,
        by.reason,
        by.origin.ip.map(|ip| ip.to_string()),
        by.origin.user_agent,
        by.origin.request_id,
    );
    match outcome.fetch_one(pool).await?.as_str() {
        "done" => Ok(Acted::Done),
        "own_account" => Ok(Acted::OwnAccount),
        "not_found" => Ok(Acted::NotFound),
        outcome => Err(Error::unexpected(outcome)),
    }
}
