//! Merges of users: what they are decided by, and what remains of two users.

use serde::Serialize;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use super::custom_claims::CustomClaims;

/// A user at one moment, with everything that a change may concern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UserState {
    pub id: Uuid,
    pub email: Option<String>,
    /// True if it is proven.
    pub email_verified: bool,
    /// True if the product's backend or an import vouches for it.
    pub email_vouched: bool,
    pub name: Option<String>,
    /// True if the name is the user's own word.
    pub own_name: bool,
    /// The URL of a picture.
    pub picture: Option<String>,
    pub created_at: OffsetDateTime,
    /// The time of the latest change to the user or the set of identities.
    pub updated_at: OffsetDateTime,
    pub disabled_at: Option<OffsetDateTime>,
    /// The claims that the product's backend has set.
    pub claims: CustomClaims,
    /// The day of the latest sign-in or refresh.
    #[serde(skip)]
    pub last_seen_on: Option<Date>,
    /// The number of notes that staff have written.
    #[serde(skip)]
    pub notes: i64,
    /// The user's identities, the oldest first.
    pub identities: Vec<LinkedIdentity>,
}

/// An identity of a [`UserState`].
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkedIdentity {
    pub id: Uuid,
    pub provider: String,
    /// `sub` at that provider.
    pub subject: String,
    /// The provider's latest e-mail address for it.
    pub email: Option<String>,
    /// True if it proves that address.
    pub email_verified: bool,
    /// True if its provider has reported the account hijacked, disabled or deleted, or a hijacker may have linked it.
    pub suspended: bool,
    /// True if a hijacker may have linked it.
    pub held: bool,
    /// True if it is suspended for another reason than the account's deletion: another person may control it.
    #[serde(skip)]
    pub hijacked: bool,
    /// The time before which its tokens must not have been issued.
    #[serde(skip)]
    pub tokens_from: Option<OffsetDateTime>,
    /// The number of active sessions that were opened with it.
    #[serde(skip)]
    pub sessions: i64,
}

impl UserState {
    /// Returns the user's identity with that id.
    pub fn identity(&self, id: Uuid) -> Option<&LinkedIdentity> {
        self.identities.iter().find(|identity| identity.id == id)
    }

    /// Returns true if the user's address stays verified when this identity goes.
    pub fn is_verified_without(&self, gone: &LinkedIdentity) -> bool {
        let proves = |identity: &LinkedIdentity| {
            identity.id != gone.id && identity.email_verified && self.has_address_of(identity)
        };
        self.email_vouched || self.email_verified && self.identities.iter().any(proves)
    }

    /// Returns true if the identity has the user's address.
    pub fn has_address_of(&self, identity: &LinkedIdentity) -> bool {
        let own = self.email.as_deref();
        identity.email.as_deref().zip(own).is_some_and(|(address, own)| address.eq_ignore_ascii_case(own))
    }

    /// Returns true if another person may control one of the user's accounts, as its provider has reported.
    pub fn is_hijacked(&self) -> bool {
        self.identities.iter().any(|identity| identity.hijacked)
    }

    /// Returns the number of active sessions.
    pub fn sessions(&self) -> i64 {
        self.identities.iter().map(|identity| identity.sessions).sum()
    }
}

/// Returns `into` after the merge of `from` into it: what it has itself, and otherwise what `from` has. A restriction does
/// not end by a merge: `into` gets the claims that it lacks, which may make them too long to be set, and is disabled if
/// either was.
pub fn merged(from: &UserState, into: &UserState) -> UserState {
    let address = if into.email.is_some() { into } else { from };
    let named = if into.name.is_some() { into } else { from };
    let proves = |identity: &LinkedIdentity| identity.email_verified && address.has_address_of(identity);
    UserState {
        email: address.email.clone(),
        email_verified: address.email_verified || from.identities.iter().chain(&into.identities).any(proves),
        email_vouched: address.email_vouched,
        name: named.name.clone(),
        own_name: named.own_name,
        picture: into.picture.clone().or_else(|| from.picture.clone()),
        disabled_at: into.disabled_at.or(from.disabled_at),
        claims: into.claims.with_missing(&from.claims),
        last_seen_on: into.last_seen_on.max(from.last_seen_on),
        notes: into.notes + from.notes,
        identities: [&into.identities[..], &from.identities].concat(),
        ..*into
    }
}
