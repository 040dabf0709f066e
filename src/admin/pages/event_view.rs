//! Events in words for staff.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::admin::dates;
use crate::admin::lists::events::EventRow;
use crate::admin::pages::advice::Advice;
use crate::admin::pages::changes::receipt;
use crate::admin::pages::device;
use crate::domain::text::capitalized;
use crate::domain::{Actor, KeyName};
use crate::web::rfc3339;

const SIGN_INS: [&str; 3] = ["signed_in", "user_created", "identity_linked"];

/// Returns true if the event is a sign-in, and not a change by another person.
pub(super) fn is_sign_in(event: &EventRow) -> bool {
    event.actor.is_none() && SIGN_INS.contains(&event.kind.as_str())
}

/// Returns true if the event may be the use of a stolen refresh token.
pub(super) fn is_theft(event: &EventRow) -> bool {
    matches!(
        event.kind.as_str(),
        "refresh_token_replayed" | "refresh_token_repeated"
    )
}

/// The categories of a user's events: their names in URLs and their labels.
pub(super) const CATEGORIES: [(&str, &str); 6] = [
    ("alarms", "Alarms"),
    ("sign-ins", "Sign-ins"),
    ("refused", "Refused"),
    ("staff", "By staff and keys"),
    ("provider", "By the provider"),
    ("changes", "Changes"),
];

pub(super) fn category(event: &EventRow) -> &'static str {
    match (event.kind.as_str(), event.actor.as_deref()) {
        ("provider_event" | "identity_held", _) => "provider",
        (_, Some(actor)) if Actor::is_provider(actor) => "provider",
        (_, Some(_)) => "staff",
        _ if is_theft(event) => "alarms",
        _ if is_sign_in(event) => "sign-ins",
        ("sign_in_refused" | "link_refused", _) => "refused",
        _ => "changes",
    }
}

#[derive(Serialize)]
pub(super) struct ClaimsChange {
    at: String,
    actor: Option<String>,
    /// The claims that differ: name, before and after, as JSON.
    changed: Vec<(String, Option<String>, Option<String>)>,
}

impl ClaimsChange {
    /// Returns the latest change of claims among a user's events. The previous claims are known if
    /// an earlier change is among the events, too.
    pub(super) fn latest(events: &[EventRow]) -> Option<Self> {
        let mut sets = events.iter().filter(|event| event.kind == "claims_changed");
        let claims = |event: &EventRow| serde_json::from_str(event.about.as_deref()?).ok();
        let latest = sets.next()?;
        let now: Map<String, Value> = claims(latest)?;
        let before: Option<Map<String, Value>> = sets.next().and_then(claims);
        let differing = before.map(|before| {
            let names: BTreeSet<_> = before.keys().chain(now.keys()).collect();
            let text =
                |claims: &Map<String, Value>, name: &str| claims.get(name).map(Value::to_string);
            let both = names
                .into_iter()
                .map(|name| (name.clone(), text(&before, name), text(&now, name)));
            both.filter(|(_, before, now)| before != now).collect()
        });
        let changed = differing.unwrap_or_default();
        Some(Self {
            at: rfc3339(latest.created_at),
            actor: latest.actor.clone(),
            changed,
        })
    }
}

#[derive(Serialize)]
pub(super) struct Day {
    /// `Today`, or the day.
    label: String,
    rows: Vec<Repeated>,
}

#[derive(Serialize)]
struct Repeated {
    #[serde(flatten)]
    event: EventView,
    /// The events that follow it.
    more: Vec<EventView>,
    /// The number of other IP addresses among them.
    other_ips: usize,
}

impl Day {
    /// Returns the events, newest first, by day in that time zone. On the page of `user`, they do
    /// not repeat whom they concern.
    pub(super) fn all(events: Vec<EventView>, user: Uuid, zone: Option<&str>) -> Vec<Self> {
        let mut days: Vec<Self> = Vec::new();
        for mut event in events {
            event.row.user_id = event.row.user_id.filter(|whom| *whom != user);
            let label = dates::day_of(event.row.created_at, zone);
            if days.last().is_none_or(|day| day.label != label) {
                days.push(Self {
                    label,
                    rows: Vec::new(),
                });
            }
            let Some(day) = days.last_mut() else { break };
            match day.rows.last_mut().filter(|row| row.event.is_like(&event)) {
                Some(row) => row.more.push(event),
                None => day.rows.push(Repeated {
                    event,
                    more: Vec::new(),
                    other_ips: 0,
                }),
            }
        }
        for row in days.iter_mut().flat_map(|day| &mut day.rows) {
            let ips: BTreeSet<_> = row
                .more
                .iter()
                .filter_map(|event| event.row.ip.as_ref())
                .collect();
            row.other_ips = ips
                .into_iter()
                .filter(|ip| Some(*ip) != row.event.row.ip.as_ref())
                .count();
        }
        days
    }
}

