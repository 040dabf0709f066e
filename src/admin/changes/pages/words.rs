//! The sentences of the pages, for each change.

use crate::admin::changes::decision::{LinkedIdentity, Refused, UserState};
use crate::admin::changes::{Change, Loaded};
use crate::admin::person::isolated;

pub(super) const MERGE: &str = "Merge two users";
pub(super) const MERGE_LEAD: &str =
    "Where one person has become two users. Find the other one, and choose which of them stays.";
pub(super) const MOVE: &str = "Move an identity";
const OWN_ACCOUNT: &str = "This is your own account: it has your address, verified. Nobody deletes or disables \
                                      themselves here. Ask another admin.";
const LAST_IDENTITY: &str = "It is the last identity, and no verified e-mail address leads back: nobody could sign in to this \
                             user any more. Move it to the user whose it is, merge the two, or delete this one.";
pub(super) const NOTHING_PERSONAL: &str =
    "The reason is kept after everything else is gone: write nothing personal into it.";

pub(super) fn move_lead(identity: &str, name: &str) -> String {
    sentence(&format!("{identity} is linked to {name}. Find the user whose it is."))
}

pub(super) const fn refused(why: Refused) -> &'static str {
    match why {
        Refused::OwnAccount => OWN_ACCOUNT,
        Refused::LastIdentity => LAST_IDENTITY,
    }
}

/// Returns the message after the change of that name.
pub(in crate::admin) fn done(change: &str) -> Option<&'static str> {
    match change {
        "merge" => Some("The users are one. Everything the other one signed in with is this one's now."),
        "move" => Some("The identity is this user's now."),
        "unlink" => Some("The identity is unlinked."),
        "disable" => Some("The user is disabled and signed out everywhere."),
        "enable" => Some("The user may sign in again."),
        "end-sessions" => Some("The user is signed out everywhere."),
        _ => None,
    }
}

/// The effects of a change, in sentences.
#[derive(Default)]
pub(super) struct Effects {
    pub changes: Vec<String>,
    pub warnings: Vec<String>,
}

/// Describes a change. Those without a preview are described on the user's page.
pub(super) fn effects(change: &Loaded) -> Effects {
    let mut effects = Effects::default();
    match change {
        Change::Delete { user } => delete(&mut effects, user),
        Change::Merge { from, into } => merge(&mut effects, from, into),
        Change::Move { identity, from, to } => move_identity(&mut effects, identity, from, to),
        Change::Unlink { identity, user } => unlink(&mut effects, identity, user),
        Change::Disable { .. } | Change::Enable { .. } | Change::EndSessions { .. } => {}
    }
    effects
}

impl Effects {
    fn change(&mut self, text: impl AsRef<str>) {
        self.changes.push(sentence(text.as_ref()));
    }

    fn warn(&mut self, text: impl AsRef<str>) {
        self.warnings.push(sentence(text.as_ref()));
    }

    /// Warns that the owner of an unverified e-mail address gets the user without the identities linked before.
    fn warn_if_unproven(&mut self, user: &UserState) {
        if let Some(address) = user.email.as_ref().filter(|_| !user.email_verified) {
            self.warn(format!(
                "The address {address} was never verified. Whoever proves later that it is theirs gets this user, and \
                 every identity that was linked before is removed."
            ));
        }
    }
}

fn delete(effects: &mut Effects, user: &UserState) {
    let who = name(user);
    effects.change(format!("{who} is removed for good: address, name, picture and all that follows."));
    for linked in &user.identities {
        let identity = identity(linked);
        effects.change(format!("{identity} is unlinked. Whoever signs in with it afterwards is a new user."));
    }
    effects.change(ending(user.sessions(), &format!("of {who}")));
    effects.change(
        "The audit keeps what happened, and when, without addresses, places and devices. It keeps this deletion with \
         your address and reason.",
    );
    effects.warn("It cannot be undone.");
    if user.disabled_at.is_some() {
        effects.warn(format!(
            "{who} is disabled, which goes with them: the same person may come back as a new user."
        ));
    }
}

