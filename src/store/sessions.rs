//! Sessions and their refresh tokens.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

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
    /// For how long a repeat of an exchange gets the same successor.
    pub repeat: u32,
    /// For how long the parent of a token that was never used gets another successor.
    pub grace: u32,
}

/// The first 128 bits of a secret's SHA-256.
pub type Hash = [u8; 16];

/// A refresh token that is to be exchanged.
#[derive(Debug)]
pub struct Exchange {
    /// The session that the token names.
    pub session_id: Uuid,
    /// Its family secret.
    pub family_hash: Hash,
    /// Its own secret.
    pub presented_hash: Hash,
    /// Those of the tokens it may be exchanged for: its successor, the one it gets now should the answer with the first
    /// have been lost, and the one it got for this reason a moment ago.
    pub successor_hashes: [Hash; 3],
    /// Where the request came from.
    pub origin: Origin,
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
    /// Which of the tokens it may be exchanged for is the new one.
    pub successor: usize,
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

/// Exchanges refresh tokens; see `refresh.sql`. Of several items of one session, the first is exchanged. The others have its
/// result where they are repeats of it, and else none: they come after it.
///
/// # Errors
/// Nothing was written, or, where the connection broke, perhaps the exchanges; see [`Error`].
pub async fn refresh(
    pool: &PgPool,
    items: &[Arc<Exchange>],
    lifetimes: Lifetimes,
) -> Result<Vec<Option<Result<Refreshed, NotRefreshed>>>, Error> {
    let mut first = HashMap::new();
    for item in items {
        first.entry(item.session_id).or_insert(item);
    }
    let exchanged: Vec<_> = first.values().copied().collect();
    let hashes = |read: fn(&Exchange) -> &[u8]| exchanged.iter().map(|item| read(item)).collect::<Vec<_>>();
    let rows = sqlx::query_file!(
        "src/store/refresh.sql",
        &exchanged.iter().map(|item| item.session_id).collect::<Vec<_>>(),
        &hashes(|item| &item.family_hash) as &[&[u8]],
        &hashes(|item| &item.presented_hash) as &[&[u8]],
        &hashes(|item| &item.successor_hashes[0]) as &[&[u8]],
        &hashes(|item| &item.successor_hashes[1]) as &[&[u8]],
        &hashes(|item| &item.successor_hashes[2]) as &[&[u8]],
        &exchanged.iter().map(|_| Uuid::now_v7()).collect::<Vec<_>>(),
        &exchanged.iter().map(|item| item.origin.ip.map(|ip| ip.to_string())).collect::<Vec<_>>()
            as &[Option<String>],
        &exchanged.iter().map(|item| item.origin.user_agent.as_deref()).collect::<Vec<_>>()
            as &[Option<&str>],
        &exchanged.iter().map(|item| item.origin.request_id.as_str()).collect::<Vec<_>>() as &[&str],
        seconds(lifetimes.refresh_token),
        seconds(lifetimes.session),
        seconds(lifetimes.repeat),
        seconds(lifetimes.grace),
    )
    .fetch_all(pool)
    .await?;
    let rows: HashMap<_, _> = rows.into_iter().map(|row| (row.session_id, row)).collect();
    let verdict = |item: &Arc<Exchange>| {
        let first = first[&item.session_id];
        let repeats = item.presented_hash == first.presented_hash && item.family_hash == first.family_hash;
        if !Arc::ptr_eq(item, first) && !repeats {
            return Ok(None);
        }
        let Some(row) = rows.get(&item.session_id) else { return Ok(Some(Err(NotRefreshed::Unknown))) };
        let refused = match row.outcome.as_str() {
            "rotated" | "repeated" | "reissued" => {
                // A repeat that began in another period than the first may know another token; then it comes after it.
                let successor = item.successor_hashes.iter().position(|hash| *hash == row.live_hash[..]);
                return Ok(successor.map(|successor| {
                    Ok(Refreshed {
                        session_id: row.session_id,
                        user_id: row.user_id,
                        client_id: row.client_id.clone(),
                        successor,
                        refresh_expires_in: u32::try_from(row.expires_in).unwrap_or(0),
                    })
                }));
            }
            // The first has ended the session, and the others find it so.
            "replayed" if !Arc::ptr_eq(item, first) => NotRefreshed::Ended,
            "replayed" => NotRefreshed::Replayed,
            "ended" => NotRefreshed::Ended,
            "user_disabled" => NotRefreshed::UserDisabled,
            "expired" => NotRefreshed::Expired,
            outcome => return Err(Error::unexpected(outcome)),
        };
        Ok(Some(Err(refused)))
    };
    items.iter().map(verdict).collect()
}

pub(super) fn seconds(value: u32) -> i32 {
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

/// Finds the session that a refresh token belongs to, by its family secret. `exchangeable` asks for a token that could
/// still be exchanged: the live one, or its parent for as many seconds after the rotation.
///
/// # Errors
/// See [`Error`].
pub async fn by_refresh_token(
    pool: &PgPool,
    session: Uuid,
    family_hash: &Hash,
    token_hash: &Hash,
    exchangeable: Option<u32>,
) -> Result<Option<Uuid>, Error> {
    let session = sqlx::query_scalar!(
        "SELECT id FROM sessions
         WHERE id = $1 AND family_hash = $2
         AND ($4::integer IS NULL
              OR (expires_at > now()
                  AND (token_hash = $3 OR (parent_hash = $3 AND rotated_at > now() - $4 * interval '1 second'))))",
        session,
        family_hash.as_slice(),
        token_hash.as_slice(),
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
        r#"SELECT s.id, i.provider, s.created_at, coalesce(s.rotated_at, s.created_at) AS "last_used_at!", host(s.ip) AS ip, s.user_agent, s.device_name,
                  s.device_platform
           FROM identities i
           JOIN sessions s ON s.identity_id = i.id AND s.ended_at IS NULL AND s.expires_at > now()
           WHERE i.user_id = $1
           ORDER BY coalesce(s.rotated_at, s.created_at) DESC, s.id DESC"#,
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
