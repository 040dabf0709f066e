//! Changes that users make to their own account: they name themselves, link and unlink identities,
//! merge another account into it, or delete it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use time::OffsetDateTime;
use uuid::Uuid;

pub use crate::accounts::identities::{Linked, Unlinked};
use crate::accounts::merging::Merge;
pub use crate::accounts::users::Deletion;
use crate::accounts::{identities, merging, users};
use crate::config;
use crate::database::{Attempt, Database, Error};
use crate::domain::{
    Author, CustomClaims, LinkedIdentity, Origin, User, UserState, VerifiedClaims, merged,
};
use crate::events::erasure;

/// Sets the user's own name; `None` restores the provider's. Returns `None` if the session has
/// ended.
pub async fn set_name(
    database: &Database,
    user: Uuid,
    session: Uuid,
    name: Option<&str>,
    origin: &Origin,
) -> Result<Option<User>, Error> {
    database
        .run_on(user, |_| {
            users::set_name(database, user, session, name, origin)
        })
        .await
}

pub async fn link(
    database: &Database,
    user: Uuid,
    session: Uuid,
    provider: &config::Provider,
    claims: &VerifiedClaims,
    origin: &Origin,
) -> Result<Linked, Error> {
    let proves = provider.policy.proves(claims);
    let link = || {
        identities::link(
            database,
            user,
            session,
            &provider.name,
            claims,
            proves,
            origin,
        )
    };
    database.run_on(user, |_| link()).await
}

/// A user's request for a merge. The user has proven to own both accounts.
#[derive(Debug, Clone, Copy)]
pub struct MergeRequest<'a> {
    /// The user who asks, and who remains.
    pub user: Uuid,
    pub session: Uuid,
    /// The provider of an identity of the other user.
    pub provider: &'a str,
    pub subject: &'a str,
    /// `iat` of the token that proves the other account.
    pub issued_at: OffsetDateTime,
    /// True for a preview, which changes nothing.
    pub dry_run: bool,
    pub origin: &'a Origin,
}

/// Two users as they were before their merge, which was made or only previewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merging {
    /// The user who is deleted by the merge.
    pub from: UserState,
    /// The user who remains.
    pub into: UserState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotMerged {
    Unknown,
    Own,
    Disabled,
    Suspended,
    Outdated,
    ClaimsTooLong,
    TooManyIdentities,
    NoUser,
}

impl Merging {
    /// Returns the remaining user after the merge, and their claims.
    pub fn remaining(&self) -> (User, CustomClaims) {
        let merged = merged(&self.from, &self.into);
        (merged.user, merged.claims)
    }
}

/// Merges the user who has an identity into the user of a session, or shows what that would change.
pub async fn merge(
    database: &Database,
    request: MergeRequest<'_>,
) -> Result<Result<Merging, NotMerged>, Error> {
    let perhaps_done = Mutex::default();
    database
        .run_on(request.user, |_| {
            merge_once(database, request, &perhaps_done)
        })
        .await
}

/// Merges the users once. If one of them has changed meanwhile, it does nothing and returns
/// [`Error::Raced`], so that the caller retries. If the connection breaks, the merge may have been
/// made: `perhaps_done` keeps its result for the next attempt.
async fn merge_once(
    database: &Database,
    request: MergeRequest<'_>,
    perhaps_done: &Mutex<Option<Merging>>,
) -> Result<Result<Merging, NotMerged>, Error> {
    let MergeRequest {
        user,
        session,
        provider,
        subject,
        issued_at,
        dry_run,
        origin,
    } = request;
    let owner = identities::owner(database, provider, subject).await?;
    if owner == Some(user) {
        return Ok(lock(perhaps_done).take().ok_or(NotMerged::Own));
    }
    let ids: Vec<_> = owner.into_iter().chain([user]).collect();
    let mut users = merging::users(database, &ids).await?;
    let mut take = |id| {
        users
            .iter()
            .position(|user| user.id == id)
            .map(|at| users.swap_remove(at))
    };
    let Some(into) = take(user).filter(|into| into.disabled_at.is_none()) else {
        return Ok(Err(NotMerged::NoUser));
    };
    let Some(owner) = owner else {
        return Ok(Err(NotMerged::Unknown));
    };
    let proven =
        |identity: &&LinkedIdentity| identity.provider == provider && identity.subject == subject;
    let from = take(owner).ok_or(Error::Raced(None))?;
    let identity = from
        .identities
        .iter()
        .find(proven)
        .ok_or(Error::Raced(None))?;
    let suspended = identity.suspended_at.is_some();
    let tokens_from = identity.tokens_from;
    if from.disabled_at.is_some() {
        return Ok(Err(NotMerged::Disabled));
    }
    // Otherwise a hijacker would get the other user's data, or hide from the provider's report
    // behind the other user.
    if suspended || from.is_hijacked() || into.is_hijacked() {
        return Ok(Err(NotMerged::Suspended));
    }
    if tokens_from.is_some_and(|from| issued_at < from) {
        return Ok(Err(NotMerged::Outdated));
    }
    if merged(&from, &into).claims.is_too_long() {
        return Ok(Err(NotMerged::ClaimsTooLong));
    }
    if merged(&from, &into).has_too_many_identities() {
        return Ok(Err(NotMerged::TooManyIdentities));
    }
    if dry_run {
        return Ok(Ok(Merging { from, into }));
    }
    match merging::merge(database, &from, &into, Author::user(session, origin)).await {
        Ok(Merge::Done) => Ok(Ok(Merging { from, into })),
        Ok(Merge::Stale) => Err(Error::Raced(None)),
        Ok(Merge::NotPermitted) => Ok(Err(NotMerged::NoUser)),
        Err(error) => {
            if matches!(error, Error::Disconnected(_)) {
                *lock(perhaps_done) = Some(Merging { from, into });
            }
            Err(error)
        }
    }
}

fn lock(perhaps_done: &Mutex<Option<Merging>>) -> MutexGuard<'_, Option<Merging>> {
    perhaps_done.lock().unwrap_or_else(PoisonError::into_inner)
}

pub async fn unlink(
    database: &Database,
    user: Uuid,
    session: Uuid,
    identity: Uuid,
    origin: &Origin,
) -> Result<Unlinked, Error> {
    let unlink = |attempt: Attempt| async move {
        let author = Author::user(session, origin);
        Ok(
            match identities::unlink(database, user, identity, None, author).await? {
                Unlinked::NotFound | Unlinked::Over { linked: false } if attempt.perhaps_done => {
                    Unlinked::Done
                }
                unlinked => unlinked,
            },
        )
    };
    database.run_on(user, unlink).await
}

/// Deletes the user of a session with all of their data, and erases their traces from events; if
/// there are many, the pruner erases the rest. Returns [`Deletion::NotFound`] or
/// [`Deletion::NotPermitted`] if the session has ended, or the user was disabled, deleted or
/// merged, since the request was authenticated.
pub async fn delete(
    database: &Database,
    user: Uuid,
    session: Uuid,
    origin: &Origin,
) -> Result<Deletion, Error> {
    let delete = |attempt: Attempt| async move {
        let author = Author::user(session, origin);
        Ok(match users::delete(database, user, None, author).await? {
            Deletion::NotFound if attempt.perhaps_done => Deletion::Done(Vec::new()),
            deletion => deletion,
        })
    };
    let deletion = database.run(delete).await?;
    if let Deletion::Done(traces) = &deletion {
        erasure::begin(database, traces).await;
    }
    Ok(deletion)
}
