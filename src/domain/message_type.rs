//! The types of webhook messages.

use strum::{Display, EnumString, IntoStaticStr, VariantArray, VariantNames};

/// A type of message. The names are those in settings, in the database and on the wire.
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
    VariantArray,
    VariantNames,
)]
pub enum MessageType {
    #[strum(serialize = "user.created")]
    UserCreated,
    #[strum(serialize = "user.updated")]
    UserUpdated,
    #[strum(serialize = "user.disabled")]
    UserDisabled,
    #[strum(serialize = "user.enabled")]
    UserEnabled,
    #[strum(serialize = "user.deleted")]
    UserDeleted,
    #[strum(serialize = "user.merged")]
    UserMerged,
    #[strum(serialize = "identity.linked")]
    IdentityLinked,
    #[strum(serialize = "identity.unlinked")]
    IdentityUnlinked,
    #[strum(serialize = "identity.moved")]
    IdentityMoved,
    #[strum(serialize = "sessions.ended")]
    SessionsEnded,
    #[strum(serialize = "security.refresh_token_replayed")]
    RefreshTokenReplayed,
    #[strum(serialize = "security.provider_event")]
    ProviderEvent,
}
