//! What staff switch about a user, with nothing to show beforehand.

use sqlx::PgPool;
use uuid::Uuid;

use super::{Error, Outcome, retrying};
use crate::domain::look_after::Refused;
use crate::domain::staff::Role;
use crate::store::directory::{self, Acted};
use crate::store::staff_access::By;

/// Something that staff can do to a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Refuse sign-ins and end what is open.
    Disable,
    /// Take that back.
    Enable,
    /// End all sessions.
    EndSessions,
}

impl Action {
    /// The action of that name, as it stands in addresses.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Disable, Self::Enable, Self::EndSessions].into_iter().find(|action| action.name() == name)
    }

    /// Its name in addresses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Enable => "enable",
            Self::EndSessions => "end-sessions",
        }
    }

    /// The role that may do it.
    const fn role(self) -> Role {
        match self {
            Self::Disable | Self::Enable => Role::Admin,
            Self::EndSessions => Role::Support,
        }
    }

    /// Its name in events.
    const fn event(self) -> &'static str {
        match self {
            Self::Disable => "user_disabled",
            Self::Enable => "user_enabled",
            Self::EndSessions => "sessions_ended",
        }
    }

    /// What there is to say when it is done.
    #[must_use]
    pub const fn done(self) -> &'static str {
        match self {
            Self::Disable => "The user is disabled and signed out everywhere.",
            Self::Enable => "The user may sign in again.",
            Self::EndSessions => "The user is signed out everywhere.",
        }
    }
}

/// Does it, and records who did and why.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn act(pool: &PgPool, user: Uuid, action: Action, by: By<'_>) -> Result<Outcome, Error> {
    retrying!(directory::act(pool, user, action.event(), action.role(), by)).map(|acted| match acted {
        Acted::Done => Outcome::Done,
        Acted::NotFound => Outcome::NotFound,
        Acted::NotPermitted => Outcome::NotPermitted,
        Acted::OwnAccount => Outcome::Refused(Refused::OwnAccount),
    })
}
