//! The audit: the events that match a filter.

use std::net::IpAddr;

use rocket::http::uri::Origin;
use rocket::{Route, State, get, post, routes};
use serde::Serialize;
use strum::VariantArray;
use uuid::Uuid;

use crate::admin::dates::{begin_of, end_of};
use crate::admin::lists::events::{EventRow, Filter, page};
use crate::admin::pages::advice::Advice;
use crate::admin::pages::csv::{Column, Csv, Rows};
use crate::admin::pages::event_view::EventView;
use crate::admin::pages::fields::{Chip, Choice, Fields, NothingMatches, Tab, read};
use crate::admin::pages::{ExportingStaff, Failure, Page, Staff, StaffForm, event_view, record};
use crate::database::{Database, Error};
use crate::domain::{Actor, Email, KeyName};
use crate::events::kind::EventCategory;
use crate::events::{DataAccess, EventKind};
use crate::provider::Providers;
use crate::web::guard::ClientOrigin;
use crate::web::{Db, rfc3339};

const PAGE: usize = 100;
const BATCH: usize = 2_000;

pub(super) fn routes() -> Vec<Route> {
    routes![audit, export]
}

const FIELDS: [&str; 10] = [
    "what", "email", "user", "actor", "reason", "request", "provider", "ip", "from", "to",
];

/// The filter after clean-up, as the form shows it again. The category of all events is an empty
/// field.
#[derive(Serialize)]
#[serde(transparent)]
struct Asked(Fields);

/// Returns an IP address or a network in CIDR notation as PostgreSQL reads it.
pub(super) fn network(text: &str) -> Option<String> {
    let (address, bits) = text
        .split_once('/')
        .map_or((text, None), |(address, bits)| (address, Some(bits)));
    let longest = if address.parse::<IpAddr>().ok()?.is_ipv4() {
        32
    } else {
        128
    };
    let sound = bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= longest));
    sound.then(|| text.to_owned())
}

/// Returns a category's name in the URL, which is empty for all events.
fn named(what: EventCategory) -> &'static str {
    if what == EventCategory::default() {
        ""
    } else {
        what.into()
    }
}

impl Asked {
    fn read(uri: &Origin<'_>) -> Self {
        let mut fields = Fields::read(uri, &FIELDS);
        let what = fields.get("what").parse().unwrap_or_default();
        fields.put("what", named(what));
        Self(fields)
    }

    fn filter(&self, zone: Option<&str>) -> Result<Filter, NothingMatches> {
        let get = |name| self.0.get(name);
        let address = |text: &str| Email::parse(text).map(|email| email.folded().to_owned());
        Ok(Filter {
            what: get("what").parse().unwrap_or_default(),
            email: read(get("email"), address)?,
            user: read(get("user"), |text| Uuid::parse_str(text).ok())?,
            actor: read(get("actor"), |text| {
                let named = || KeyName::is_actor(text) || Actor::is_provider(text);
                address(text).or_else(|| named().then(|| text.to_owned()))
            })?,
            reason: read(get("reason"), |text| Some(text.to_owned()))?,
            request: read(get("request"), |text| Some(text.to_owned()))?,
            provider: read(get("provider"), |text| Some(text.to_owned()))?,
            ip: read(get("ip"), network)?,
            from: read(get("from"), |day| begin_of(day, zone))?,
            to: read(get("to"), |day| end_of(day, zone))?,
        })
    }

    fn chips(&self) -> Vec<Chip> {
        let chip = |(name, value): (&str, &str)| {
            let label = match name {
                "email" => format!("E-mail: {value}"),
                "user" => format!("User: {value}"),
                "actor" => format!("By: {value}"),
                "reason" => format!(
                    "Reason: {}",
                    Advice::about(value).map_or(value, |advice| advice.title)
                ),
                "request" => format!("Request ID or receipt number: {value}"),
                "provider" => format!("Provider: {value}"),
                "ip" => format!("From the address: {value}"),
                "from" => format!("From: {value}"),
                _ => format!("To: {value}"),
            };
            Chip {
                label,
                href: format!("/admin/audit{}", self.0.suffix(&[name], &[])),
            }
        };
        self.0.filled_but(&["what"]).map(chip).collect()
    }
}

