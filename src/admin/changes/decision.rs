//! Decisions about changes that staff make to users. The preview of a change and the change itself use the
//! same decision. Nothing here reads or writes stored data.

use super::{Change, Loaded};
use crate::domain::{UserState, merged};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    OwnAccount,
    /// No sign-in could reach the account any more.
    LastIdentity,
    /// The claims of both users take more room than a user's claims may.
    ClaimsTooLong,
}

pub fn refusal(change: &Loaded, actor: &str) -> Option<Refused> {
    let own_account = match change {
        Change::Delete { user } | Change::Disable { user } => is(user, actor),
        Change::Merge { from, into } if merged(from, into).claims.is_too_long() => {
            return Some(Refused::ClaimsTooLong);
        }
        Change::Merge { from, into } => {
            let disables = into.disabled_at.is_none() && from.disabled_at.is_some();
            is(from, actor) || (disables && is(into, actor))
        }
        Change::Unlink { user, .. } => {
            let reachable = user.identities.len() > 1 || user.email_vouched;
            return (!reachable).then_some(Refused::LastIdentity);
        }
        Change::Move { .. }
        | Change::Release { .. }
        | Change::Enable { .. }
        | Change::EndSessions { .. }
        | Change::EndSession { .. } => false,
    };
    own_account.then_some(Refused::OwnAccount)
}

/// Returns true if this user is the member of staff with that e-mail address. An unverified address
/// proves nothing.
fn is(user: &UserState, actor: &str) -> bool {
    user.email_verified && user.email.as_deref() == Some(actor)
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;
    use uuid::Uuid;

    use super::*;
    use crate::domain::custom_claims::CustomClaims;
    use crate::domain::merging::LinkedIdentity;

    fn user(email: Option<&str>, email_verified: bool) -> UserState {
        UserState {
            id: Uuid::max(),
            email: email.map(str::to_owned),
            email_verified,
            email_vouched: false,
            name: None,
            own_name: false,
            picture: None,
            created_at: OffsetDateTime::UNIX_EPOCH,
            updated_at: OffsetDateTime::UNIX_EPOCH,
            disabled_at: None,
            claims: CustomClaims::default(),
            last_seen_on: None,
            notes: 0,
            identities: Vec::new(),
        }
    }

    fn disabled(user: UserState) -> UserState {
        UserState { disabled_at: Some(user.updated_at), ..user }
    }

    #[test]
    fn nobody_deletes_or_disables_themselves() {
        let (me, other) = (user(Some("me@example.com"), true), user(Some("x@example.com"), true));
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
        let stranger = user(Some("me@example.com"), false);
        assert_eq!(
            refusal(Change::Delete { user: stranger }),
            None,
            "who never proved the address is not me"
        );
    }

    #[test]
    fn the_last_identity_goes_only_where_an_address_leads_back() {
        let identity = LinkedIdentity {
            id: Uuid::max(),
            provider: "idp".into(),
            subject: "ada".into(),
            email: Some("ada@example.com".into()),
            email_verified: true,
            created_at: OffsetDateTime::UNIX_EPOCH,
            suspended_at: None,
            suspended_reason: None,
            held: false,
            hijacked: false,
            tokens_from: None,
            sessions: 2,
        };
        for (email, vouched, identities, expected) in [
            (Some("ada@example.com"), true, 1, None),
            (Some("ada@example.com"), false, 1, Some(Refused::LastIdentity)),
            (None, false, 1, Some(Refused::LastIdentity)),
            (None, false, 2, None),
        ] {
            let user = UserState {
                identities: vec![identity.clone(); identities],
                email_vouched: vouched,
                ..user(email, true)
            };
            let change = Change::Unlink { identity: identity.clone(), user };
            assert_eq!(refusal(&change, "staff@example.com"), expected, "{email:?} {vouched} {identities}");
        }
    }
}
