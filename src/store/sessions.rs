//! Sessions and their refresh tokens.

use std::net::IpAddr;

use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

use super::Error;
use super::users::Origin;
use crate::domain::user::User;

/// How long things last, in seconds, as the statements need it.
#[derive(Debug, Clone, Copy)]
pub struct Lifetimes {
    /// Of a refresh token that is not used.
    pub refresh_token: u32,
    /// Of a session, however much it is used.
    pub session: u32,
    /// For how long a consumed token is good for another successor.
    pub grace: u32,
}

/// A session that got a new refresh token.
#[derive(Debug, Clone)]
pub struct Refreshed {
    /// The session.
    pub session_id: Uuid,
    /// Whose it is.
    pub user_id: Uuid,
    /// The application it was opened by.
    pub client_id: String,
    /// For how many seconds the new token is good unless it is used.
    pub refresh_expires_in: u32,
}

/// Why there is no new refresh token. The client is told none of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotRefreshed {
    /// No such token, or its session is gone.
    Unknown,
    /// The session was ended.
    Ended,
    /// The user is disabled.
    UserDisabled,
    /// The token or the session is too old.
    Expired,
    /// The token was used before: the session is now ended.
    Replayed,
}

impl NotRefreshed {
    /// Every reason.
    pub const ALL: [Self; 5] =
        [Self::Unknown, Self::Ended, Self::UserDisabled, Self::Expired, Self::Replayed];

    /// The name in logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Ended => "ended",
            Self::UserDisabled => "user_disabled",
            Self::Expired => "expired",
            Self::Replayed => "replayed",
        }
    }
}

/// Exchanges a refresh token; see `refresh.sql`.
///
/// # Errors
/// Nothing was written, or, where the connection broke, perhaps the exchange; see [`Error`].
pub async fn refresh(
    pool: &PgPool,
    presented: &[u8; 32],
    successor: &[u8; 32],
    lifetimes: Lifetimes,
    origin: &Origin,
) -> Result<Result<Refreshed, NotRefreshed>, Error> {
    let row = sqlx::query_file!(
        "src/store/refresh.sql",
        presented.as_slice(),
        successor.as_slice(),
        seconds(lifetimes.refresh_token),
        seconds(lifetimes.grace),
        seconds(lifetimes.session),
        Uuid::now_v7(),
        origin.ip.map(|ip| ip.to_string()),
        origin.user_agent,
        origin.request_id,
    )
    .fetch_optional(pool)
    .await?;
    let Some(row) = row else { return Ok(Err(NotRefreshed::Unknown)) };
    match row.outcome.as_str() {
        "rotated" | "reissued" => Ok(Ok(Refreshed {
            session_id: row.session_id,
            user_id: row.user_id,
            client_id: row.client_id,
            refresh_expires_in: u32::try_from(row.expires_in).unwrap_or(0),
        })),
        "ended" => Ok(Err(NotRefreshed::Ended)),
        "user_disabled" => Ok(Err(NotRefreshed::UserDisabled)),
        "expired" => Ok(Err(NotRefreshed::Expired)),
        "replayed" => Ok(Err(NotRefreshed::Replayed)),
        outcome => Err(Error::unexpected(outcome)),
    }
}

fn seconds(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

/// The user of a session that is alive: not ended, the user not disabled.
///
/// # Errors
/// See [`Error`].
pub async fn user_of(pool: &PgPool, session: Uuid, user: Uuid) -> Result<Option<User>, Error> {
    let user = sqlx::query_as!(
        User,
        "SELECT u.id, u.email, u.email_verified, u.name, u.picture, u.created_at
         FROM sessions s JOIN identities i ON i.id = s.identity_id JOIN users u ON u.id = i.user_id
         WHERE s.id = $1 AND u.id = $2 AND s.ended_at IS NULL AND u.disabled_at IS NULL",
        session,
        user,
    );
    Ok(user.fetch_optional(pool).await?)
}

/// The session that a refresh token belongs to. `exchangeable` asks for a token that could still be
/// exchanged, where a consumed one is good for another successor for that many seconds.
///
/// # Errors
/// See [`Error`].
pub async fn by_refresh_token(
    pool: &PgPool,
    hash: &[u8; 32],
    exchangeable: Option<u32>,
) -> Result<Option<Uuid>, Error> {
    let session = sqlx::query_scalar!(
        "SELECT s.id FROM refresh_tokens t JOIN sessions s ON s.id = t.session_id
         WHERE t.hash = $1
         AND ($2::integer IS NULL
              OR (t.generation = s.generation AND t.expires_at > now())
              OR (t.generation = s.parent_generation AND s.parent_consumed_at > now() - $2 * interval '1 second'))",
        hash.as_slice(),
        exchangeable.map(seconds),
    );
    Ok(session.fetch_optional(pool).await?)
}

/// Which of a user's sessions to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// This one.
    Local,
    /// All but this one.
    Others,
    /// All.
    Global,
}

