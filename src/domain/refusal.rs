//! Why a sign-in was refused: the closed list that errors, events and pages share.

use std::fmt;

/// A refusal that is the caller's to mend. Each has one name on the wire, in events and in logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// The user is disabled.
    UserDisabled,
    /// The identity is unknown and the caller asked not to create a user.
    UserNotFound,
    /// Another subject of the same provider holds the address, and the provider recycles addresses.
    IdentityConflict,
    /// Somebody has the address; it takes a session of theirs to link this identity.
    LinkRequired,
    /// The provider does not vouch for the address.
    EmailNotVerified,
    /// The provider gave no usable address and is configured to need one.
    EmailMissing,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 12] = [
        Self::InvalidToken,
        Self::TokenExpired,
        Self::IssuerMismatch,
        Self::AudienceMismatch,
        Self::NonceMismatch,
        Self::DomainNotAllowed,
        Self::UserDisabled,
        Self::UserNotFound,
        Self::IdentityConflict,
        Self::LinkRequired,
        Self::EmailNotVerified,
        Self::EmailMissing,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidToken => "invalid_token",
            Self::TokenExpired => "token_expired",
            Self::IssuerMismatch => "issuer_mismatch",
            Self::AudienceMismatch => "audience_mismatch",
            Self::NonceMismatch => "nonce_mismatch",
            Self::DomainNotAllowed => "domain_not_allowed",
            Self::UserDisabled => "user_disabled",
            Self::UserNotFound => "user_not_found",
            Self::IdentityConflict => "identity_conflict",
            Self::LinkRequired => "link_required",
            Self::EmailNotVerified => "email_not_verified",
            Self::EmailMissing => "email_missing",
        }
    }

    /// The reason of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A reason, and the check that failed in words that give nothing away.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {detail}")]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// The check that failed. Never holds a value taken from the token.
    pub detail: &'static str,
    /// What was received, and what to do about it, for the log alone.
    pub log: Option<String>,
}

/// Returns the beginning of a text that somebody may have written who knows that it ends up in a log.
pub(super) fn visible(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    text.chars().map(|c| if c == ' ' || c.is_ascii_graphic() { c } else { '?' }).take(MAX_CHARS).collect()
}

impl Refusal {
    /// A refusal for that reason.
    #[must_use]
    pub const fn new(reason: Reason, detail: &'static str) -> Self {
        Self { reason, detail, log: None }
    }

    /// The same, with what only the log may know.
    #[must_use]
    pub fn logged(self, log: String) -> Self {
        Self { log: Some(log), ..self }
    }
}
