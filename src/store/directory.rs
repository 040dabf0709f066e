//! What staff see of users: lists, searches, one person's record.

use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

use super::Error;
use super::users::Origin;

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

/// Does what the event of that name says, and records who did and why. Answers whether there is such
/// a user.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn act(
    pool: &PgPool,
    user: Uuid,
    event: &str,
    actor: &str,
    reason: &str,
    origin: &Origin,
) -> Result<bool, Error> {
    let done = sqlx::query_scalar!(
        r#"WITH target AS (
               UPDATE users
               SET disabled_at = CASE $2::text WHEN 'user_disabled' THEN coalesce(disabled_at, now())
                                         WHEN 'user_enabled' THEN NULL ELSE disabled_at END,
                   updated_at = now()
               WHERE id = $1 RETURNING id
           ),
           ended AS (
               UPDATE sessions s SET ended_at = now()
               FROM target t JOIN identities i ON i.user_id = t.id
               WHERE s.identity_id = i.id AND s.ended_at IS NULL AND $2::text <> 'user_enabled'
           ),
           recorded AS (
               INSERT INTO events (id, kind, user_id, actor, detail, ip, user_agent, request_id)
               SELECT $3, $2::text, id, $4, jsonb_build_object('reason', $5::text), $6::text::inet, $7, $8 FROM target
           )
           SELECT EXISTS (SELECT FROM target) AS "done!""#,
        user,
        event,
        Uuid::now_v7(),
        actor,
        reason,
        origin.ip.map(|ip| ip.to_string()),
        origin.user_agent,
        origin.request_id,
    );
    Ok(done.fetch_one(pool).await?)
}
