//! Decisions about changes that staff make to users. The preview of a change and the change itself use the
//! same decision. Nothing here reads or writes stored data.

use time::OffsetDateTime;
use uuid::Uuid;

use crate::domain::user::{Identity, User};

/// A user at one moment, with everything that a change may concern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The user.
    pub user: User,
    /// The time of the latest change to the user or the set of identities.
    pub updated_at: OffsetDateTime,
    /// The time at which the user was disabled.
    pub disabled_at: Option<OffsetDateTime>,
    /// The user's identities, the oldest first.
    pub identities: Vec<LinkedIdentity>,
}

/// An identity of a [`Person`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedIdentity {
    /// The identity.
    pub identity: Identity,
    /// The number of active sessions that were opened with it.
    pub sessions: i64,
}

impl Person {
    /// Returns the user's id.
    #[must_use]
    pub const fn id(&self) -> Uuid {
        self.user.id
    }

    /// Returns the user's identity with that id.
    #[must_use]
    pub fn identity(&self, id: Uuid) -> Option<&LinkedIdentity> {
        self.identities.iter().find(|linked| linked.identity.id == id)
    }

    /// Returns the number of active sessions.
    #[must_use]
    pub fn sessions(&self) -> i64 {
        self.identities.iter().map(|linked| linked.sessions).sum()
    }

    /// Returns true if this user is the member of staff with that e-mail address. An unverified address
    /// proves nothing.
    fn is(&self, actor: &str) -> bool {
        self.user.email_verified && self.user.email.as_deref() == Some(actor)
    }
}

/// The reason why a change is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The change would delete or disable the actor's own account.
    OwnAccount,
    /// No sign-in could reach the account any more.
    LastIdentity,
}

/// The remaining user after a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The e-mail address: the user's own, otherwise the other's.
    pub email: Option<String>,
    /// True if a provider has verified it.
    pub email_verified: bool,
    /// The display name: the user's own, otherwise the other's.
    pub name: Option<String>,
    /// The picture: the user's own, otherwise the other's.
    pub picture: Option<String>,
    /// The time since which the user is disabled. A merge enables no disabled user.
    pub disabled_at: Option<OffsetDateTime>,
}

/// Merges `from` into `into`: all identities move to `into`, and `from` is deleted.
///
/// # Errors
/// [`Refused::OwnAccount`], if `from` is the actor's account, or the actor's account would be disabled.
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

/// Checks that one of the user's identities may be unlinked.
///
/// # Errors
/// [`Refused::LastIdentity`], if it is the last one and the user has no verified e-mail address to sign in
/// by.
pub fn unlink(person: &Person) -> Result<(), Refused> {
    let way_back = person.identities.len() > 1 || person.user.email_verified;
    if way_back { Ok(()) } else { Err(Refused::LastIdentity) }
}

/// Checks that a user may be deleted.
///
/// # Errors
/// [`Refused::OwnAccount`], if it is the actor's account.
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
