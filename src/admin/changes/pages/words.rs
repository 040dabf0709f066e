//! The sentences of the pages, for each change.

use crate::admin::changes::decision::Refused;
use crate::admin::changes::{Change, Loaded};
use crate::admin::naming::{self, isolated};
use crate::domain::{LinkedIdentity, UserState, merged};

pub(super) const MERGE: &str = "Merge two users";
pub(super) const MERGE_LEAD: &str =
    "Use this when one person has two users. Find the other user, then choose which one is kept.";
pub(super) const MOVE: &str = "Move an identity";
pub(super) const DELETION_HINT: &str =
    "The reason is kept after the user is deleted. Write nothing personal into it.";

pub(super) fn move_lead(identity: &str, name: &str) -> String {
    sentence(&format!("{identity} is linked to {name}. Find the user to move it to."))
}

pub(in crate::admin) const fn refused(why: Refused) -> &'static str {
    match why {
        Refused::OwnAccount => {
            "This is your own account: it has your verified e-mail address. You cannot delete or disable yourself here. Ask \
             another admin."
        }
        Refused::LastIdentity => {
            "This is the only way to sign in as this user, for whose e-mail address neither a backend nor an import \
             vouches. Move the identity to the right user, merge the two users, or delete this one."
        }
        Refused::ClaimsTooLong => {
            "The claims of both users are too long for one user. The product's backend has to set shorter ones first."
        }
    }
}

/// Returns the title of a change to the user of that name, and the button that confirms it.
pub(super) fn title(change: &Loaded, name: &str) -> (String, String) {
    match change {
        Change::Merge { .. } => (MERGE.into(), format!("Merge, and delete {name}")),
        Change::Disable { .. } => (format!("Disable {name}"), "Disable".into()),
        Change::Enable { .. } => (format!("Enable {name}"), "Enable".into()),
        Change::EndSessions { .. } => (format!("Sign {name} out everywhere"), "Sign out everywhere".into()),
        Change::EndSession { .. } => (format!("End a session of {name}"), "End this session".into()),
        Change::Delete { .. } => (format!("Delete {name}"), "Delete permanently".into()),
        Change::Move { .. } => (MOVE.into(), "Move".into()),
        Change::Unlink { .. } => (format!("Unlink an identity of {name}"), "Unlink".into()),
        Change::Release { .. } => (format!("Release an identity of {name}"), "Release".into()),
    }
}

/// Returns the message after the change of that name. Access tokens are valid for `ttl` seconds.
pub(in crate::admin) fn done(change: &str, ttl: u32) -> Option<String> {
    let lag = lag(ttl);
    Some(match change {
        "merge" => "The two users are merged. The identities of both now belong to this user.".into(),
        "move" => "The identity now belongs to this user.".into(),
        "unlink" => "The identity is unlinked.".into(),
        "release" => "The identity can sign in again.".into(),
        "disable" => format!("The user is disabled and signed out everywhere. {lag}"),
        "enable" => "The user can sign in again.".into(),
        "end-sessions" => format!("The user is signed out everywhere. {lag}"),
        "nothing" => "The user had no session, so nothing was changed.".into(),
        "note" => "The note is saved.".into(),
        "end-session" => format!("That session has ended. {lag}"),
        _ => return None,
    })
}

fn lag(ttl: u32) -> String {
    let time = match ttl.div_ceil(60) {
        1 => "one more minute".to_owned(),
        minutes => format!("up to {minutes} more minutes"),
    };
    format!("For {time}, other services may accept access tokens that were already issued.")
}

#[derive(Default)]
pub(super) struct Effects {
    pub changes: Vec<String>,
    pub warnings: Vec<String>,
    /// The lifetime of access tokens, in seconds.
    ttl: u32,
}

