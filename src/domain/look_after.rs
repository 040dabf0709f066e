//! What staff change about people, decided before it is done: the page that shows a change beforehand and the
//! change itself go by the same decision. No part of it reads or writes anything.

use time::OffsetDateTime;
use uuid::Uuid;

use super::user::{Identity, User};

/// A user as of one moment, with all that a change may concern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The user.
    pub user: User,
    /// When the user or the set of their identities last changed.
    pub updated_at: OffsetDateTime,
    /// When the user was disabled.
    pub disabled_at: Option<OffsetDateTime>,
    /// What they sign in with, the oldest first.
    pub identities: Vec<LinkedIdentity>,
}

/// An identity of a [`Person`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedIdentity {
    /// The identity.
    pub identity: Identity,
    /// Sessions that were opened with it and are alive.
    pub sessions: i64,
}

impl Person {
    /// Key of the user.
    #[must_use]
    pub const fn id(&self) -> Uuid {
        self.user.id
    }

    /// The identity of that key, if it is theirs.
    #[must_use]
    pub fn identity(&self, id: Uuid) -> Option<&LinkedIdentity> {
        self.identities.iter().find(|linked| linked.identity.id == id)
    }

    /// Sessions that are alive.
    #[must_use]
    pub fn sessions(&self) -> i64 {
        self.identities.iter().map(|linked| linked.sessions).sum()
    }

    /// Whether this is the member of staff with that address. An address that nobody proved is anybody's.
    fn is(&self, actor: &str) -> bool {
        self.user.email_verified && self.user.email.as_deref() == Some(actor)
    }
}

/// Why a change is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It would delete or disable the account of whoever asks for it.
    OwnAccount,
    /// Nobody could sign in to the account any more.
    LastIdentity,
}

/// What the remaining user is like after a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// Address: their own, else the other's.
    pub email: Option<String>,
    /// Whether a provider has vouched for it.
    pub email_verified: bool,
    /// Display name: their own, else the other's.
    pub name: Option<String>,
    /// Picture: their own, else the other's.
    pub picture: Option<String>,
    /// Since when they are disabled: a merge lets nobody back in.
    pub disabled_at: Option<OffsetDateTime>,
}

/// Merging `from` into `into`: all identities become `into`'s, and `from` is no more.
///
/// # Errors
/// [`Refused::OwnAccount`], where `from` is the actor's, or the actor's would be disabled.
pub fn merge(from: &Person, into: &Person, actor: &str) -> Result<Merged, Refused> {
    let disables = into.disabled_at.is_none() && from.disabled_at.is_some();
    if from.is(actor) || (disables && into.is(actor)) {
        return Err(Refused::OwnAccount);
    }
    let address = if into.user.email.is_some() { &into.user } else { &from.user };
    Ok(Merged {
        email: address.email.clone(),
        email_verified: address.email_verified,
        name: into.user.name.clone().or_else(|| from.user.name.clone()),
        picture: into.user.picture.clone().or_else(|| from.user.picture.clone()),
        disabled_at: into.disabled_at.or(from.disabled_at),
    })
}

/// Unlinking one of a user's identities.
///
/// # Errors
/// [`Refused::LastIdentity`], where it is the last and there is no verified address to come back by.
pub fn unlink(person: &Person) -> Result<(), Refused> {
    let way_back = person.identities.len() > 1 || person.user.email_verified;
    if way_back { Ok(()) } else { Err(Refused::LastIdentity) }
}

/// Deleting a user.
///
/// # Errors
/// [`Refused::OwnAccount`], where it is the actor's.
pub fn delete(person: &Person, actor: &str) -> Result<(), Refused> {
    if person.is(actor) { Err(Refused::OwnAccount) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(email: Option<&str>, email_verified: bool, name: Option<&str>) -> Person {
        let epoch = OffsetDateTime::UNIX_EPOCH;
        let user = User {
            id: Uuid::now_v7(),
            email: email.map(str::to_owned),
            email_verified,
            name: name.map(str::to_owned),
            picture: None,
            created_at: epoch,
        };
        Person { user, updated_at: epoch, disabled_at: None, identities: Vec::new() }
    }

    fn disabled(person: Person) -> Person {
        Person { disabled_at: Some(person.updated_at), ..person }
    }

    #[test]
    fn whoever_remains_keeps_what_they_have_and_takes_what_they_lack() {
        let ada = person(Some("ada@example.com"), false, None);
        let grace = person(Some("grace@example.com"), true, Some("Grace"));
        let nobody = person(None, false, None);
        let address = |merged: Merged| (merged.email, merged.email_verified);
        let merged = |from, into| merge(from, into, "staff@example.com").unwrap();
        assert_eq!(address(merged(&grace, &ada)), (Some("ada@example.com".into()), false));
        assert_eq!(address(merged(&grace, &nobody)), (Some("grace@example.com".into()), true));
        assert_eq!(address(merged(&ada, &nobody)), (Some("ada@example.com".into()), false));
        assert_eq!(address(merged(&nobody, &nobody)), (None, false));
        assert_eq!(merged(&grace, &ada).name.as_deref(), Some("Grace"));
        assert_eq!(merged(&ada, &grace).name.as_deref(), Some("Grace"));
    }

    #[test]
    fn whoever_is_merged_with_somebody_disabled_is_disabled() {
        let (ada, grace) = (person(None, false, None), disabled(person(None, false, None)));
        for (from, into, expected) in
            [(&ada, &ada, false), (&ada, &grace, true), (&grace, &ada, true), (&grace, &grace, true)]
        {
            let merged = merge(from, into, "staff@example.com").unwrap();
            assert_eq!(merged.disabled_at.is_some(), expected);
        }
    }

    #[test]
    fn nobody_deletes_or_disables_themselves() {
        let (me, other) =
            (person(Some("me@example.com"), true, None), person(Some("x@example.com"), true, None));
        let refused = Err(Refused::OwnAccount);
        assert_eq!(delete(&me, "me@example.com"), refused);
        assert_eq!(delete(&other, "me@example.com"), Ok(()));
        assert_eq!(merge(&me, &other, "me@example.com").map(drop), refused);
        assert_eq!(merge(&other, &me, "me@example.com").map(drop), Ok(()));
        assert_eq!(merge(&disabled(other.clone()), &me, "me@example.com").map(drop), refused);
        assert_eq!(merge(&disabled(other), &disabled(me), "me@example.com").map(drop), Ok(()));
        let stranger = person(Some("me@example.com"), false, None);
        assert_eq!(delete(&stranger, "me@example.com"), Ok(()), "who never proved the address is not me");
    }

    #[test]
    fn the_last_identity_goes_only_where_an_address_leads_back() {
        let identity = |provider: &str| LinkedIdentity {
            identity: Identity {
                id: Uuid::now_v7(),
                provider: provider.into(),
                subject: "s".into(),
                email: None,
            },
            sessions: 2,
        };
        for (email, verified, identities, expected) in [
            (Some("ada@example.com"), true, 1, Ok(())),
            (Some("ada@example.com"), false, 1, Err(Refused::LastIdentity)),
            (None, false, 1, Err(Refused::LastIdentity)),
            (None, false, 2, Ok(())),
        ] {
            let identities: Vec<_> = (0..identities).map(|_| identity("idp")).collect();
            let person = Person { identities, ..person(email, verified, None) };
            assert_eq!(unlink(&person), expected, "{email:?} {verified} {}", person.identities.len());
        }
    }
}
