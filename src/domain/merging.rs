//! Merges of users: what they are decided by, and what remains of two users.

use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

use super::custom_claims::CustomClaims;

/// A user at one moment, with everything that a change may concern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UserState {
    pub id: Uuid,
    /// The e-mail address.
    pub email: Option<String>,
    /// True if it is proven.
    pub email_verified: bool,
    /// True if the product's backend or an import vouches for it.
    pub email_vouched: bool,
    /// The display name.
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
    /// The user's identities, the oldest first.
    pub identities: Vec<LinkedIdentity>,
}

/// An identity of a [`UserState`].
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkedIdentity {
    pub id: Uuid,
    /// The name of the provider.
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
    /// True if it is suspended, and not for the account's deletion: somebody else may have it.
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
    #[must_use]
    pub fn identity(&self, id: Uuid) -> Option<&LinkedIdentity> {
        self.identities.iter().find(|identity| identity.id == id)
    }

    /// Returns true if the user's address stays verified when this identity goes.
    #[must_use]
    pub fn is_verified_without(&self, gone: &LinkedIdentity) -> bool {
        let proves = |identity: &LinkedIdentity| {
            identity.id != gone.id && identity.email_verified && self.has_address_of(identity)
        };
        self.email_vouched || self.email_verified && self.identities.iter().any(proves)
    }

    /// Returns true if the identity has the user's address.
    #[must_use]
    pub fn has_address_of(&self, identity: &LinkedIdentity) -> bool {
        let own = self.email.as_deref();
        identity.email.as_deref().zip(own).is_some_and(|(address, own)| address.eq_ignore_ascii_case(own))
    }

    /// Returns true if somebody else may have one of the user's accounts, as its provider has reported.
    #[must_use]
    pub fn is_hijacked(&self) -> bool {
        self.identities.iter().any(|identity| identity.hijacked)
    }

    /// Returns the number of active sessions.
    #[must_use]
    pub fn sessions(&self) -> i64 {
        self.identities.iter().map(|identity| identity.sessions).sum()
    }
}

/// The remaining user after a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The e-mail address: the user's own, otherwise the other's.
    pub email: Option<String>,
    /// True if it is proven.
    pub email_verified: bool,
    /// True if the product's backend or an import vouches for it.
    pub email_vouched: bool,
    /// The display name: the user's own, otherwise the other's.
    pub name: Option<String>,
    /// True if whoever had the name chose it.
    pub own_name: bool,
    /// The picture: the user's own, otherwise the other's.
    pub picture: Option<String>,
    /// The time since which the user is disabled. A merge enables no disabled user.
    pub disabled_at: Option<OffsetDateTime>,
    /// The user's own claims, and those of the other that are missing: a restriction does not end by a merge. They may be
    /// too long to be set.
    pub claims: CustomClaims,
}

/// Returns `into` after the merge of `from` into it.
#[must_use]
pub fn merged(from: &UserState, into: &UserState) -> Merged {
    let address = if into.email.is_some() { into } else { from };
    let named = if into.name.is_some() { into } else { from };
    let proves = |identity: &LinkedIdentity| identity.email_verified && address.has_address_of(identity);
    Merged {
        email: address.email.clone(),
        email_verified: address.email_verified || from.identities.iter().any(proves),
        email_vouched: address.email_vouched,
        name: named.name.clone(),
        own_name: named.own_name,
        picture: into.picture.clone().or_else(|| from.picture.clone()),
        disabled_at: into.disabled_at.or(from.disabled_at),
        claims: into.claims.with_missing(&from.claims),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(email: Option<&str>, email_verified: bool, name: Option<&str>) -> UserState {
        UserState {
            id: Uuid::max(),
            email: email.map(str::to_owned),
            email_verified,
            email_vouched: false,
            name: name.map(str::to_owned),
            own_name: name == Some("Grace"),
            picture: None,
            created_at: OffsetDateTime::UNIX_EPOCH,
            updated_at: OffsetDateTime::UNIX_EPOCH,
            disabled_at: None,
            claims: CustomClaims::default(),
            identities: Vec::new(),
        }
    }

    fn disabled(user: UserState) -> UserState {
        UserState { disabled_at: Some(user.updated_at), ..user }
    }

    #[test]
    fn whoever_remains_keeps_what_they_have_and_takes_what_they_lack() {
        let ada = user(Some("ada@example.com"), false, None);
        let grace = user(Some("grace@example.com"), true, Some("Grace"));
        let nobody = user(None, false, None);
        let address = |merged: Merged| (merged.email, merged.email_verified);
        assert_eq!(address(merged(&grace, &ada)), (Some("ada@example.com".into()), false));
        assert_eq!(address(merged(&grace, &nobody)), (Some("grace@example.com".into()), true));
        assert_eq!(address(merged(&ada, &nobody)), (Some("ada@example.com".into()), false));
        assert_eq!(address(merged(&nobody, &nobody)), (None, false));
        let ida = user(None, false, Some("Ida"));
        let name = |merged: Merged| (merged.name, merged.own_name);
        assert_eq!(name(merged(&grace, &ada)), (Some("Grace".into()), true));
        assert_eq!(name(merged(&ada, &grace)), (Some("Grace".into()), true));
        assert_eq!(name(merged(&grace, &ida)), (Some("Ida".into()), false));
        assert_eq!(name(merged(&ada, &nobody)), (None, false));
    }

    #[test]
    fn whoever_remains_has_their_own_claims_and_those_that_only_the_other_has() {
        let with = |claims: &str| UserState {
            claims: CustomClaims::parse(claims).unwrap(),
            ..user(None, false, None)
        };
        let claims = |from: &str, into: &str| merged(&with(from), &with(into)).claims;
        let both =
            claims(r#"{"roles":["admin"],"restricted":true,"none":null}"#, r#"{"roles":[],"level":2}"#);
        let expected = r#"{"level":2,"none":null,"restricted":true,"roles":[]}"#;
        assert_eq!(both, CustomClaims::parse(expected).unwrap());
        assert_eq!(claims("{}", r#"{"level":2}"#).json(), r#"{"level":2}"#);
        let [a, b, another] =
            ["a", "b", "another"].map(|name| format!(r#"{{"{name}":"{}"}}"#, "x".repeat(490)));
        for (from, into, too_long) in [(&a, &b, false), (&a, &a, false), (&a, &another, true)] {
            assert_eq!(claims(from, into).is_too_long(), too_long, "{into}");
        }
    }

    #[test]
    fn whoever_is_merged_with_somebody_disabled_is_disabled() {
        let (ada, grace) = (user(None, false, None), disabled(user(None, false, None)));
        for (from, into, expected) in
            [(&ada, &ada, false), (&ada, &grace, true), (&grace, &ada, true), (&grace, &grace, true)]
        {
            assert_eq!(merged(from, into).disabled_at.is_some(), expected);
        }
    }
}
