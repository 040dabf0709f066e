//! Users and their identities, as they are stored and returned, and the result of a merge of two
//! users.

use std::ops::Deref;

use serde::Serialize;
use time::{Date, OffsetDateTime};
use utoipa::ToSchema;
use uuid::Uuid;

use super::custom_claims::CustomClaims;

/// The most identities that a user may have. Statements read all identities of a user, so each
/// further one slows down others.
pub const MAX_IDENTITIES: u16 = 20;

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct User {
    /// The user's id, which is the `sub` of access tokens and is never reused. Other services
    /// should store only this id.
    pub id: Uuid,
    /// The e-mail address in lower case, unique among users; `null` without one.
    #[schema(required = true, example = "ada@example.com")]
    pub email: Option<String>,
    /// True if a provider, an import or a backend has verified the e-mail address.
    #[schema(example = true)]
    pub email_verified: bool,
    /// The name to be shown: the user's own word, or the name at the provider.
    #[schema(required = true, example = "Ada Lovelace")]
    pub name: Option<String>,
    /// The URL of a picture.
    #[schema(required = true)]
    pub picture: Option<String>,
    /// The time of the first sign-in.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// The identity that signed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SignedInIdentity)]
pub struct Identity {
    /// The identity's id.
    pub id: Uuid,
    /// The provider's name, as in the path.
    pub provider: String,
    /// The token's `sub`.
    pub subject: String,
    /// The token's e-mail address, as the provider spells it.
    #[schema(required = true)]
    pub email: Option<String>,
}

/// A user at one moment, as staff and the product's backend see them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UserState {
    #[serde(flatten)]
    pub user: User,
    /// True if a backend or an import vouches for the e-mail address.
    pub email_vouched: bool,
    /// True if the user has chosen the name, so that no provider overwrites it.
    pub own_name: bool,
    /// The time of the latest change to the user or the set of identities.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
    /// The time at which the user was disabled; `null` if they may sign in.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required = true)]
    pub disabled_at: Option<OffsetDateTime>,
    /// The claims in the user's access tokens that a backend has set.
    #[schema(value_type = Object)]
    pub claims: CustomClaims,
    /// The day of the latest sign-in or refresh.
    #[serde(skip)]
    pub last_seen_on: Option<Date>,
    /// The number of notes that staff have written.
    #[serde(skip)]
    pub notes: i64,
    /// The user's identities, oldest first.
    pub identities: Vec<LinkedIdentity>,
}

/// An account at an identity provider that is linked to a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = IdentityRecord)]
pub struct LinkedIdentity {
    /// The identity's id.
    pub id: Uuid,
    /// The provider's name, as in the path of the sign-in.
    #[schema(example = "google")]
    pub provider: String,
    /// The account's `sub` at the provider.
    #[schema(example = "110169484474386276334")]
    pub subject: String,
    /// The account's e-mail address at the last sign-in.
    #[schema(required = true, example = "ada@example.com")]
    pub email: Option<String>,
    /// True if the identity proves that address.
    #[schema(example = true)]
    pub email_verified: bool,
    /// The time at which the identity was linked.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// The time since which the identity cannot sign in, because its provider reported the account
    /// hijacked, disabled or deleted, or because it may be a hijacker's; `null` if it may sign in.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required = true)]
    pub suspended_at: Option<OffsetDateTime>,
    /// The provider's reason for that, or `held` if it may be a hijacker's.
    #[schema(required = true)]
    pub suspended_reason: Option<String>,
    /// True if it may be a hijacker's.
    pub held: bool,
    /// True if it is suspended for another reason than the account's deletion: another person may
    /// control it.
    #[serde(skip)]
    pub hijacked: bool,
    /// The time before which its tokens must not have been issued.
    #[serde(skip)]
    pub tokens_from: Option<OffsetDateTime>,
    /// The number of active sessions that were opened with it.
    #[serde(skip)]
    pub sessions: i64,
}

impl Deref for UserState {
    type Target = User;

    fn deref(&self) -> &User {
        &self.user
    }
}

impl UserState {
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

    pub fn has_address_of(&self, identity: &LinkedIdentity) -> bool {
        let own = self.email.as_deref();
        identity
            .email
            .as_deref()
            .zip(own)
            .is_some_and(|(address, own)| address.eq_ignore_ascii_case(own))
    }

    /// Returns true if another person may control one of the user's accounts, as its provider has
    /// reported.
    pub fn is_hijacked(&self) -> bool {
        self.identities.iter().any(|identity| identity.hijacked)
    }

    /// Returns true if the user has more than [`MAX_IDENTITIES`].
    pub fn has_too_many_identities(&self) -> bool {
        self.identities.len() > usize::from(MAX_IDENTITIES)
    }

    /// Returns the number of active sessions.
    pub fn sessions(&self) -> i64 {
        self.identities
            .iter()
            .map(|identity| identity.sessions)
            .sum()
    }
}

/// Returns `into` after the merge of `from` into it: with its own data, and `from`'s where its own
/// is missing. A restriction does not end by a merge: `into` gets the claims that it lacks, which
/// may make them too long to be set, and is disabled if either was.
pub fn merged(from: &UserState, into: &UserState) -> UserState {
    let address = if into.email.is_some() { into } else { from };
    let named = if into.name.is_some() { into } else { from };
    let proves =
        |identity: &LinkedIdentity| identity.email_verified && address.has_address_of(identity);
    let is_proven = from.identities.iter().chain(&into.identities).any(proves);
    let user = User {
        email: address.email.clone(),
        email_verified: address.email_verified || is_proven,
        name: named.name.clone(),
        picture: into.picture.clone().or_else(|| from.picture.clone()),
        ..into.user.clone()
    };
    UserState {
        user,
        email_vouched: address.email_vouched && !is_proven,
        own_name: named.own_name,
        disabled_at: into.disabled_at.or(from.disabled_at),
        claims: into.claims.with_missing(&from.claims),
        last_seen_on: into.last_seen_on.max(from.last_seen_on),
        notes: into.notes + from.notes,
        identities: [&into.identities[..], &from.identities].concat(),
        ..*into
    }
}
