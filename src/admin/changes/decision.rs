//! Decisions about changes that staff make to users. The preview of a change and the change itself
//! use the same decision. Nothing here reads or writes stored data.

use super::{Change, Loaded};
use crate::domain::user::MAX_IDENTITIES;
use crate::domain::{Actor, UserState, merged};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    OwnAccount,
    /// No sign-in could reach the account any more.
    LastIdentity,
    /// The claims of both users take more room than a user's claims may.
    ClaimsTooLong,
    /// The user would have more identities than a user may have.
    TooManyIdentities,
}

pub fn refusal(change: &Loaded, actor: Actor<'_>) -> Option<Refused> {
    let own_account = match change {
        Change::Delete { user } | Change::Disable { user } => is(user, actor),
        Change::Merge { from, into } if merged(from, into).claims.is_too_long() => {
            return Some(Refused::ClaimsTooLong);
        }
        Change::Merge { from, into } if merged(from, into).has_too_many_identities() => {
            return Some(Refused::TooManyIdentities);
        }
        Change::Merge { from, into } => {
            let disables = into.disabled_at.is_none() && from.disabled_at.is_some();
            is(from, actor) || (disables && is(into, actor))
        }
        Change::Unlink { user, .. } => {
            let reachable = user.identities.len() > 1 || user.email_vouched;
            return (!reachable).then_some(Refused::LastIdentity);
        }
        Change::Move { to, .. } => {
            let full = to.identities.len() >= usize::from(MAX_IDENTITIES);
            return full.then_some(Refused::TooManyIdentities);
        }
        Change::Release { .. }
        | Change::Enable { .. }
        | Change::EndSessions { .. }
        | Change::EndSession { .. } => false,
    };
    own_account.then_some(Refused::OwnAccount)
}

/// Returns true if this user is the member of staff with that e-mail address. An unverified address
/// proves nothing.
fn is(user: &UserState, actor: Actor<'_>) -> bool {
    let own = || user.email.as_deref().zip(actor.name());
    user.email_verified && own().is_some_and(|(email, name)| email == name)
}
