//! The reasons why a sign-in is refused, and the reasons why a session is over: the closed lists
//! that errors, events and pages share.

use serde::Serialize;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// A refusal that the client can act on. Each has one name in responses, events and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Reason {
    /// The `id_token` is malformed, unsigned, refused by the provider, or lacks a required claim.
    InvalidToken,
    /// `exp` has passed (OpenID Connect Core §3.1.3.7, 9).
    TokenExpired,
    /// `iss` is not this provider's (OpenID Connect Core §3.1.3.7, 2).
    IssuerMismatch,
    /// `aud` or `azp` names an application that is not configured (§3.1.3.7, 3 to 5).
    AudienceMismatch,
    /// `nonce` is missing on one side or differs (§3.1.3.7, 11).
    NonceMismatch,
    /// The account's hosted domain is not an allowed one.
    DomainNotAllowed,
    UserDisabled,
    /// The provider has reported the identity's account hijacked, disabled or deleted, or it may be
    /// a hijacker's.
    IdentitySuspended,
    /// The identity is unknown and the caller asked not to create a user.
    UserNotFound,
    /// Another subject of the same provider has the e-mail address, and the provider recycles
    /// addresses.
    IdentityConflict,
    /// Another user has the e-mail address; linking this identity takes a session of that user.
    LinkRequired,
    /// The user with the e-mail address has as many identities as a user may have.
    TooManyIdentities,
    /// The provider has not verified the e-mail address.
    EmailNotVerified,
    /// The provider gave no usable e-mail address, and its settings require one.
    EmailMissing,
}

/// A reason, with the check that failed in words that reveal nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {detail}")]
pub struct Refusal {
    pub reason: Reason,
    /// The check that failed. It never holds a value taken from the token.
    pub detail: &'static str,
    /// The received value and the remedy, for the log alone.
    pub log: Option<String>,
    /// True if the provider had vouched for the token. Anyone can invent other tokens.
    pub vouched: bool,
}

/// Returns the beginning of an untrusted text in a form that is safe in a log.
pub(super) fn visible(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    text.chars()
        .map(|c| {
            if c == ' ' || c.is_ascii_graphic() {
                c
            } else {
                '?'
            }
        })
        .take(MAX_CHARS)
        .collect()
}

impl Refusal {
    pub const fn new(reason: Reason, detail: &'static str) -> Self {
        Self {
            reason,
            detail,
            log: None,
            vouched: false,
        }
    }

    pub fn logged(self, log: String) -> Self {
        Self {
            log: Some(log),
            ..self
        }
    }

    /// Returns the same refusal of a token that the provider had vouched for.
    pub fn vouched(self) -> Self {
        Self {
            vouched: true,
            ..self
        }
    }
}

/// The reason why a session is over, for a caller whose token proves that the session was theirs.
/// Responses use the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Display, EnumString, IntoStaticStr)]
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
            Self::RefreshTokenReused => {
                "the refresh token was used before, so the session has now ended"
            }
        }
    }
}
