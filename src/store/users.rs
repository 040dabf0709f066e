//! Users, identities and what a sign-in writes.

use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

use super::Error;
use super::staff_access::By;
use crate::domain::claims::VerifiedClaims;
use crate::domain::email::Email;
use crate::domain::linking::Decision;
use crate::domain::refusal::Reason;
use crate::domain::staff::Role;
use crate::domain::user::{Identity, User};

/// Everything that one sign-in may write.
#[derive(Debug)]
pub struct SignIn<'a> {
    /// Name of the provider.
    pub provider: &'a str,
    /// What it vouches for.
    pub claims: &'a VerifiedClaims,
    /// What becomes of an unknown identity.
    pub decision: Decision,
    /// Id of the session to open.
    pub session_id: Uuid,
    /// SHA-256 of the session's first refresh token.
    pub refresh_token_hash: &'a [u8; 32],
    /// Lifetime of that token, in seconds.
    pub refresh_token_ttl: u32,
    /// How many sessions an identity may have; beyond it, the oldest end.
    pub max_sessions: u32,
    /// Where the request came from.
    pub origin: &'a Origin,
    /// What the device calls itself.
    pub device_name: Option<&'a str>,
    /// What the device runs.
    pub device_platform: Option<&'a str>,
}

/// Where a request came from, as sessions and events keep it.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The client's address.
    pub ip: Option<std::net::IpAddr>,
    /// The `User-Agent` header.
    pub user_agent: Option<String>,
    /// The request's id.
    pub request_id: String,
}

/// How a sign-in ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A user was created.
    Created,
    /// The identity was linked to the user who has its e-mail address.
    Linked,
    /// The identity was known.
    SignedIn,
}

/// Finds, creates or links the user, opens the session and records the event, or records the
/// refusal: one statement, see `sign_in.sql`.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn sign_in(
    pool: &PgPool,
    input: &SignIn<'_>,
) -> Result<Result<(Outcome, User, Identity), Reason>, Error> {
    let claims = input.claims;
    let email = claims.email.as_ref();
    let name =
        |verdict: Result<(), Reason>, allowed: &'static str| verdict.map_or_else(Reason::name, |()| allowed);
    let row = sqlx::query_file!(
        "src/store/sign_in.sql",
        input.provider,
        claims.subject,
        email.map(Email::as_given),
        email.map(Email::folded),
        claims.email_verified,
        claims.name,
        claims.picture,
        name(input.decision.if_taken, "linked"),
        name(input.decision.if_free, "created"),
        input.decision.refuse_recycled,
        Uuid::now_v7(),
        Uuid::now_v7(),
        input.session_id,
        Uuid::now_v7(),
        input.refresh_token_hash.as_slice(),
        i32::try_from(input.refresh_token_ttl).unwrap_or(i32::MAX),
        claims.client_id,
        input.origin.ip.map(|ip| ip.to_string()),
        input.origin.user_agent,
        input.device_name,
        input.device_platform,
        input.origin.request_id,
        i64::from(input.max_sessions),
    )
    .fetch_one(pool)
    .await?;

    let outcome = match row.outcome.as_str() {
        "created" => Outcome::Created,
        "linked" => Outcome::Linked,
        "signed_in" => Outcome::SignedIn,
        "raced" => return Err(Error::Raced(None)),
        refused => {
            return Ok(Err(Reason::from_name(refused).ok_or_else(|| Error::unexpected(refused))?));
        }
    };
    let user = User {
        id: row.user_id,
        email: row.email,
        email_verified: row.email_verified,
        name: row.name,
        picture: row.picture,
        created_at: row.created_at,
    };
    let identity = Identity {
        id: row.identity_id,
        provider: input.provider.to_owned(),
        subject: claims.subject.clone(),
        email: row.identity_email,
    };
    Ok(Ok((outcome, user, identity)))
}

/// Who deletes a user.
#[derive(Debug, Clone, Copy)]
pub enum DeletedBy<'a> {
    /// The user.
    User(&'a Origin),
    /// Staff, who saw them as they were at that time (`updated_at`).
    Staff(By<'a>, OffsetDateTime),
}

/// How a deletion ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deletion {
    /// The user is no more, and this is still to be forgotten.
    Done(Traces),
    /// There was no such user; for staff: none that has not changed.
    NotFound,
    /// Whoever asked for it may not.
    NotPermitted,
}

/// What events hold of somebody who was deleted; see [`super::forget`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traces {
    /// Ids by which their own events are found: theirs, and those of users that were merged into them.
    pub users: Vec<Uuid>,
    /// Addresses that others' events hold.
    pub addresses: Vec<String>,
}

/// Deletes a user and everything that is theirs; see `delete_user.sql`.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn delete(pool: &PgPool, user: Uuid, by: DeletedBy<'_>) -> Result<Deletion, Error> {
    // Of where users were when they deleted themselves, nothing is kept.
    let (staff, seen, request_id) = match by {
        DeletedBy::User(origin) => (None, None, &origin.request_id),
        DeletedBy::Staff(by, seen) => (Some(by), Some(seen), &by.origin.request_id),
    };
    let row = sqlx::query_file!(
        "src/store/delete_user.sql",
        user,
        Uuid::now_v7(),
        request_id,
        staff.map(|by| by.actor.name()),
        staff.and_then(|by| by.reason),
        seen,
        staff.and_then(|by| by.origin.ip).map(|ip| ip.to_string()),
        staff.and_then(|by| by.origin.user_agent.as_deref()),
        staff.and_then(|by| by.actor.needs(Role::Admin)),
    );
    let row = row.fetch_one(pool).await?;
    Ok(match (row.deleted, row.permitted) {
        (true, _) => Deletion::Done(Traces { users: row.users, addresses: row.addresses }),
        (false, true) => Deletion::NotFound,
        (false, false) => Deletion::NotPermitted,
    })
}