impl Scope {
    /// The name on the wire and in events.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Others => "others",
            Self::Global => "global",
        }
    }
}

/// Ends sessions of the user whose session this is; answers how many.
///
/// # Errors
/// See [`Error`].
pub async fn end(pool: &PgPool, session: Uuid, scope: Scope, origin: &Origin) -> Result<i64, Error> {
    let row = sqlx::query_file!(
        "src/store/end_sessions.sql",
        session,
        scope != Scope::Others,
        scope != Scope::Local,
        Uuid::now_v7(),
        scope.name(),
        origin.ip.map(|ip| ip.to_string()),
        origin.user_agent,
        origin.request_id,
    );
    Ok(row.fetch_one(pool).await?.count)
}

/// Whether a session is one of this user's, and alive.
///
/// # Errors
/// See [`Error`].
pub async fn is_of(pool: &PgPool, session: Uuid, user: Uuid) -> Result<bool, Error> {
    let found = sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT FROM sessions s JOIN identities i ON i.id = s.identity_id
               WHERE s.id = $1 AND i.user_id = $2 AND s.ended_at IS NULL
           ) AS "found!""#,
        session,
        user,
    );
    Ok(found.fetch_one(pool).await?)
}

/// Whether a session was opened by that application.
///
/// # Errors
/// See [`Error`].
pub async fn is_of_client(pool: &PgPool, session: Uuid, client_id: &str) -> Result<bool, Error> {
    let found = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM sessions WHERE id = $1 AND client_id = $2) AS "found!""#,
        session,
        client_id,
    );
    Ok(found.fetch_one(pool).await?)
}

/// A session as its user sees it.
#[derive(Debug, Clone)]
pub struct SessionRow {
    /// Key of the session.
    pub id: Uuid,
    /// The provider it was opened with.
    pub provider: String,
    /// When it was opened.
    pub created_at: OffsetDateTime,
    /// When it last got a new token.
    pub last_used_at: OffsetDateTime,
    /// Where it was opened.
    pub ip: Option<IpAddr>,
    /// What opened it.
    pub user_agent: Option<String>,
    /// What the device calls itself.
    pub device_name: Option<String>,
    /// What the device runs.
    pub device_platform: Option<String>,
}

/// A user's sessions that are alive, the last used first.
///
/// # Errors
/// See [`Error`].
pub async fn of_user(pool: &PgPool, user: Uuid) -> Result<Vec<SessionRow>, Error> {
    let rows = sqlx::query!(
        r#"SELECT s.id, i.provider, s.created_at, s.last_used_at, host(s.ip) AS ip, s.user_agent, s.device_name,
                  s.device_platform
           FROM identities i
           JOIN sessions s ON s.identity_id = i.id AND s.ended_at IS NULL
           JOIN refresh_tokens t ON t.session_id = s.id AND t.generation = s.generation AND t.expires_at > now()
           WHERE i.user_id = $1
           ORDER BY s.last_used_at DESC, s.id DESC"#,
        user,
    );
    let rows = rows.fetch_all(pool).await?.into_iter();
    Ok(rows
        .map(|row| SessionRow {
            id: row.id,
            provider: row.provider,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
            ip: row.ip.and_then(|ip| ip.parse().ok()),
            user_agent: row.user_agent,
            device_name: row.device_name,
            device_platform: row.device_platform,
        })
        .collect())
}
