//! Staff: the people who administer users, and their permissions.

use strum::{Display, EnumString, IntoStaticStr, VariantNames};
use time::OffsetDateTime;

/// The permissions of a member of staff. Commands, the database and pages use the same names.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Display,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// May read, and end sessions. Exports need a right of their own.
    Support,
    /// May do everything.
    Admin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    pub role: Role,
    /// The right to export users and events. Every admin has it.
    pub may_export: bool,
    /// The time at which access ends by itself.
    pub ends_at: Option<OffsetDateTime>,
}

impl Access {
    pub fn exports(&self) -> bool {
        self.may_export || self.role == Role::Admin
    }
}

impl From<Role> for Access {
    /// Returns access with no right but the role's, without an end.
    fn from(role: Role) -> Self {
        Self {
            role,
            may_export: false,
            ends_at: None,
        }
    }
}
