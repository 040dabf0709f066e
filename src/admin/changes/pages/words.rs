//! The sentences that describe a change in its preview.

use crate::admin::changes::decision::{LinkedIdentity, Person, Refused};
use crate::admin::person::isolated;

pub(super) const OWN_ACCOUNT: &str = "This is your own account: it has your address, verified. Nobody deletes or disables \
                                      themselves here. Ask another admin.";
const LAST_IDENTITY: &str = "It is the last identity, and no verified e-mail address leads back: nobody could sign in to this \
                             user any more. Move it to the user whose it is, merge the two, or delete this one.";
pub(super) const NOTHING_PERSONAL: &str =
    "The reason is kept after everything else is gone: write nothing personal into it.";

pub(in crate::admin) const fn refused(why: Refused) -> &'static str {
    match why {
        Refused::OwnAccount => OWN_ACCOUNT,
        Refused::LastIdentity => LAST_IDENTITY,
    }
}

/// Returns the user's e-mail address or name, or else the id.
pub(super) fn name(person: &Person) -> String {
    let user = &person.user;
    let own = user.email.as_deref().or(user.name.as_deref()).map(isolated);
    own.unwrap_or_else(|| format!("the user {}", user.id))
}

pub(super) fn identity(linked: &LinkedIdentity) -> String {
    let identity = &linked.identity;
    called(&identity.provider, &identity.subject, identity.email.as_deref())
}

/// Describes an identity.
pub(super) fn called(provider: &str, subject: &str, email: Option<&str>) -> String {
    let email = email.map(|email| format!(" ({email})")).unwrap_or_default();
    format!("the {provider} identity {subject}{email}")
}

/// Describes the sessions that end: `which` is for example "of Ada" or "opened with it".
pub(super) fn ending(count: i64, which: &str) -> String {
    let after = "Services that only check signatures take an access token until it expires.";
    match count {
        0 => format!("No session {which} is open, so nobody is signed out."),
        1 => format!("1 session {which} ends: whoever uses it has to sign in again. {after}"),
        _ => format!("{count} sessions {which} end: whoever uses them has to sign in again. {after}"),
    }
}

/// Warns that the owner of an unverified e-mail address gets the user without the identities linked before.
pub(super) fn unproven(person: &Person) -> Option<String> {
    let address = person.user.email.as_ref().filter(|_| !person.user.email_verified)?;
    Some(format!(
        "The address {address} was never verified. Whoever proves later that it is theirs gets this user, and every \
         identity that was linked before is removed."
    ))
}

/// Capitalises a leading "the". A leading name keeps its spelling.
pub(super) fn sentence(text: &str) -> String {
    text.strip_prefix("the ").map_or_else(|| text.to_owned(), |rest| format!("The {rest}"))
}