#[derive(Serialize)]
pub(super) struct EventView {
    #[serde(flatten)]
    row: EventRow,
    what: String,
    /// The class that colours it and the name of its icon.
    tone: &'static str,
    icon: &'static str,
    advice: Option<Advice>,
    /// The claim for which a token was refused: its label and its value.
    received: Option<(&'static str, String)>,
    device: Option<Device>,
    other: Option<Other>,
    receipt: Option<String>,
    /// The search of a view, in words.
    asked: Option<String>,
}

#[derive(Serialize)]
struct Device {
    words: String,
    /// True at the first sign-in from it, if the user has signed in from others before.
    new: bool,
}

#[derive(Serialize)]
struct Other {
    href: Option<String>,
    text: &'static str,
}

impl Other {
    fn of(event: &EventRow) -> Option<Self> {
        let read = |text: &Option<String>| Uuid::parse_str(text.as_deref()?).ok();
        let from = read(&event.from_user);
        let to = read(&event.to_user);
        match (event.kind.as_str(), from, to) {
            // A user who was merged into another has no page any more.
            ("users_merged", Some(from), _) => Some(Self {
                href: Some(format!("/admin/audit?user={from}")),
                text: "what happened to that user before",
            }),
            (
                "users_merged" | "identity_moved" | "user_created" | "user_updated" | "email_lost",
                from,
                to,
            ) => {
                let other = to.or(from)?;
                Some(if event.other_exists {
                    Self {
                        href: Some(format!("/admin/users/{other}")),
                        text: "The other user",
                    }
                } else {
                    Self {
                        href: None,
                        text: "The other user no longer exists",
                    }
                })
            }
            _ => None,
        }
    }
}

fn searched(fields: &str) -> Option<String> {
    let fields: Map<String, Value> = serde_json::from_str(fields).ok()?;
    let told = fields.iter().filter_map(|(name, value)| {
        let value = value.as_str()?;
        Some(if name == "q" {
            value.to_owned()
        } else {
            format!("{}: {value}", name.replace('_', " "))
        })
    });
    Some(told.collect::<Vec<_>>().join(", "))
}

impl EventView {
    /// Returns the views of a user's events, newest first, or only of one category's events, and
    /// marks the sign-ins from new devices.
    pub(super) fn of_history(events: Vec<EventRow>, complete: bool, only: &str) -> Vec<Self> {
        let mut known = BTreeSet::new();
        let mut views: Vec<_> = events
            .into_iter()
            .rev()
            .filter_map(|event| {
                let signs_in = is_sign_in(&event);
                let is_shown = only.is_empty() || category(&event) == only;
                let mut view = Self::from(event);
                if let Some(device) = view.device.as_mut().filter(|_| signs_in && complete) {
                    // A new version of an app or a system is no new device.
                    let words = device
                        .words
                        .chars()
                        .filter(|c| !c.is_ascii_digit())
                        .collect::<String>();
                    let first = known.is_empty();
                    device.new = known.insert(words) && !first;
                }
                is_shown.then_some(view)
            })
            .collect();
        views.reverse();
        views
    }

