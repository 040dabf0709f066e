//! Actions of staff on a user, without a preview.

use sqlx::PgPool;
use uuid::Uuid;

use super::{Error, Outcome, retrying};
use crate::admin::changes::decision::Refused;
use crate::admin::person::store::{self as person, Acted};
use crate::domain::actor::By;
use crate::domain::staff::Role;

/// An action of staff on a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Refuses sign-ins, and ends all sessions.
    Disable,
    /// Permits sign-ins again.
    Enable,
    /// Ends all sessions.
    EndSessions,
}

impl Action {
    /// Returns the action of that name in URLs.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Disable, Self::Enable, Self::EndSessions].into_iter().find(|action| action.name() == name)
    }

    /// Returns the name in URLs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Enable => "enable",
            Self::EndSessions => "end-sessions",
        }
    }

    /// Returns the role that the action needs.
    const fn role(self) -> Role {
        match self {
            Self::Disable | Self::Enable => Role::Admin,
            Self::EndSessions => Role::Support,
        }
    }

    /// Returns the name in events.
    const fn event(self) -> &'static str {
        match self {
            Self::Disable => "user_disabled",
            Self::Enable => "user_enabled",
            Self::EndSessions => "sessions_ended",
        }
    }

    /// Returns the message after the action.
    #[must_use]
    pub const fn done(self) -> &'static str {
        match self {
            Self::Disable => "The user is disabled and signed out everywhere.",
            Self::Enable => "The user may sign in again.",
            Self::EndSessions => "The user is signed out everywhere.",
        }
    }
}

/// Takes the action, and records it with author and reason.
///
/// # Errors
/// Nothing was written; see [`Error`].
pub async fn act(pool: &PgPool, user: Uuid, action: Action, by: By<'_>) -> Result<Outcome, Error> {
    retrying!(person::act(pool, user, action.event(), action.role(), by)).map(|acted| match acted {
        Acted::Done => Outcome::Done,
        Acted::NotFound => Outcome::NotFound,
        Acted::NotPermitted => Outcome::NotPermitted,
        Acted::OwnAccount => Outcome::Refused(Refused::OwnAccount),
    })
}