fn merge(effects: &mut Effects, from: &UserState, into: &UserState) {
    let (goes, stays) = (name(from), name(into));
    for linked in &from.identities {
        effects.change(format!("{} signs in as {stays} from now on.", identity(linked)));
    }
    if from.identities.is_empty() {
        effects.change(format!("{goes} has no identity, so nobody gains a way to sign in."));
    }
    effects.change(ending(from.sessions(), &format!("of {goes}")));
    match (&into.email, &from.email) {
        (None, Some(address)) => {
            let verified = if from.email_verified { "verified" } else { "not verified" };
            effects.change(format!("{stays} takes the address {address}, {verified}."));
        }
        (Some(kept), Some(lost)) => effects.change(format!(
            "The address stays {kept}. {lost} is no user's address any more: an unknown identity that has it makes a \
             new user."
        )),
        _ => {}
    }
    for (what, own, theirs) in [("name", &into.name, &from.name), ("picture", &into.picture, &from.picture)] {
        match (own.as_deref().map(isolated), theirs.as_deref().map(isolated)) {
            (None, Some(taken)) => effects.change(format!("{stays} takes the {what} {taken}.")),
            (Some(kept), Some(lost)) if kept != lost => {
                effects.change(format!("The {what} stays {kept}; {lost} is dropped."));
            }
            _ => {}
        }
    }
    effects.change(format!(
        "The user {} is deleted. What happened to them stays in the audit under that id; services that know it have to \
         learn {}.",
        from.id, into.id
    ));
    if into.disabled_at.is_some() {
        effects
            .warn(format!("{stays} is disabled and stays so: what signs in as {goes} now will be refused."));
    } else if from.disabled_at.is_some() {
        effects.warn(format!("{goes} is disabled, so {stays} will be, too."));
        effects.warn(ending(into.sessions(), &format!("of {stays}")));
    }
    effects.warn_if_unproven(if into.email.is_some() { into } else { from });
}

fn move_identity(effects: &mut Effects, moved: &LinkedIdentity, from: &UserState, to: &UserState) {
    let (loses, gains) = (name(from), name(to));
    effects.change(format!("{} signs in as {gains} from now on, no longer as {loses}.", identity(moved)));
    effects.change(ending(moved.sessions, "opened with it"));
    effects.change("The addresses of both users stay as they are.");
    if to.email.is_none() {
        effects.change(format!(
            "The next time that somebody signs in with it, {gains} takes its address, if the provider vouches for it and \
             nobody else has it."
        ));
    }
    let last = from.identities.len() == 1;
    match from.email.as_deref() {
        Some(own) if last => effects.warn(format!(
            "It is the last identity of {loses}. That user is left to whoever signs in with the address {own} at a \
             provider that vouches for it. If it is the same person, merge the two instead."
        )),
        None if last => effects.warn(format!(
            "It is the last identity of {loses}, and no address leads back: nobody can sign in to that user any more. \
             Merge the two, or delete that one afterwards."
        )),
        Some(own) if moved.email.as_deref().is_some_and(|email| email.eq_ignore_ascii_case(own)) => {
            effects.warn(format!(
                "The address {own} stays where it is: another identity that has it signs in as {loses}, not as {gains}."
            ));
        }
        _ => {}
    }
    if to.disabled_at.is_some() {
        effects.warn(format!("{gains} is disabled: whoever signs in with the identity is refused."));
    }
    effects.warn_if_unproven(to);
}

fn unlink(effects: &mut Effects, gone: &LinkedIdentity, user: &UserState) {
    let who = name(user);
    effects.change(format!("{} no longer signs in as {who}.", identity(gone)));
    effects.change(
        "Whoever signs in with it afterwards is met as any unknown identity: linked to the user who has its address, \
         verified, or else a new user.",
    );
    effects.change(ending(gone.sessions, "opened with it"));
    if let Some(address) = &user.email {
        effects.change(format!("The address of {who} stays {address}."));
        if user.identities.len() == 1 {
            effects.warn(format!(
                "It is the last identity. The only way back to this user is to sign in with the address {address} at a \
                 provider that vouches for it."
            ));
        }
    }
}

/// Returns the user's e-mail address or name, or else the id.
pub(super) fn name(user: &UserState) -> String {
    let own = user.email.as_deref().or(user.name.as_deref()).map(isolated);
    own.unwrap_or_else(|| format!("the user {}", user.id))
}

fn identity(identity: &LinkedIdentity) -> String {
    called(&identity.provider, &identity.subject, identity.email.as_deref())
}

/// Describes an identity.
pub(super) fn called(provider: &str, subject: &str, email: Option<&str>) -> String {
    let email = email.map(|email| format!(" ({email})")).unwrap_or_default();
    format!("the {provider} identity {subject}{email}")
}

/// Describes the sessions that end: `which` is for example "of Ada" or "opened with it".
fn ending(count: i64, which: &str) -> String {
    let after = "Services that only check signatures take an access token until it expires.";
    match count {
        0 => format!("No session {which} is open, so nobody is signed out."),
        1 => format!("1 session {which} ends: whoever uses it has to sign in again. {after}"),
        _ => format!("{count} sessions {which} end: whoever uses them has to sign in again. {after}"),
    }
}

/// Capitalises a leading "the". A leading name keeps its spelling.
fn sentence(text: &str) -> String {
    text.strip_prefix("the ").map_or_else(|| text.to_owned(), |rest| format!("The {rest}"))
}
