//! The types of webhook messages.

use strum::{Display, EnumMessage, EnumString, IntoStaticStr, VariantArray, VariantNames};

/// A type of message. Settings, the database and the messages use the same names. The API's
/// description contains each comment: its first sentence is the title.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Display,
    EnumMessage,
    EnumString,
    IntoStaticStr,
    VariantArray,
    VariantNames,
)]
pub enum MessageType {
    /// A user was created. By a first sign-in or by the admin API. Imports send no message.
    #[strum(serialize = "user.created")]
    UserCreated,
    /// A user has changed. The e-mail address, its verification, the name, the picture or the
    /// claims.
    #[strum(serialize = "user.updated")]
    UserUpdated,
    /// A user was disabled. All their sessions have ended.
    #[strum(serialize = "user.disabled")]
    UserDisabled,
    /// A user was enabled. They may sign in again.
    #[strum(serialize = "user.enabled")]
    UserEnabled,
    /// A user was deleted. By themselves, by staff, by an operator, by the admin API, or at a
    /// provider's request. Delete what you know of them.
    #[strum(serialize = "user.deleted")]
    UserDeleted,
    /// Two users were merged into one. `from` no longer exists; its identities belong to `into`.
    /// Move what belongs to `from` to `into`.
    #[strum(serialize = "user.merged")]
    UserMerged,
    /// An identity was linked. The user can sign in with a further account.
    #[strum(serialize = "identity.linked")]
    IdentityLinked,
    /// An identity was unlinked. The user can no longer sign in with it. Its sessions have ended.
    #[strum(serialize = "identity.unlinked")]
    IdentityUnlinked,
    /// An identity was moved to another user. It now signs in the user `to`. Its sessions have
    /// ended.
    #[strum(serialize = "identity.moved")]
    IdentityMoved,
    /// An identity is held. It cannot sign in: the hijacker of another account of the user may have
    /// linked it.
    #[strum(serialize = "identity.held")]
    IdentityHeld,
    /// A held identity was released. The user can sign in with it again, unless its provider has
    /// reported it, too.
    #[strum(serialize = "identity.released")]
    IdentityReleased,
    /// Sessions have ended. By a sign-out, by staff or by the admin API. Access tokens that were
    /// issued before stay valid until they expire.
    #[strum(serialize = "sessions.ended")]
    SessionsEnded,
    /// A refresh token was used twice. It may have been stolen. The session has ended.
    #[strum(serialize = "security.refresh_token_replayed")]
    RefreshTokenReplayed,
    /// An identity provider has reported something about an account. Such as that it was hijacked,
    /// disabled or deleted. `sessions_ended` sessions have ended because of it.
    #[strum(serialize = "security.provider_event")]
    ProviderEvent,
}
