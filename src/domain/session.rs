//! Sessions.

use serde::Serialize;

/// The reason why a session is over, for a caller whose token proves that the session was theirs. The names are those on
/// the wire.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::Display, strum::EnumString, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum EndReason {
    UserDisabled,
    UserDeleted,
    UserMerged,
    /// The session was not used for too long, or is too old.
    SessionExpired,
    /// The session was ended, or the identity that it was opened with was unlinked or moved.
    SessionEnded,
    /// A refresh token was used a second time, and that ended the session.
    RefreshTokenReused,
}

impl EndReason {
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::UserDisabled => "the user is disabled",
            Self::UserDeleted => "the user was deleted",
            Self::UserMerged => "the user was merged into another one",
            Self::SessionExpired => "the session was not used for too long, or is too old",
            Self::SessionEnded => "the session has ended",
            Self::RefreshTokenReused => "the refresh token was used before, so the session has now ended",
        }
    }
}
