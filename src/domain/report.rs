//! The content of a message from any provider.

use strum::IntoStaticStr;

use crate::domain::printable;
use crate::domain::text::is_blank;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The id of the message (`jti`), unique at its provider.
    pub id: String,
    /// The time of the event, in seconds since the epoch.
    pub at: i64,
    pub events: Vec<Event>,
}

impl Report {
    /// Returns the report without events about no account, such as a verification.
    pub fn about_accounts(&self) -> Self {
        let events = self
            .events
            .iter()
            .filter(|event| event.subject.is_some())
            .cloned();
        Self {
            id: self.id.clone(),
            at: self.at,
            events: events.collect(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub kind: EventKind,
    /// The account that it is about. `None` for a verification, and for a subject that no identity
    /// has, such as a single token.
    pub subject: Option<Subject>,
    /// The provider's reason, such as `hijacking`: at most 100 visible characters.
    pub reason: Option<String>,
    /// An e-mail address in the event.
    pub email: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Subject(String),
    /// By its e-mail address.
    Email(String),
}

/// The kind of an event, as events and webhook messages name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum EventKind {
    /// Its sessions at the provider have ended.
    SessionsRevoked,
    /// The tokens that it gave to this app are revoked.
    TokensRevoked,
    /// It was disabled, perhaps because it was hijacked.
    AccountDisabled,
    AccountEnabled,
    /// It was deleted for good.
    AccountPurged,
    CredentialChange,
    /// Its e-mail address or telephone number was changed.
    IdentifierChanged,
    /// E-mail no longer reaches its owner by the relay address.
    EmailDisabled,
    /// E-mail reaches its owner again.
    EmailEnabled,
    /// Its owner no longer uses it for this app.
    ConsentRevoked,
    AccountDeleted,
    /// Its owner has removed this app.
    Deauthorized,
    /// A test of the connection.
    Verification,
}

/// Returns a provider's word as it may be stored and shown: its first 100 visible characters.
pub fn word(text: &str) -> Option<String> {
    const MAX_CHARS: usize = 100;
    let word = printable(text, MAX_CHARS);
    Some(word.trim().to_owned()).filter(|word| !is_blank(word))
}

/// The effect of an event on its identity.
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
    const NONE: Self = Self {
        ends_sessions: false,
        suspends: None,
        recycles_address: false,
    };
    const ENDS: Self = Self {
        ends_sessions: true,
        ..Self::NONE
    };
    const SUSPENDS: Self = Self {
        suspends: Some(true),
        ..Self::ENDS
    };
    const LIFTS: Self = Self {
        suspends: Some(false),
        ..Self::NONE
    };
    const RECYCLES: Self = Self {
        recycles_address: true,
        ..Self::NONE
    };

    /// Decides as Google's documentation of Cross-Account Protection and the RISC and CAEP profiles
    /// ask.
    #[expect(
        clippy::match_same_arms,
        reason = "the first arms are exceptions with reasons of their own"
    )]
    pub fn of(event: &Event) -> Self {
        match (event.kind, event.reason.as_deref()) {
            // One of many accounts that were opened by a machine: staff decide.
            (EventKind::AccountDisabled, Some("bulk-account")) => Self::NONE,
            (
                EventKind::AccountDisabled | EventKind::AccountPurged | EventKind::AccountDeleted,
                _,
            ) => Self::SUSPENDS,
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
