//! Events in words for staff.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::admin::dates;
use crate::admin::lists::events::EventRow;
use crate::admin::pages::advice::Advice;
use crate::admin::pages::changes::receipt;
use crate::admin::pages::device;
use crate::events::EventKind;
use crate::events::kind::{Details, HistoryCategory, Tone};
use crate::web::rfc3339;

/// Returns true if the event is a sign-in, and not a change by another person.
pub(super) fn is_sign_in(event: &EventRow) -> bool {
    category(event) == HistoryCategory::SignIns
}

/// Returns true if the event may be the use of a stolen refresh token.
pub(super) fn is_theft(event: &EventRow) -> bool {
    event
        .known_kind()
        .is_some_and(|kind| kind.history() == HistoryCategory::Alarms)
}

pub(super) fn category(event: &EventRow) -> HistoryCategory {
    HistoryCategory::of(event.known_kind(), event.actor.as_deref())
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
        let mut sets = events
            .iter()
            .filter(|event| event.is(EventKind::ClaimsChanged));
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
    tone: Tone,
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
        // A user who was merged into another has no page any more.
        if let Some(from) = from.filter(|_| event.is(EventKind::UsersMerged)) {
            return Some(Self {
                href: Some(format!("/admin/audit?user={from}")),
                text: "what happened to that user before",
            });
        }
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
    pub(super) fn of_history(
        events: Vec<EventRow>,
        complete: bool,
        only: Option<HistoryCategory>,
    ) -> Vec<Self> {
        let mut known = BTreeSet::new();
        let mut views: Vec<_> = events
            .into_iter()
            .rev()
            .filter_map(|event| {
                let signs_in = is_sign_in(&event);
                let is_shown = only.is_none_or(|only| category(&event) == only);
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
        let (what, tone, icon) = look(&row);
        let received = match row.reason.as_deref() {
            Some("audience_mismatch") => {
                row.audience.clone().map(|audience| ("client ID", audience))
            }
            Some("issuer_mismatch") => row.issuer.clone().map(|issuer| ("issuer", issuer)),
            _ => None,
        };
        let device = row.user_agent.as_deref().map(device::in_words);
        Self {
            what: what.into_owned(),
            tone,
            icon,
            advice: row.reason.as_deref().and_then(Advice::about),
            received,
            device: device.map(|words| Device { words, new: false }),
            other: Other::of(&row),
            receipt: row
                .is(EventKind::UserDeleted)
                .then(|| receipt::path(row.id)),
            asked: row.search.as_deref().and_then(searched),
            row,
        }
    }
}

/// The words, the tone and the icon of an event.
///
/// During a rolling update, a newer release may record kinds that this one does not know. Staff see
/// the name of such a kind and that this release cannot explain it, in a calm tone or as an action
/// of staff, and with the icon of a change. The API and the files have the name alone.
fn look(event: &EventRow) -> (Cow<'static, str>, Tone, &'static str) {
    let details = Details {
        actor: event.actor.as_deref(),
        reason: event.reason.as_deref(),
        provider: event.provider.as_deref(),
        user: event.user_id,
    };
    match event.known_kind() {
        Some(kind) => (kind.words(details), kind.tone(details), kind.icon()),
        None => (
            format!("An event that this release does not know: {}", event.kind).into(),
            EventKind::tone_by(details, Tone::Calm),
            "edit",
        ),
    }
}

/// Returns what happened, in words for staff.
pub(super) fn what(event: &EventRow) -> String {
    look(event).0.into_owned()
}