    /// Returns true if another event is the same again: nothing but the time, the device and the
    /// network may differ.
    fn is_like(&self, other: &Self) -> bool {
        let key = |event: &Self| {
            let row = &event.row;
            let title = event.advice.as_ref().map(|advice| advice.title);
            let is_new = event.device.as_ref().is_some_and(|device| device.new);
            let plain = row.actor.is_none() && row.about.is_none() && event.received.is_none();
            plain.then(|| {
                (
                    event.what.clone(),
                    title,
                    row.provider.clone(),
                    row.email.clone(),
                    is_new,
                )
            })
        };
        key(self).is_some() && key(self) == key(other)
    }
}

impl From<EventRow> for EventView {
    fn from(row: EventRow) -> Self {
        let (tone, icon) = look(&row);
        let received = match row.reason.as_deref() {
            Some("audience_mismatch") => {
                row.audience.clone().map(|audience| ("client ID", audience))
            }
            Some("issuer_mismatch") => row.issuer.clone().map(|issuer| ("issuer", issuer)),
            _ => None,
        };
        let device = row.user_agent.as_deref().map(device::in_words);
        Self {
            what: what(&row),
            tone,
            icon,
            advice: row.reason.as_deref().and_then(Advice::about),
            received,
            device: device.map(|words| Device { words, new: false }),
            other: Other::of(&row),
            receipt: (row.kind == "user_deleted").then(|| receipt::path(row.id)),
            asked: row.search.as_deref().and_then(searched),
            row,
        }
    }
}

/// Returns the event's meaning. A kind without words here is shown by its name.
pub(super) fn what(event: &EventRow) -> String {
    let reason = event.reason.as_deref();
    let by_staff = event.actor.is_some();
    let by_key = event.actor.as_deref().is_some_and(KeyName::is_actor);
    let author = if by_key { "an API key" } else { "staff" };
    let by_provider = event.actor.as_deref().is_some_and(Actor::is_provider);
    let what = match event.kind.as_str() {
        "user_created" if by_staff && reason == Some("email_proven") => {
            "Created before the first sign-in, with an e-mail address that another user had not verified"
        }
        "user_created" if reason == Some("email_proven") => {
            "Signed in for the first time, and took over an e-mail address that another user had not verified"
        }
        "user_created" if by_staff => "Created before the first sign-in",
        "user_created" => "Signed in for the first time",
        "identity_linked" if reason == Some("imported") => "Identity added by an import of users",
        "identity_linked" if reason == Some("same_provider") => {
            "Second account of the same provider linked"
        }
        "identity_unlinked" if by_provider => {
            "Identity unlinked because the user asked the provider to have the data deleted"
        }
        "user_updated" if reason == Some("proof_gone") => {
            "The e-mail address is no longer verified: the identity that proved it is gone, or has another one"
        }
        "user_updated" if event.provider.is_none() => "The user changed the name to be shown",
        "user_updated" => "Updated from the provider",
        "provider_event" => reported(reason.unwrap_or_default(), event.user_id.is_some()),
        "claims_changed" => "Claims in access tokens changed",
        "sign_in_refused" => "Sign-in refused",
        "link_refused" => "Linking refused",
        "refresh_token_replayed" => {
            "A refresh token was used twice, so it may be stolen: the session has ended"
        }
        "refresh_token_reissued" => {
            "An answer was lost, so a refresh was repeated: the unused refresh token is void"
        }
        "refresh_token_repeated" => {
            "A refresh token came again at once, from another address and another app or browser: it may be stolen"
        }
        "proof_refused" => "A request with a token of a session was refused",
        "email_lost" => "Lost an unverified e-mail address to a user who has verified it",
        "user_deleted" if by_provider => {
            "Deleted because the user asked the provider to have the data deleted"
        }
        "data_deletion_kept" => {
            "The user asked the provider to have the data deleted. It was kept because the user is disabled: decide about it"
        }
        "user_deleted" if by_staff => return format!("Deleted by {author}"),
        "user_deleted" => "The user deleted the account",
        // The other user's id is forgotten when this one is deleted; the direction is not.
        "users_merged" if !by_staff && reason == Some("to_another") => {
            "The user, who has proven to have both accounts, merged this one into the other"
        }
        "users_merged" if !by_staff => {
            "The user, who has proven to have both accounts, merged the other into this one"
        }
        "users_merged" if reason == Some("to_another") => "Merged into another user",
        "users_merged" => "Another user was merged into this one",
        "identity_moved" if reason == Some("to_another") => "An identity was moved to another user",
        "identity_moved" => "An identity was moved here from another user",
        "identity_held" => {
            "An identity is held: the hijacker of another account of the user may have brought it"
        }
        "identity_released" => return format!("A held identity released by {author}"),
        "user_disabled" => return format!("Disabled by {author}"),
        "user_enabled" => return format!("Enabled by {author}"),
        "sessions_ended" => return format!("Signed out everywhere by {author}"),
        "session_ended" => return format!("One session ended by {author}"),
        "users_imported" => "Imported users",
        "note_added" if reason == Some("known") => {
            "Note written: the use that looked like theft was the user’s own"
        }
        "note_added" => "Note written",
        "user_viewed" => "Viewed user",
        "users_viewed" => "Viewed list of users",
        "users_exported" => "Exported list of users",
        "audit_viewed" => "Viewed audit log",
        "audit_exported" => "Exported audit log",
        "api_key_added" => "Added an API key",
        "api_key_revoked" => "Revoked an API key",
        "signing_key_announced" => "Announced the next key that signs access tokens",
        "signing_keys_replaced" => {
            "Replaced all keys that sign access tokens: those issued before are refused"
        }
        "pruned" => "Deleted what had expired, at the command line",
        "webhook_replayed" => "Let the messages of a webhook be sent again",
        "staff_added" => "Gave access to the staff pages",
        "staff_role_changed" => "Changed access to the staff pages",
        "staff_removed" => "Revoked access to the staff pages",
        "staff_signed_in" => "Signed in to the staff pages",
        "staff_identity_reset" => {
            "Reset the account of a member: the next one to sign in is theirs"
        }
        "staff_refused" if reason == Some("another_identity") => {
            "Staff sign-in refused: another account with the e-mail address of a member"
        }
        "staff_refused" if reason == Some("not_authoritative") => {
            "Staff sign-in refused: Google has verified the e-mail address only once"
        }
        "staff_refused" if reason == Some("identity_suspended") => {
            "Staff sign-in refused: the provider has reported the account hijacked, disabled or deleted"
        }
        "staff_refused" => "Staff sign-in refused: not a member of staff",
        other => return capitalized(&other.replace('_', " ")),
    };
    what.to_owned()
}

/// Returns the tone and the icon of an event. A colour calls for attention; blue marks an action of
/// staff or of an API key.
fn look(event: &EventRow) -> (&'static str, &'static str) {
    let by_staff = event
        .actor
        .as_deref()
        .is_some_and(|actor| !Actor::is_provider(actor));
    let icon = match event.kind.as_str() {
        "signed_in" | "staff_signed_in" => "in",
        "user_created" | "users_imported" | "staff_added" => "new",
        "identity_linked" | "identity_moved" | "identity_held" | "identity_released"
        | "identity_unlinked" => "link",
        "sign_in_refused" | "link_refused" | "staff_refused" => "refused",
        "refresh_token_replayed" | "refresh_token_repeated" => "theft",
        "refresh_token_reissued" | "email_lost" | "provider_event" => "info",
        "signed_out" | "sessions_ended" | "session_ended" => "out",
        "user_deleted" | "data_deletion_kept" => "trash",
        "users_merged" => "merge",
        "user_disabled" | "user_enabled" => "off",
        "user_viewed" | "users_viewed" | "audit_viewed" => "eye",
        "users_exported" | "audit_exported" => "receipt",
        "webhook_replayed" => "send",
        "api_key_added" | "api_key_revoked" | "signing_key_announced" | "signing_keys_replaced" => {
            "key"
        }
        kind if kind.starts_with("staff_") => "staff",
        _ => "edit",
    };
    let hijacked = matches!(
        event.reason.as_deref(),
        Some("sessions_revoked" | "account_disabled")
    );
    let tone = match icon {
        "refused" | "theft" => "bad",
        "info" if event.kind == "provider_event" && hijacked => "warn",
        "link" if event.kind == "identity_held" => "warn",
        "eye" => "calm",
        _ if by_staff => "info",
        "in" | "new" => "good",
        _ => "calm",
    };
    (tone, icon)
}

/// Returns a provider's report, about a user or about a person who has no user here.
fn reported(event: &str, about_user: bool) -> &'static str {
    if !about_user && event != "verification" {
        return "The provider reported something about an account that no user has";
    }
    match event {
        "sessions_revoked" => "The provider ended its sessions of the account",
        "tokens_revoked" => "The provider revoked the access of our apps to the account",
        "account_disabled" => "The provider disabled the account",
        "account_enabled" => "The provider enabled the account again",
        "account_purged" | "account_deleted" => "The account was deleted at the provider",
        "credential_change" => "The provider reported a change of the account’s credentials",
        "identifier_changed" => "The provider reported a change of the account’s address",
        "email_disabled" => "E-mail by the provider’s relay address no longer reaches the user",
        "email_enabled" => "E-mail by the provider’s relay address reaches the user again",
        "consent_revoked" => "The user stopped using the account with our apps",
        "deauthorized" => "The user removed our apps from the account",
        "verification" => "The provider tested the connection for its reports",
        _ => "The provider reported something about the account",
    }
}
