//! Sessions and their refresh tokens.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use serde::Serialize;
use sqlx::PgExecutor;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::accounts::identities::IdentityRow;
use crate::accounts::users::{custom, user};
use crate::database::{Database, Error};
use crate::domain::{CustomClaims, EndReason, Origin, Thumbprint, User};
use crate::events::SqlAuthor;

/// Lifetimes and periods in seconds, by the names of their settings.
#[derive(Debug, Clone, Copy)]
pub struct Lifetimes {
    pub refresh_token_ttl: u32,
    pub absolute_ttl: u32,
    /// Period in which a repeated exchange returns the same successor.
    pub repeat: u32,
    /// Period in which a token gets another successor if the first one was never used.
    pub refresh_grace: u32,
}

/// The first 128 bits of a secret's SHA-256.
pub type Hash = [u8; 16];

#[derive(Debug)]
pub struct Exchange {
    pub session_id: Uuid,
    pub family_hash: Hash,
    pub presented_hash: Hash,
    /// Hashes of the tokens that it may be exchanged for: the first successor, then the reissued
    /// successors of this period and of the period before.
    pub successor_hashes: [Hash; 3],
    /// The same hashes as derived from the previous `secret_key`, if there is one. The token is not
    /// exchanged for one of these tokens, but one may be the live token.
    pub previous_hashes: Option<[Hash; 3]>,
    /// The key that the request proves.
    pub key: Option<Thumbprint>,
    pub origin: Origin,
}

#[derive(Debug, Clone)]
pub struct Refreshed {
    pub session_id: Uuid,
    pub user_id: Uuid,
    pub client_id: String,
    pub claims: CustomClaims,
    /// Index of the new token in [`Exchange::successor_hashes`], followed by
    /// [`Exchange::previous_hashes`].
    pub successor: usize,
    /// Seconds until the new token expires if it is not used.
    pub refresh_expires_in: u32,
    /// True if the session is bound to the key that the request proves.
    pub bound: bool,
}

/// The reason why a refresh was refused, by its name in logs and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum NotRefreshed {
    /// The token is unknown, or its session was deleted.
    Unknown,
    Ended,
    UserDisabled,
    Unproven,
    /// The token or the session has expired.
    Expired,
    /// The token had been used before. The session has now been ended.
    Replayed,
}

impl NotRefreshed {
    /// Returns the reason for the client, or `None` if its token proved nothing.
    pub const fn told(self) -> Option<EndReason> {
        match self {
            Self::Unknown | Self::Unproven => None,
            Self::Ended => Some(EndReason::SessionEnded),
            Self::UserDisabled => Some(EndReason::UserDisabled),
            Self::Expired => Some(EndReason::SessionExpired),
            Self::Replayed => Some(EndReason::RefreshTokenReused),
        }
    }
}

