//! What an event does to the identity that it is about.

use super::report::{Event, EventKind};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effect {
    /// True if the sessions that were opened before it end.
    pub ends_sessions: bool,
    /// True if the identity must not sign in from now on, and false if it may again.
    pub suspends: Option<bool>,
    /// True if the account's e-mail address belongs to another person from now on.
    pub recycles_address: bool,
}

impl Effect {
    const NONE: Self = Self { ends_sessions: false, suspends: None, recycles_address: false };
    const ENDS: Self = Self { ends_sessions: true, ..Self::NONE };
    const SUSPENDS: Self = Self { suspends: Some(true), ..Self::ENDS };
    const LIFTS: Self = Self { suspends: Some(false), ..Self::NONE };
    const RECYCLES: Self = Self { recycles_address: true, ..Self::NONE };

    /// Decides as Google's documentation of Cross-Account Protection and the RISC and CAEP profiles ask.
    #[expect(clippy::match_same_arms, reason = "the first arms are exceptions with reasons of their own")]
    pub fn of(event: &Event) -> Self {
        match (event.kind, event.reason.as_deref()) {
            // One of many accounts that were opened by a machine: staff decide.
            (EventKind::AccountDisabled, Some("bulk-account")) => Self::NONE,
            (EventKind::AccountDisabled | EventKind::AccountPurged | EventKind::AccountDeleted, _) => {
                Self::SUSPENDS
            }
            (EventKind::AccountEnabled, _) => Self::LIFTS,
            // A further passkey, for example.
            (EventKind::CredentialChange, Some("create")) => Self::NONE,
            (EventKind::IdentifierChanged, Some("recycled")) => Self::RECYCLES,
            (
                EventKind::SessionsRevoked
                | EventKind::TokensRevoked
                | EventKind::CredentialChange
                | EventKind::ConsentRevoked
                | EventKind::Deauthorized,
                _,
            ) => Self::ENDS,
            (
                EventKind::IdentifierChanged
                | EventKind::EmailDisabled
                | EventKind::EmailEnabled
                | EventKind::Verification,
                _,
            ) => Self::NONE,
        }
    }
}