#[derive(Serialize)]
pub(super) struct Audit {
    asked: Asked,
    chips: Vec<Chip>,
    whats: Vec<Tab>,
    reasons: Vec<Choice>,
    events: Vec<EventView>,
    next: Option<Uuid>,
    providers: Vec<String>,
    query: String,
    /// The fields beside the end of the time, for the jump to a day.
    kept: Vec<(&'static str, String)>,
}

impl Audit {
    fn new(
        asked: Asked,
        events: Vec<EventView>,
        next: Option<Uuid>,
        providers: Vec<String>,
    ) -> Self {
        let tab = |&what: &EventCategory| {
            let further = Some(("what", named(what))).filter(|(_, name)| !name.is_empty());
            Tab {
                value: named(what),
                label: what.label(),
                link: asked.0.suffix(&["what"], further.as_slice()),
            }
        };
        let choice = |value| {
            Some(Choice {
                value,
                label: Advice::about(value)?.title,
            })
        };
        Self {
            chips: asked.chips(),
            whats: EventCategory::VARIANTS.iter().map(tab).collect(),
            reasons: Advice::reasons().filter_map(choice).collect(),
            query: asked.0.suffix(&[], &[]).trim_start_matches('?').to_owned(),
            kept: asked.0.kept(&["to"]),
            asked,
            events,
            next,
            providers,
        }
    }
}

#[get("/audit?<before>")]
async fn audit(
    staff: Staff,
    before: Option<&str>,
    uri: &Origin<'_>,
    providers: &State<Providers>,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Page, Failure> {
    let asked = Asked::read(uri);
    // An invalid cursor starts from the beginning.
    let before = before.and_then(|id| Uuid::parse_str(id).ok());
    let (events, next) = match asked.filter(staff.member.time_zone.as_deref()) {
        Ok(filter) => page(db, &filter, before, PAGE).await?,
        Err(NothingMatches) => (Vec::new(), None),
    };
    record(
        db,
        &staff.member,
        DataAccess::list(EventKind::AuditViewed, &asked.0.searched()),
        &origin.0,
    )
    .await?;
    let events = events.into_iter().map(EventView::from).collect();
    Ok(Page::new(
        &staff,
        "admin/audit",
        &Audit::new(asked, events, next, providers.names()),
    ))
}

#[post("/audit.csv", data = "<form>")]
async fn export(
    staff: ExportingStaff,
    uri: &Origin<'_>,
    form: StaffForm,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Csv, Failure> {
    let asked = Asked::read(uri);
    let member = staff.0.member;
    let reason = form.reason()?;
    let search = asked.0.searched();
    let access = DataAccess {
        reason: Some(&reason),
        ..DataAccess::list(EventKind::AuditExported, &search)
    };
    record(db, &member, access, &origin.0).await?;
    let filter = asked.filter(member.time_zone.as_deref()).ok();
    let events = Events {
        database: Database::clone(db),
        filter,
        before: None,
    };
    Ok(Csv::begin(events, &member, db).await?)
}

struct Events {
    database: Database,
    /// `None` if nothing matches or nothing is left.
    filter: Option<Filter>,
    before: Option<Uuid>,
}

impl Rows for Events {
    const NAME: &'static str = "audit";
    type Row = EventRow;
    const COLUMNS: &'static [Column<EventRow>] = &[
        ("id", |event| Some(event.id.to_string())),
        ("at", |event| Some(rfc3339(event.created_at))),
        ("kind", |event| Some(event.kind.clone())),
        ("what", |event| Some(event_view::what(event))),
        ("reason", |event| event.reason.clone()),
        ("provider", |event| event.provider.clone()),
        ("claimed_email", |event| event.email.clone()),
        ("user_id", |event| event.user_id.map(|id| id.to_string())),
        ("actor", |event| event.actor.clone()),
        ("about", |event| event.about.clone()),
        ("remark", |event| event.remark.clone()),
        ("ip", |event| event.ip.clone()),
        ("request_id", |event| event.request_id.clone()),
        ("search", |event| event.search.clone()),
        ("received_audience", |event| event.audience.clone()),
        ("received_issuer", |event| event.issuer.clone()),
        ("user_agent", |event| event.user_agent.clone()),
    ];

    async fn next(&mut self) -> Result<Vec<EventRow>, Error> {
        let mut found = Vec::new();
        // A walk may find nothing for a while.
        while let Some(filter) = self.filter.as_ref().filter(|_| found.is_empty()) {
            let (events, next) = page(&self.database, filter, self.before, BATCH).await?;
            (found, self.before) = (events, next);
            if next.is_none() {
                self.filter = None;
            }
        }
        Ok(found)
    }
}
