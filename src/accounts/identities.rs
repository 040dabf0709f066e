//! A user's identities.

use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::{Database, Error};
use crate::domain::user::MAX_IDENTITIES;
use crate::domain::{Author, Email, Origin, Role, VerifiedClaims};
use crate::events::SqlAuthor;

/// An identity as its user sees it.
#[derive(Debug, Clone, Serialize)]
pub struct IdentityRow {
    pub id: Uuid,
    pub provider: String,
    pub subject: String,
    /// Latest e-mail address from the provider.
    pub email: Option<String>,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Time since which it is suspended, because of its provider's report.
    #[serde(with = "time::serde::rfc3339::option")]
    pub suspended_at: Option<OffsetDateTime>,
    /// The provider's reason for that, or `held`.
    pub suspended_reason: Option<String>,
    /// True if it may be a hijacker's.
    pub held: bool,
}

pub async fn of_user(database: &Database, user: Uuid) -> Result<Vec<IdentityRow>, Error> {
    let rows = sqlx::query_as!(
        IdentityRow,
        r#"SELECT id, provider, subject, email, created_at, suspended_at, suspended_reason,
                  held_at IS NOT NULL AS "held!"
           FROM identities WHERE user_id = $1 ORDER BY id"#,
        user,
    );
    Ok(rows.fetch_all(database).await?)
}

pub async fn owner(
    database: &Database,
    provider: &str,
    subject: &str,
) -> Result<Option<Uuid>, Error> {
    let id = sqlx::query_scalar!(
        "SELECT user_id FROM identities WHERE provider = $1 AND subject = $2",
        provider,
        subject,
    );
    Ok(id.fetch_optional(database).await?)
}

/// Returns the number of users with an identity that is held, because it may be a hijacker's.
pub async fn held(database: &Database) -> Result<i64, Error> {
    let count = sqlx::query_scalar!(
        r#"SELECT count(DISTINCT user_id) AS "count!" FROM identities WHERE held_at IS NOT NULL"#
    );
    Ok(count.fetch_one(database).await?)
}

#[derive(Debug, Clone)]
pub enum Linked {
    New(IdentityRow),
    Before(IdentityRow),
    /// The identity belongs to another user, and stays with them.
    Taken,
    Suspended,
    Outdated,
    /// The user has [`MAX_IDENTITIES`].
    TooMany,
    NoUser,
}

/// Links a verified identity to a user; see `link_identity.sql`. If the provider `proves` its
/// e-mail address, the address may become the user's.
pub async fn link(
    database: &Database,
    user: Uuid,
    session: Uuid,
    provider: &str,
    claims: &VerifiedClaims,
    proves: bool,
    origin: &Origin,
) -> Result<Linked, Error> {
    let row = sqlx::query_file!(
        "src/accounts/link_identity.sql",
        user,
        Uuid::now_v7(),
        provider,
        claims.subject,
        claims.email.as_ref().map(Email::as_given),
        proves,
        claims.name,
        claims.picture,
        session,
        claims.issued_at,
        SqlAuthor::from(origin) as SqlAuthor<'_>,
        i32::from(MAX_IDENTITIES),
    )
    .fetch_optional(database)
    .await?;
    let Some(row) = row else {
        return Ok(Linked::NoUser);
    };
    let identity = IdentityRow {
        id: row.id,
        provider: provider.to_owned(),
        subject: claims.subject.clone(),
        email: row.email,
        created_at: row.created_at,
        suspended_at: None,
        suspended_reason: None,
        held: false,
    };
    match row.outcome.as_str() {
        "linked" => Ok(Linked::New(identity)),
        "before" => Ok(Linked::Before(identity)),
        "identity_already_linked" => Ok(Linked::Taken),
        "identity_suspended" => Ok(Linked::Suspended),
        "token_expired" => Ok(Linked::Outdated),
        "too_many_identities" => Ok(Linked::TooMany),
        "raced" => Err(Error::Raced(None)),
        outcome => Err(Error::unexpected(outcome)),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unlinked {
    Done,
    NotFound,
    /// The identity is suspended. Unlinking it would forget the suspension.
    Suspended,
    Last,
    /// The session has ended, or the user has changed.
    Over {
        linked: bool,
    },
    NotPermitted,
}

/// Unlinks one of a user's identities; see `unlink_identity.sql`. The user's `updated_at` must
/// still equal `seen`, if given.
pub async fn unlink(
    database: &Database,
    user: Uuid,
    identity: Uuid,
    seen: Option<OffsetDateTime>,
    author: Author<'_>,
) -> Result<Unlinked, Error> {
    let row = sqlx::query_file!(
        "src/accounts/unlink_identity.sql",
        user,
        identity,
        SqlAuthor::needing(Role::Admin, author) as SqlAuthor<'_>,
        author.session(),
        seen,
    );
    let row = row.fetch_one(database).await?;
    match row.outcome.as_deref() {
        None if !row.permitted => Ok(Unlinked::NotPermitted),
        None => Ok(Unlinked::Over { linked: row.linked }),
        Some("unlinked") => Ok(Unlinked::Done),
        Some("not_found") => Ok(Unlinked::NotFound),
        Some("suspended") => Ok(Unlinked::Suspended),
        Some("last_identity") => Ok(Unlinked::Last),
        Some("raced") => Err(Error::Raced(None)),
        Some(outcome) => Err(Error::unexpected(outcome)),
    }
}
