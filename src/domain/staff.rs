//! Staff: people who look after the users, and what they may do.

use std::fmt;

/// What a member of staff may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Read, and end sessions.
    Support,
    /// Everything.
    Admin,
}

impl Role {
    /// The name in commands, in the database and on pages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Support => "support",
            Self::Admin => "admin",
        }
    }

    /// The role of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Support, Self::Admin].into_iter().find(|role| role.name() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