/// Exchanges refresh tokens; see `refresh.sql`. Of several items of one session, only the first is
/// exchanged. Another item shares its result if it repeats the first and may come from the same
/// client. Otherwise its result is `None`, and the caller must run it afterwards. After an error
/// nothing was written, unless the connection broke: then the tokens may have been exchanged.
pub async fn refresh(
    executor: impl PgExecutor<'_>,
    items: &[Arc<Exchange>],
    lifetimes: Lifetimes,
) -> Result<Vec<Option<Result<Refreshed, NotRefreshed>>>, Error> {
    let mut first = HashMap::new();
    for item in items {
        first.entry(item.session_id).or_insert(item);
    }
    let exchanged: Vec<_> = first.values().copied().collect();
    let hashes =
        |read: fn(&Exchange) -> &[u8]| exchanged.iter().map(|item| read(item)).collect::<Vec<_>>();
    let previous = |number: usize| -> Vec<_> {
        exchanged
            .iter()
            .map(|item| Some(item.previous_hashes.as_ref()?[number].as_slice()))
            .collect()
    };
    let rows = sqlx::query_file!(
        "src/accounts/refresh.sql",
        &exchanged
            .iter()
            .map(|item| item.session_id)
            .collect::<Vec<_>>(),
        &hashes(|item| &item.family_hash) as &[&[u8]],
        &hashes(|item| &item.presented_hash) as &[&[u8]],
        &hashes(|item| &item.successor_hashes[0]) as &[&[u8]],
        &hashes(|item| &item.successor_hashes[1]) as &[&[u8]],
        &hashes(|item| &item.successor_hashes[2]) as &[&[u8]],
        &exchanged
            .iter()
            .map(|item| item.origin.ip)
            .collect::<Vec<_>>() as &[Option<IpAddr>],
        &exchanged
            .iter()
            .map(|item| item.origin.user_agent.as_deref())
            .collect::<Vec<_>>() as &[Option<&str>],
        &exchanged
            .iter()
            .map(|item| item.origin.request_id.as_str())
            .collect::<Vec<_>>() as &[&str],
        seconds(lifetimes.refresh_token_ttl),
        seconds(lifetimes.absolute_ttl),
        seconds(lifetimes.repeat),
        seconds(lifetimes.refresh_grace),
        &previous(0) as &[Option<&[u8]>],
        &previous(1) as &[Option<&[u8]>],
        &previous(2) as &[Option<&[u8]>],
        &exchanged
            .iter()
            .map(|item| item.key.as_ref().map(Thumbprint::as_slice))
            .collect::<Vec<_>>() as &[Option<&[u8]>],
    )
    .fetch_all(executor)
    .await?;
    let rows: HashMap<_, _> = rows.into_iter().map(|row| (row.session_id, row)).collect();
    let verdict = |item: &Arc<Exchange>| {
        let first = first[&item.session_id];
        let repeats = item.presented_hash == first.presented_hash
            && item.family_hash == first.family_hash
            && item.key == first.key;
        // The statement records a repeat from elsewhere.
        let elsewhere =
            item.origin.ip != first.origin.ip && item.origin.user_agent != first.origin.user_agent;
        if !Arc::ptr_eq(item, first) && (!repeats || elsewhere) {
            return Ok(None);
        }
        let Some(row) = rows.get(&item.session_id) else {
            return Ok(Some(Err(NotRefreshed::Unknown)));
        };
        let refused = match row.outcome.as_str() {
            "rotated" | "repeated" | "reissued" => {
                // A repeat from another period may not know the new token. Then it must run after
                // the first.
                let mut known = item
                    .successor_hashes
                    .iter()
                    .chain(item.previous_hashes.iter().flatten());
                let successor = known.position(|hash| *hash == row.live_hash[..]);
                let Some(successor) = successor else {
                    return Ok(None);
                };
                return Ok(Some(Ok(Refreshed {
                    session_id: row.session_id,
                    user_id: row.user_id,
                    client_id: row.client_id.clone(),
                    claims: custom(row.claims.as_deref())?,
                    successor,
                    refresh_expires_in: u32::try_from(row.expires_in).unwrap_or(0),
                    bound: row.bound,
                })));
            }
            // The first item ended the session, so the others find it ended.
            "replayed" if !Arc::ptr_eq(item, first) => NotRefreshed::Ended,
            refused => refused.parse().map_err(|_| Error::unexpected(refused))?,
        };
        Ok(Some(Err(refused)))
    };
    items.iter().map(verdict).collect()
}

