//! The author of a change and the origin of the request, as one parameter of the statement that
//! makes the change: `author_allowed` in the migrations checks the author, and `event_row` returns
//! the event.

use std::net::IpAddr;

use sqlx::postgres::{PgTypeInfo, Postgres};
use uuid::Uuid;

use crate::domain::{Author, Origin, Role};

/// An [`Author`] with the role that the change needs: PostgreSQL's composite type `author`.
#[derive(Debug, Clone, Copy, sqlx::Encode)]
pub struct SqlAuthor<'a> {
    actor: Option<&'a str>,
    reason: Option<&'a str>,
    ip: Option<IpAddr>,
    user_agent: Option<&'a str>,
    request_id: &'a str,
    needs: Option<&'static str>,
    key_id: Option<Uuid>,
}

impl<'a> SqlAuthor<'a> {
    /// Returns the author without IP address and user agent.
    pub fn unlocated(self) -> Self {
        Self {
            ip: None,
            user_agent: None,
            ..self
        }
    }

    /// Returns the author of a change for which a member of staff or an API key needs `role`.
    pub fn needing(role: Role, by: Author<'a>) -> Self {
        let actor = by.actor.name();
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
impl<'a> From<&'a Origin> for SqlAuthor<'a> {
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

impl sqlx::Type<Postgres> for SqlAuthor<'_> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("author")
    }
}
