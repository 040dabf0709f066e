//! Sign-ins, names, and the deletion of users.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use serde::Serialize;
use sqlx::PgConnection;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::accounts::sessions::{Hash, seconds};
use crate::database::{Database, Error};
use crate::domain::linking::Decision;
use crate::domain::user::{Identity, MAX_IDENTITIES};
use crate::domain::{
    Author, CustomClaims, Email, Origin, Reason, Role, Thumbprint, User, VerifiedClaims,
};
use crate::events::SqlAuthor;

#[derive(Debug)]
pub struct SignIn {
    pub provider: String,
    pub claims: VerifiedClaims,
    pub decision: Decision,
    pub session_id: Uuid,
    pub family_hash: Hash,
    pub token_hash: Hash,
    pub origin: Origin,
    pub device_name: Option<String>,
    pub device_platform: Option<String>,
    /// The user's name, as the provider gave it to the client.
    pub reported_name: Option<String>,
    pub key: Option<Thumbprint>,
}

impl SignIn {
    fn key(&self) -> Option<&[u8]> {
        self.key.as_ref().map(Thumbprint::as_slice)
    }

    fn email(&self) -> Option<&str> {
        self.claims.email.as_ref().map(Email::as_given)
    }

    /// Returns the case-folded e-mail address, which must be unique among the new users of one
    /// statement.
    fn folded(&self) -> Option<&str> {
        self.claims.email.as_ref().map(Email::folded)
    }

    fn identity(&self, id: Uuid, email: Option<String>) -> Identity {
        Identity {
            id,
            provider: self.provider.clone(),
            subject: self.claims.subject.clone(),
            email,
        }
    }
}

/// The outcome of the sign-in: `created` made a new user, `linked` added the identity to the user
/// with its verified e-mail address, `signed_in` found a known identity.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    ToSchema,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    Created,
    Linked,
    SignedIn,
}

#[derive(Debug)]
pub struct SignedIn {
    pub outcome: Outcome,
    pub user: User,
    pub identity: Identity,
    pub claims: CustomClaims,
}

macro_rules! sign_ins {
    ($file:literal, $items:expr, $ttl:expr $(, $more:expr)*) => {{
        let texts = |read: fn(&SignIn) -> &str| $items.iter().map(|item| read(item)).collect::<Vec<_>>();
        let options =
            |read: fn(&SignIn) -> Option<&str>| $items.iter().map(|item| read(item)).collect::<Vec<_>>();
        sqlx::query_file!(
            $file,
            &texts(|item| &item.provider) as &[&str],
            &texts(|item| &item.claims.subject) as &[&str],
            &options(SignIn::email) as &[Option<&str>],
            &$items.iter().map(|item| item.decision.proves).collect::<Vec<_>>(),
            &options(|item| item.claims.name.as_deref()) as &[Option<&str>],
            &options(|item| item.claims.picture.as_deref()) as &[Option<&str>],
            &$items.iter().map(|item| item.session_id).collect::<Vec<_>>(),
            &$items.iter().map(|item| item.family_hash.as_slice()).collect::<Vec<_>>() as &[&[u8]],
            &$items.iter().map(|item| item.token_hash.as_slice()).collect::<Vec<_>>() as &[&[u8]],
            &texts(|item| &item.claims.client_id) as &[&str],
            &$items.iter().map(|item| item.origin.ip).collect::<Vec<_>>() as &[Option<IpAddr>],
            &options(|item| item.origin.user_agent.as_deref()) as &[Option<&str>],
            &options(|item| item.device_name.as_deref()) as &[Option<&str>],
            &options(|item| item.device_platform.as_deref()) as &[Option<&str>],
            &texts(|item| &item.origin.request_id) as &[&str],
            seconds($ttl)
            $(, $more)*
        )
    }};
}

/// Builds a user from a row with these columns.
macro_rules! user {
    ($row:expr) => {
        crate::domain::User {
            id: $row.user_id,
            email: $row.user_email,
            email_verified: $row.user_email_verified,
            name: $row.user_name,
            picture: $row.user_picture,
            created_at: $row.user_created_at,
        }
    };
}
pub(super) use user;

/// Sorts rows into the order of the items. An item without a row has no result.
macro_rules! in_order {
    ($items:expr, $rows:expr, $outcome:expr) => {{
        let mut rows: HashMap<_, _> = $rows.into_iter().map(|row| (row.session_id, row)).collect();
        let result = |item: &Arc<SignIn>| {
            let Some(row) = rows.remove(&item.session_id) else {
                return Ok(None);
            };
            let user = user!(row);
            let identity = item.identity(row.identity_id, row.identity_email);
            Ok(Some(SignedIn {
                outcome: $outcome,
                user,
                identity,
                claims: custom(row.claims.as_deref())?,
            }))
        };
        $items.iter().map(result).collect()
    }};
}

/// Signs in the identities that are known and whose stored data match the claims; see
/// `sign_in_known.sql`. Unused refresh tokens expire after `ttl` seconds.
pub async fn sign_in_known(
    connection: &mut PgConnection,
    items: &[Arc<SignIn>],
    ttl: u32,
) -> Result<Vec<Option<SignedIn>>, Error> {
    let rows = sign_ins!(
        "src/accounts/sign_in_known.sql",
        items,
        ttl,
        &items
            .iter()
            .map(|item| item.claims.issued_at)
            .collect::<Vec<_>>(),
        &items.iter().map(|item| item.key()).collect::<Vec<_>>() as &[Option<&[u8]>]
    );
    let rows = rows.fetch_all(connection).await?;
    in_order!(items, rows, Outcome::SignedIn)
}