pub(super) fn seconds(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

#[derive(Debug, Clone)]
pub struct SessionUser {
    pub user: User,
    /// The identity that the session was opened with.
    pub identity: Uuid,
    pub identities: Vec<IdentityRow>,
    pub claims: CustomClaims,
}

/// Finds the users of sessions. Each item is a session's id and its user's id. The result is `None`
/// if the session has ended or was deleted, the user is disabled, or the identity is suspended.
pub async fn signed_in(
    executor: impl PgExecutor<'_>,
    items: &[(Uuid, Uuid)],
) -> Result<Vec<Option<SessionUser>>, Error> {
    let asked: HashSet<_> = items.iter().collect();
    let rows = sqlx::query!(
        r#"SELECT t.session_id AS "session_id!", s.identity_id AS "identity_id!", u.id AS user_id, u.email AS user_email,
                  u.email_verified AS user_email_verified, u.name AS user_name, u.picture AS user_picture,
                  u.created_at AS user_created_at, u.claims::text AS claims,
                  own.id, own.provider, own.subject, own.email, own.created_at, own.suspended_at, own.suspended_reason,
                  own.held_at IS NOT NULL AS "held!"
           FROM unnest($1::uuid[], $2::uuid[]) AS t (session_id, user_id)
           JOIN live_sessions s ON s.id = t.session_id AND s.user_id = t.user_id
           JOIN users u ON u.id = t.user_id
           JOIN identities own ON own.user_id = t.user_id
           WHERE u.disabled_at IS NULL
           ORDER BY own.id"#,
        &asked.iter().map(|(session, _)| *session).collect::<Vec<_>>(),
        &asked.iter().map(|(_, user)| *user).collect::<Vec<_>>(),
    )
    .fetch_all(executor)
    .await?;
    let mut found = HashMap::with_capacity(asked.len());
    for row in rows {
        let session = match found.entry((row.session_id, row.user_id)) {
            Entry::Occupied(session) => session.into_mut(),
            Entry::Vacant(place) => place.insert(SessionUser {
                user: user!(row),
                identity: row.identity_id,
                identities: Vec::new(),
                claims: custom(row.claims.as_deref())?,
            }),
        };
        session.identities.push(IdentityRow {
            id: row.id,
            provider: row.provider,
            subject: row.subject,
            email: row.email,
            created_at: row.created_at,
            suspended_at: row.suspended_at,
            suspended_reason: row.suspended_reason,
            held: row.held,
        });
    }
    Ok(items.iter().map(|item| found.get(item).cloned()).collect())
}

/// Returns the reason why a session of this user is over, which [`signed_in`] no longer finds. The
/// reason for a deleted or merged user comes from an event; `None` if the event is gone, too.
pub async fn why_over(database: &Database, user: Uuid) -> Result<Option<EndReason>, Error> {
    let reason = sqlx::query_scalar!(
        "SELECT CASE
                    WHEN u.disabled_at IS NOT NULL THEN 'user_disabled'
                    WHEN u.id IS NOT NULL THEN 'session_ended'
                    ELSE (SELECT CASE kind WHEN 'users_merged' THEN 'user_merged' ELSE kind END FROM events
                          WHERE user_id = $1 AND kind IN ('user_deleted', 'users_merged')
                          ORDER BY id DESC LIMIT 1)
                END
         FROM (SELECT) AS asked LEFT JOIN users u ON u.id = $1",
        user,
    );
    let reason = reason.fetch_one(database).await?;
    reason
        .map(|reason| reason.parse().map_err(|_| Error::unexpected(&reason)))
        .transpose()
}

/// Returns whether the session is bound to no key or to `key`, or `None` if the family secret of
/// the refresh token is not the session's. With `exchangeable`, also returns `None` unless the
/// token can still be exchanged: as the current token, or as its parent for that many seconds after
/// the rotation.
pub async fn by_refresh_token(
    database: &Database,
    session: Uuid,
    family_hash: &Hash,
    token_hash: &Hash,
    successor_hashes: &[Hash],
    exchangeable: Option<u32>,
    key: Option<Thumbprint>,
) -> Result<Option<bool>, Error> {
    let proven = sqlx::query_scalar!(
        r#"SELECT (jkt = $6) IS TRUE OR jkt IS NULL AS "proven!" FROM sessions
         WHERE id = $1 AND family_hash = $2
         AND ($4::integer IS NULL
              OR (expires_at > now()
                  AND (token_hash = $3
                       OR (rotated_at > now() - $4 * interval '1 second' AND (token_hash = ANY ($5) OR parent_hash = $3)))))"#,
        session,
        family_hash.as_slice(),
        token_hash.as_slice(),
        exchangeable.map(seconds),
        &successor_hashes
            .iter()
            .map(Hash::as_slice)
            .collect::<Vec<_>>() as &[&[u8]],
        key.as_ref().map(Thumbprint::as_slice),
    );
    Ok(proven.fetch_optional(database).await?)
}

/// The sessions to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, ToSchema)]
#[schema(rename_all = "snake_case", default = "local")]
#[strum(serialize_all = "snake_case")]
pub enum Scope {
    Local,
    Others,
    Global,
}

/// Ends sessions of the user of `session`, and returns their number.
pub async fn end(
    database: &Database,
    session: Uuid,
    scope: Scope,
    origin: &Origin,
) -> Result<i64, Error> {
    let row = sqlx::query_file!(
        "src/accounts/end_sessions.sql",
        session,
        scope != Scope::Others,
        scope != Scope::Local,
        <&str>::from(scope),
        SqlAuthor::from(origin) as SqlAuthor<'_>,
    );
    Ok(row.fetch_one(database).await?.count)
}

pub async fn is_of(database: &Database, session: Uuid, user: Uuid) -> Result<bool, Error> {
    let found = sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT FROM sessions s JOIN identities i ON i.id = s.identity_id
               WHERE s.id = $1 AND i.user_id = $2 AND s.ended_at IS NULL
                     AND (i.tokens_from <= s.created_at OR i.tokens_from IS NULL)
           ) AS "found!""#,
        session,
        user,
    );
    Ok(found.fetch_one(database).await?)
}

