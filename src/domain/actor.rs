//! The author of a change and the origin of a request, as events record them.

use uuid::Uuid;

use super::staff::Role;

/// The origin of a request, as sessions and events store it.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    pub ip: Option<std::net::IpAddr>,
    pub user_agent: Option<String>,
    pub request_id: String,
}

/// The author of a change: who makes it, why, and from where.
#[derive(Debug, Clone, Copy)]
pub struct Author<'a> {
    pub actor: Actor<'a>,
    pub reason: Option<&'a str>,
    pub origin: &'a Origin,
}

impl<'a> Author<'a> {
    /// Returns the user who makes the change in a session of their own.
    pub const fn user(session: Uuid, origin: &'a Origin) -> Self {
        Self {
            actor: Actor::User { session },
            reason: None,
            origin,
        }
    }

    /// Returns the session of the user who makes the change; `None` if another actor makes it.
    pub const fn session(self) -> Option<Uuid> {
        if let Actor::User { session } = self.actor {
            Some(session)
        } else {
            None
        }
    }

    /// An operator at the command line, who gives no reason.
    pub const COMMAND_LINE: Self = Self {
        actor: Actor::COMMAND_LINE,
        reason: None,
        origin: &Origin {
            ip: None,
            user_agent: None,
            request_id: String::new(),
        },
    };
}

#[derive(Debug, Clone, Copy)]
pub enum Actor<'a> {
    /// The user whom the change concerns.
    User { session: Uuid },
    /// A member of staff, by e-mail address.
    Staff(&'a str),
    /// An API key, by its name among actors: `key:<name>`. A later key may get the name, but not
    /// the id.
    ApiKey { name: &'a str, id: Uuid },
    /// An operator at the command line, by name.
    Operator(&'a str),
    /// An identity provider that reports a wish of the user's, by its name among actors:
    /// `provider:<name>`.
    Provider(&'a str),
}

impl<'a> Actor<'a> {
    /// Anyone with a shell on the server.
    pub const COMMAND_LINE: Self = Self::Operator("the command line");

    /// Returns the name in events; `None` for the user whom they concern.
    pub const fn name(self) -> Option<&'a str> {
        match self {
            Self::User { .. } => None,
            Self::Staff(name)
            | Self::ApiKey { name, .. }
            | Self::Operator(name)
            | Self::Provider(name) => Some(name),
        }
    }

    /// Returns true if an event's actor is a member of staff: the others' names contain no `@`.
    pub fn is_staff(name: &str) -> bool {
        name.contains('@')
    }

    pub fn is_provider(name: &str) -> bool {
        name.starts_with("provider:")
    }

    /// Returns the id of an API key.
    pub const fn key_id(self) -> Option<Uuid> {
        if let Self::ApiKey { id, .. } = self {
            Some(id)
        } else {
            None
        }
    }

    /// Returns the role that the statement has to check, or `None` for an author who has no role.
    pub fn needs(self, role: Role) -> Option<&'static str> {
        match self {
            Self::Staff(_) | Self::ApiKey { .. } => Some(role.into()),
            Self::User { .. } | Self::Operator(_) | Self::Provider(_) => None,
        }
    }
}