/// Describes a change. `device` is the one whose session ends.
pub(super) fn effects(change: &Loaded, device: Option<&str>, ttl: u32) -> Effects {
    let mut effects = Effects { ttl, ..Effects::default() };
    match change {
        Change::Delete { user } => delete(&mut effects, user),
        Change::Merge { from, into } => merge(&mut effects, from, into),
        Change::Move { identity, from, to } => move_identity(&mut effects, identity, from, to),
        Change::Unlink { identity, user } => unlink(&mut effects, identity, user),
        Change::Release { identity, user } => release(&mut effects, identity, user),
        Change::Disable { user } => {
            let who = name(user);
            effects
                .change(format!("No identity of {who} can sign in until an admin enables the user again."));
            effects.change(effects.ending(user.sessions(), &format!("of {who}")));
            effects.change("Nothing is deleted, and the e-mail address stays taken.");
        }
        Change::Enable { user } => effects.change(format!("{} can sign in again.", name(user))),
        Change::EndSessions { user } => {
            let who = name(user);
            effects.change(effects.ending(user.sessions(), &format!("of {who}")));
            effects.change(format!(
                "{who} can sign in again at once. So can a thief who has one of the accounts at the providers."
            ));
        }
        Change::EndSession { user, .. } => match device {
            Some(device) => {
                let lag = lag(ttl);
                effects.change(format!("The session of {} on {device} ends. {lag}", name(user)));
                effects.change("Other sessions go on, and the same device can sign in again.");
            }
            None => effects.warn("This session has ended already."),
        },
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

    /// Describes the sessions that end: `which` is for example "of Ada" or "opened with it".
    fn ending(&self, count: i64, which: &str) -> String {
        let lag = lag(self.ttl);
        match count {
            0 => format!("There is no active session {which}, so no device is signed out."),
            1 => format!("One session {which} ends. {lag}"),
            _ => format!("{count} sessions {which} end. {lag}"),
        }
    }

    /// Tells that the user's address counts as unverified without this identity.
    fn change_if_unproven(&mut self, user: &UserState, gone: &LinkedIdentity) {
        if let Some(email) =
            user.email.as_ref().filter(|_| user.email_verified && !user.is_verified_without(gone))
        {
            self.change(format!(
                "{email} is no longer verified: only this identity proves it. The next person who signs in with the verified \
                 address gets it."
            ));
        }
    }

    /// Warns that the owner of an unverified e-mail address takes it over.
    fn warn_if_unproven(&mut self, user: &UserState) {
        if let Some(email) = user.email.as_ref().filter(|_| !user.email_verified) {
            self.warn(format!(
                "The e-mail address {email} was never verified. If another person proves later that it is theirs, this \
                 user loses it."
            ));
        }
    }
}

fn delete(effects: &mut Effects, user: &UserState) {
    let who = name(user);
    effects.change(format!("{who} is deleted permanently, with e-mail address, name and picture."));
    for linked in &user.identities {
        let identity = identity(linked);
        effects.change(format!("{identity} is unlinked. The next sign-in with it creates a new user."));
    }
    effects.change(effects.ending(user.sessions(), &format!("of {who}")));
    effects.change(
        "The audit log keeps what happened and when, but no e-mail addresses, IP addresses or devices of this user. It \
         keeps this deletion, with your e-mail address and your reason.",
    );
    effects.warn("A deletion cannot be undone.");
    if user.is_hijacked() {
        effects.warn(
            "A provider has reported an account of this user hijacked or disabled, which is forgotten with the user: \
             a hijacker of the account can come back as a new user. To prevent that, disable this user instead.",
        );
    }
    if user.disabled_at.is_some() {
        effects.warn(format!(
            "{who} is disabled now. After the deletion, the same person can come back as a new user."
        ));
    }
}

fn merge(effects: &mut Effects, from: &UserState, into: &UserState) {
    let (goes, stays) = (name(from), name(into));
    for linked in &from.identities {
        let identity = identity(linked);
        if linked.suspended_at.is_some() {
            effects.change(format!(
                "{identity} becomes one of {stays}, and stays suspended. {}",
                suspension(linked)
            ));
        } else {
            effects.change(format!("{identity} signs in as {stays} from now on."));
        }
    }
    if from.identities.is_empty() {
        effects.change(format!("{goes} has no identity, so there is nothing to move."));
    }
    effects.change(effects.ending(from.sessions(), &format!("of {goes}")));
    match (&into.email, &from.email) {
        (None, Some(email)) => {
            let verified = if from.email_verified { "verified" } else { "not verified" };
            effects.change(format!("{stays} gets the e-mail address {email} ({verified})."));
        }
        (Some(kept), Some(lost)) => effects.change(format!(
            "The e-mail address stays {kept}. No user has {lost} any more: a new identity with it creates a new user."
        )),
        _ => {}
    }
    for (what, own, theirs) in [("name", &into.name, &from.name), ("picture", &into.picture, &from.picture)] {
        match (own.as_deref().map(isolated), theirs.as_deref().map(isolated)) {
            (None, Some(taken)) => effects.change(format!("{stays} gets the {what} {taken}.")),
            (Some(kept), Some(lost)) if kept != lost => {
                effects.change(format!("The {what} stays {kept}; {lost} is dropped."));
            }
            _ => {}
        }
    }
    let all = merged(from, into).claims;
    let (taken, lost) = (all.unlike(&into.claims), from.claims.unlike(&all));
    if !taken.is_empty() {
        effects.change(format!("Access tokens of {stays} get the claims {}.", isolated(&taken.json())));
    }
    if !lost.is_empty() {
        let (kept, lost) = (into.claims.json(), lost.json());
        effects.change(format!("The claims {} stay; {} are dropped.", isolated(&kept), isolated(&lost)));
    }
    effects.change(format!(
        "The user {} is deleted. Its history stays in the audit log under that ID. Services that store this ID must \
         replace it with {}.",
        from.id, into.id
    ));
    effects.warn(format!(
        "A merge cannot be undone. Every person who can sign in as {goes} can sign in as {stays} from then on. The same name is no proof: \
         ask for something that only the owner of both would know."
    ));
    if into.disabled_at.is_some() {
        effects.warn(format!(
            "{stays} is disabled and stays disabled. No identity of {goes} can sign in any more."
        ));
    } else if from.disabled_at.is_some() {
        effects.warn(format!("{goes} is disabled, so {stays} will be disabled, too."));
        effects.warn(effects.ending(into.sessions(), &format!("of {stays}")));
    }
    effects.warn_if_unproven(if into.email.is_some() { into } else { from });
}

fn release(effects: &mut Effects, held: &LinkedIdentity, user: &UserState) {
    effects.change(format!("{} signs in as {} again.", identity(held), name(user)));
    effects.warn("It was linked while a hijacker may have had another account of this user. Release it only if it is the user's.");
}

fn move_identity(effects: &mut Effects, moved: &LinkedIdentity, from: &UserState, to: &UserState) {
    let (loses, gains) = (name(from), name(to));
    effects.change(format!("{} signs in as {gains} from now on, no longer as {loses}.", identity(moved)));
    if moved.suspended_at.is_some() {
        effects.warn(format!("The identity stays suspended. {}", suspension(moved)));
    }
    effects.change(effects.ending(moved.sessions, "opened with it"));
    effects.change("The e-mail addresses of both users stay as they are.");
    effects.change_if_unproven(from, moved);
    if to.email.is_none() {
        effects.change(format!(
            "At the next sign-in with it, {gains} gets its e-mail address, if the provider has verified the address and \
             no other user has proven it."
        ));
    }
    let last = from.identities.len() == 1;
    match from.email.as_deref() {
        Some(own) if last && from.email_vouched => effects.warn(format!(
            "This is the last identity of {loses}. After the move, the next person who proves the e-mail address {own} \
             gets that user. If both users are one person, merge them instead."
        )),
        _ if last => effects.warn(format!(
            "This is the last identity of {loses}. After the move, no identity signs in as that user. Merge the two users \
             instead, or delete {loses} afterwards."
        )),
        Some(own) if from.has_address_of(moved) && from.is_verified_without(moved) => {
            effects.warn(format!(
                "{loses} keeps the e-mail address {own}. Another identity with this address signs in as {loses}, not as \
                 {gains}."
            ));
        }
        _ => {}
    }
    if to.disabled_at.is_some() {
        effects.warn(format!("{gains} is disabled. Sign-ins with the identity will be refused."));
    }
    effects.warn_if_unproven(to);
}

fn unlink(effects: &mut Effects, gone: &LinkedIdentity, user: &UserState) {
    let who = name(user);
    effects.change(format!("{} no longer signs in as {who}.", identity(gone)));
    effects.change(
        "The next sign-in with it counts as new: it is linked to the user who has its verified e-mail address, or it \
         creates a new user.",
    );
    effects.change(effects.ending(gone.sessions, "opened with it"));
    if gone.suspended_at.is_some() && !gone.held {
        effects.warn(
            "The identity is suspended, which is forgotten with it. The owner or a hijacker of the account can sign in with \
             it again. To prevent that, disable this user instead.",
        );
    }
    if let Some(email) = &user.email {
        effects.change(format!("{who} keeps the e-mail address {email}."));
        effects.change_if_unproven(user, gone);
        if user.has_address_of(gone) && user.is_verified_without(gone) {
            effects.warn(format!(
                "The identity has the e-mail address {email}, too. If its provider has verified the address, the next \
                 sign-in with the identity links it to this user again. To prevent that, move it to another user instead, \
                 or disable this user."
            ));
        }
        if user.identities.len() == 1 && user.email_vouched {
            effects.warn(format!(
                "This is the last identity. The only way back to this user is a sign-in with the e-mail address {email} \
                 at a provider that has verified it."
            ));
        }
    }
}

pub(super) fn name(user: &UserState) -> String {
    naming::called(user.id, user.email.as_deref(), user.name.as_deref())
}

fn identity(identity: &LinkedIdentity) -> String {
    called(&identity.provider, &identity.subject, identity.email.as_deref())
}

const fn suspension(identity: &LinkedIdentity) -> &'static str {
    if identity.held {
        "It cannot sign in before an admin releases it."
    } else {
        "It cannot sign in before its provider reports the account enabled."
    }
}

pub(super) fn called(provider: &str, subject: &str, email: Option<&str>) -> String {
    let email = email.map(|email| format!(" ({email})")).unwrap_or_default();
    format!("the {provider} identity {subject}{email}")
}

/// Capitalises a leading "the". A leading name keeps its spelling.
fn sentence(text: &str) -> String {
    text.strip_prefix("the ").map_or_else(|| text.to_owned(), |rest| format!("The {rest}"))
}