/// A session of a user.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = SessionRecord)]
pub struct SessionRow {
    /// The session's id, which is the `sid` of its access tokens.
    pub id: Uuid,
    /// The name of the provider that the user signed in with.
    #[schema(example = "google")]
    pub provider: String,
    /// The time at which the session was opened.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// The time of the latest refresh, or of the sign-in.
    #[serde(with = "time::serde::rfc3339")]
    pub last_used_at: OffsetDateTime,
    /// The time of the latest use before the current hour of the database's clock.
    #[serde(skip)]
    pub used_before_this_hour: OffsetDateTime,
    /// The IPv4 or IPv6 address of the sign-in, as long as its event is kept.
    #[schema(required = true, value_type = Option<String>, example = "203.0.113.7")]
    pub ip: Option<IpAddr>,
    /// The `User-Agent` header of the sign-in, as long as its event is kept.
    #[schema(required = true, example = "VestibuleDemo/1.4 (Android 17)")]
    pub user_agent: Option<String>,
    /// The owner's name for the device, as the sign-in gave it.
    #[schema(required = true, example = "Ada's phone")]
    pub device_name: Option<String>,
    /// The platform that the device runs, as the sign-in gave it.
    #[schema(required = true, example = "Android 17")]
    pub device_platform: Option<String>,
    /// True if only the holder of the device's key can use it (RFC 9449).
    pub bound: bool,
}

/// Returns a user's sessions that have not ended or expired, the last used first.
pub async fn of_user(database: &Database, user: Uuid) -> Result<Vec<SessionRow>, Error> {
    let rows = sqlx::query_as!(
        SessionRow,
        r#"SELECT s.id, i.provider, s.created_at, s.rotated_at AS last_used_at,
                  CASE WHEN date_bin('1 hour', s.rotated_at, 'epoch') < date_bin('1 hour', now(), 'epoch')
                       THEN s.rotated_at ELSE s.used_before END AS "used_before_this_hour!",
                  e.ip AS "ip: IpAddr", e.user_agent,
                  s.device_name, s.device_platform, s.jkt IS NOT NULL AS "bound!"
           FROM identities i
           JOIN sessions s ON s.identity_id = i.id AND s.ended_at IS NULL AND s.expires_at > now()
           LEFT JOIN events e ON e.id = s.id
           WHERE i.user_id = $1 AND (i.tokens_from <= s.created_at OR i.tokens_from IS NULL)
           ORDER BY s.rotated_at DESC, s.id DESC"#,
        user,
    );
    Ok(rows.fetch_all(database).await?)
}
