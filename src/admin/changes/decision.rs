//! Decisions about changes that staff make to users. The preview of a change and the change itself use the
//! same decision. Nothing here reads or writes stored data.

use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Change, Loaded};

/// A user at one moment, with everything that a change may concern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UserState {
    /// The user's id.
    pub id: Uuid,
    /// The e-mail address.
    pub email: Option<String>,
    /// True if a provider has verified it.
    pub email_verified: bool,
    /// The display name.
    pub name: Option<String>,
    /// The URL of a picture.
    pub picture: Option<String>,
    /// The time at which the user was created.
    pub created_at: OffsetDateTime,
    /// The time of the latest change to the user or the set of identities.
    pub updated_at: OffsetDateTime,
    /// The time at which the user was disabled.
    pub disabled_at: Option<OffsetDateTime>,
    /// The claims that the product's backend has set, as JSON.
    pub claims: Option<String>,
    /// The user's identities, the oldest first.
    pub identities: Vec<LinkedIdentity>,
}

/// An identity of a [`UserState`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkedIdentity {
    /// The id of the identity.
    pub id: Uuid,
    /// The name of the provider.
    pub provider: String,
    /// `sub` at that provider.
    pub subject: String,
    /// The provider's latest e-mail address for it.
    pub email: Option<String>,
    /// True if its provider has reported the account hijacked, disabled or deleted.
    pub suspended: bool,
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

    /// Returns the number of active sessions.
    #[must_use]
    pub fn sessions(&self) -> i64 {
        self.identities.iter().map(|identity| identity.sessions).sum()
    }

    /// Returns true if this user is the member of staff with that e-mail address. An unverified address
    /// proves nothing.
    fn is(&self, actor: &str) -> bool {
        self.email_verified && self.email.as_deref() == Some(actor)
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

/// Returns the reason why the actor must not make the change.
#[must_use]
pub fn refusal(change: &Loaded, actor: &str) -> Option<Refused> {
    let own_account = match change {
        Change::Delete { user } | Change::Disable { user } => user.is(actor),
        Change::Merge { from, into } => {
            let disables = into.disabled_at.is_none() && from.disabled_at.is_some();
            from.is(actor) || (disables && into.is(actor))
        }
        Change::Unlink { user, .. } => {
            let reachable = user.identities.len() > 1 || user.email_verified;
            return (!reachable).then_some(Refused::LastIdentity);
        }
        Change::Move { .. }
        | Change::Enable { .. }
        | Change::EndSessions { .. }
        | Change::EndSession { .. } => false,
    };
    own_account.then_some(Refused::OwnAccount)
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

/// Returns `into` after the merge of `from` into it.
#[must_use]
pub fn merged(from: &UserState, into: &UserState) -> Merged {
    let address = if into.email.is_some() { into } else { from };
    Merged {
        email: address.email.clone(),
        email_verified: address.email_verified,
        name: into.name.clone().or_else(|| from.name.clone()),
        picture: into.picture.clone().or_else(|| from.picture.clone()),
        disabled_at: into.disabled_at.or(from.disabled_at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::samples;

    fn user(email: Option<&str>, email_verified: bool, name: Option<&str>) -> UserState {
        let (email, name) = (email.map(str::to_owned), name.map(str::to_owned));
        UserState { email, email_verified, name, ..samples::user_without_data() }
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
        assert_eq!(merged(&grace, &ada).name.as_deref(), Some("Grace"));
        assert_eq!(merged(&ada, &grace).name.as_deref(), Some("Grace"));
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

    #[test]
    fn nobody_deletes_or_disables_themselves() {
        let (me, other) = (user(Some("me@example.com"), true, None), user(Some("x@example.com"), true, None));
        let refusal = |change: Loaded| refusal(&change, "me@example.com");
        let merge =
            |from: &UserState, into: &UserState| Change::Merge { from: from.clone(), into: into.clone() };
        let refused = Some(Refused::OwnAccount);
        for (user, expected) in [(&me, refused), (&other, None)] {
            assert_eq!(refusal(Change::Delete { user: user.clone() }), expected);
            assert_eq!(refusal(Change::Disable { user: user.clone() }), expected);
            assert_eq!(refusal(Change::Enable { user: user.clone() }), None);
            assert_eq!(refusal(Change::EndSessions { user: user.clone() }), None);
        }
        assert_eq!(refusal(merge(&me, &other)), refused);
        assert_eq!(refusal(merge(&other, &me)), None);
        assert_eq!(refusal(merge(&disabled(other.clone()), &me)), refused);
        assert_eq!(refusal(merge(&disabled(other), &disabled(me))), None);
        let stranger = user(Some("me@example.com"), false, None);
        assert_eq!(
            refusal(Change::Delete { user: stranger }),
            None,
            "who never proved the address is not me"
        );
    }

    #[test]
    fn the_last_identity_goes_only_where_an_address_leads_back() {
        let identity = samples::user(false).identities.remove(0);
        for (email, verified, identities, expected) in [
            (Some("ada@example.com"), true, 1, None),
            (Some("ada@example.com"), false, 1, Some(Refused::LastIdentity)),
            (None, false, 1, Some(Refused::LastIdentity)),
            (None, false, 2, None),
        ] {
            let user =
                UserState { identities: vec![identity.clone(); identities], ..user(email, verified, None) };
            let change = Change::Unlink { identity: identity.clone(), user };
            assert_eq!(refusal(&change, "staff@example.com"), expected, "{email:?} {verified} {identities}");
        }
    }
}
