//! The content of a message from any provider.

use strum::IntoStaticStr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The id of the message (`jti`), unique at its provider.
    pub id: String,
    /// The time of the event, in seconds since the epoch.
    pub at: i64,
    pub events: Vec<Event>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub kind: EventKind,
    /// The account that it is about. `None` for a verification, and for what no identity has, such as a single token.
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

/// What has happened to an account, by its name in events and webhook messages.
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
    let word: String = text.chars().filter(|c| !c.is_control()).take(MAX_CHARS).collect();
    Some(word.trim().to_owned()).filter(|word| !word.is_empty())
}
