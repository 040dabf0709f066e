//! The author of a change and the origin of the request, as one parameter of the statement that
//! makes the change: `author_allowed` in the migrations checks the author, and `event_row` returns
//! the event.

use std::net::IpAddr;

use sqlx::postgres::{PgTypeInfo, Postgres};
use uuid::Uuid;

use crate::domain::{By, Origin, Role};

/// The requester of a change to a user.
#[derive(Debug, Clone, Copy)]
pub enum Asking<'a> {
    /// The user, in that session.
    User(Uuid, &'a Origin),
    /// An admin, an API key, an operator or a provider.
    Staff(By<'a>),
}

impl<'a> Asking<'a> {
    pub fn author(self) -> Author<'a> {
        match self {
            Self::User(_, origin) => origin.into(),
            Self::Staff(by) => Author::needing(Role::Admin, by),
        }
    }

    pub const fn session(self) -> Option<Uuid> {
        if let Self::User(session, _) = self {
            Some(session)
        } else {
            None
        }
    }
}

#[derive(Debug, Clone, Copy, sqlx::Encode)]
pub struct Author<'a> {
    actor: Option<&'a str>,
    reason: Option<&'a str>,
    ip: Option<IpAddr>,
    user_agent: Option<&'a str>,
    request_id: &'a str,
    needs: Option<&'static str>,
    key_id: Option<Uuid>,
}

impl<'a> Author<'a> {
    /// Returns the author without IP address and user agent.
    pub fn unlocated(self) -> Self {
        Self {
            ip: None,
            user_agent: None,
            ..self
        }
    }

    /// Returns the author of a change for which a member of staff or an API key needs `role`.
    pub fn needing(role: Role, by: By<'a>) -> Self {
        let actor = Some(by.actor.name());
        let needs = by.actor.needs(role);
        Self {
            actor,
            reason: by.reason,
            needs,
            key_id: by.actor.key_id(),
            ..by.origin.into()
        }
    }
}

/// The user, at that origin.
impl<'a> From<&'a Origin> for Author<'a> {
    fn from(origin: &'a Origin) -> Self {
        let Origin {
            ip,
            user_agent,
            request_id,
        } = origin;
        Self {
            actor: None,
            reason: None,
            ip: *ip,
            user_agent: user_agent.as_deref(),
            request_id,
            needs: None,
            key_id: None,
        }
    }
}

impl sqlx::Type<Postgres> for Author<'_> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("author")
    }
}
