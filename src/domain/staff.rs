//! Staff: the people who administer users, and their permissions.

use std::fmt;

/// The permissions of a member of staff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// May read, and end sessions.
    Support,
    /// May do everything.
    Admin,
}

impl Role {
    /// Returns the name in commands, in the database and on pages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Support => "support",
            Self::Admin => "admin",
        }
    }

    /// Returns the role of that name.
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