/// Creates users for the identities that are unknown and whose e-mail address no user has; see
/// `sign_in_new.sql`.
pub async fn sign_in_new(
    connection: &mut PgConnection,
    items: &[Arc<SignIn>],
    ttl: u32,
) -> Result<Vec<Option<SignedIn>>, Error> {
    // Of two items for one user, the second gets no result, and runs after the first.
    let mut identities = HashSet::new();
    let mut emails = HashSet::new();
    let mut new = Vec::with_capacity(items.len());
    for item in items {
        if identities.insert((&item.provider, &item.claims.subject))
            && item.folded().is_none_or(|email| emails.insert(email))
        {
            new.push(item);
        }
    }
    let rows = sign_ins!(
        "src/accounts/sign_in_new.sql",
        new,
        ttl,
        &new.iter().map(|_| Uuid::now_v7()).collect::<Vec<_>>(),
        &new.iter().map(|_| Uuid::now_v7()).collect::<Vec<_>>(),
        &new.iter()
            .map(|item| item.reported_name.as_deref())
            .collect::<Vec<_>>() as &[Option<&str>],
        &new.iter()
            .map(|item| item.claims.issued_at)
            .collect::<Vec<_>>(),
        &new.iter().map(|item| item.key()).collect::<Vec<_>>() as &[Option<&[u8]>]
    );
    let rows = rows.fetch_all(connection).await?;
    in_order!(items, rows, Outcome::Created)
}

/// Signs in one identity of any kind, or records the refusal; see `sign_in.sql`.
pub async fn sign_in(
    database: &Database,
    item: &SignIn,
    ttl: u32,
) -> Result<Result<SignedIn, Reason>, Error> {
    let name = |verdict: Result<(), Reason>, allowed: &'static str| {
        verdict.map_or_else(Into::into, |()| allowed)
    };
    let row = sqlx::query_file!(
        "src/accounts/sign_in.sql",
        item.provider,
        item.claims.subject,
        item.email(),
        item.decision.proves,
        item.claims.name,
        item.claims.picture,
        item.session_id,
        item.family_hash.as_slice(),
        item.token_hash.as_slice(),
        item.claims.client_id,
        item.origin.ip as _,
        item.origin.user_agent,
        item.device_name,
        item.device_platform,
        item.origin.request_id,
        seconds(ttl),
        Uuid::now_v7(),
        Uuid::now_v7(),
        name(item.decision.if_taken, "linked"),
        name(item.decision.if_free, "created"),
        item.decision.refuse_recycled,
        item.reported_name,
        item.claims.issued_at,
        item.key(),
        i32::from(MAX_IDENTITIES),
    )
    .fetch_one(database)
    .await?;
    let outcome = match row.outcome.as_str() {
        "created" => Outcome::Created,
        "linked" => Outcome::Linked,
        "signed_in" => Outcome::SignedIn,
        "raced" => return Err(Error::Raced(None)),
        refused => {
            return Ok(Err(refused
                .parse()
                .map_err(|_| Error::unexpected(refused))?));
        }
    };
    let user = row.user_id.zip(row.email_verified).zip(row.created_at);
    let ((id, email_verified), created_at) =
        user.ok_or_else(|| Error::unexpected("without a user"))?;
    let user = User {
        id,
        email: row.email,
        email_verified,
        name: row.name,
        picture: row.picture,
        created_at,
    };
    let identity = item.identity(row.identity_id, row.identity_email);
    Ok(Ok(SignedIn {
        outcome,
        user,
        identity,
        claims: custom(row.claims.as_deref())?,
    }))
}

/// Sets the user's own name; `None` restores the provider's. See `set_name.sql`. Returns `None` if
/// the session has ended, or the user is deleted or disabled.
pub async fn set_name(
    database: &Database,
    user: Uuid,
    session: Uuid,
    name: Option<&str>,
    origin: &Origin,
) -> Result<Option<User>, Error> {
    let row = sqlx::query_file_as!(
        User,
        "src/accounts/set_name.sql",
        user,
        session,
        name,
        SqlAuthor::from(origin) as SqlAuthor<'_>,
    );
    Ok(row.fetch_optional(database).await?)
}

pub(super) fn custom(claims: Option<&str>) -> Result<CustomClaims, Error> {
    CustomClaims::stored(claims).map_err(|error| Error::unexpected(&error.to_string()))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deletion {
    /// The user was deleted. These traces remain to be erased from events; see
    /// [`crate::events::erasure`].
    Done(Vec<String>),
    /// There is no such user, or, for staff, they have changed since the preview.
    NotFound,
    NotPermitted,
    Hijacked,
}

/// Deletes a user with all of their data; see `delete_user.sql`. The user's `updated_at` must still
/// equal `seen`, if given. If users delete themselves, their IP address and user agent are not
/// stored.
pub async fn delete(
    database: &Database,
    user: Uuid,
    seen: Option<OffsetDateTime>,
    author: Author<'_>,
) -> Result<Deletion, Error> {
    let session = author.session();
    let author = SqlAuthor::needing(Role::Admin, author);
    let row = sqlx::query_file!(
        "src/accounts/delete_user.sql",
        user,
        if session.is_some() {
            author.unlocated()
        } else {
            author
        } as SqlAuthor<'_>,
        seen,
        session,
    );
    let row = row.fetch_one(database).await?;
    if row.raced {
        return Err(Error::Raced(None));
    }
    Ok(match (row.deleted, row.permitted) {
        (true, _) => Deletion::Done(row.traces),
        _ if row.hijacked => Deletion::Hijacked,
        (false, true) if session.is_none() || !row.there => Deletion::NotFound,
        (false, _) => Deletion::NotPermitted,
    })
}
