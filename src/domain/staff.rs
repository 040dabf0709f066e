//! Staff: the people who administer users, and their permissions.

use strum::{Display, EnumString, IntoStaticStr, VariantNames};

/// The permissions of a member of staff. The names are those in commands, in the database and on pages.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display, EnumString, IntoStaticStr, VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// May read, and end sessions.
    Support,
    /// May do everything.
    Admin,
}
