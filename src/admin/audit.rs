//! The audit: the events that match a filter.

pub mod store;

use std::net::IpAddr;

use rocket::{FromForm, Route, State, get, post, routes};
use serde::Serialize;
use sqlx::PgPool;
use strum::VariantArray;
use url::form_urlencoded;
use uuid::Uuid;

use self::store::{EventCategory, EventRow, Filter, page};
use super::advice::Advice;
use super::csv::{Csv, Rows};
use super::dates::{begin_of, end_of};
use super::event_view::{self, EventView};
use super::failure::Failure;
use super::fields::{Chip, Choice, NothingMatches, read, tidy};
use super::page::{Page, View};
use crate::admin::access_log::{DataAccess, record};
use crate::admin::guard::{ExportingStaff, Staff, StaffForm};
use crate::domain::actor::Actor;
use crate::domain::api_key::KeyName;
use crate::domain::email::Email;
use crate::provider::Providers;
use crate::store::Error;
use crate::web::database::Db;
use crate::web::guard::ClientOrigin;
use crate::web::http::rfc3339::rfc3339;

/// The number of events on a page.
const PAGE: usize = 100;
/// The number of events that an export reads at a time.
const BATCH: usize = 2_000;
const HEADING: [&str; 17] = [
    "id",
    "at",
    "kind",
    "what",
    "reason",
    "provider",
    "claimed_email",
    "user_id",
    "actor",
    "about",
    "remark",
    "ip",
    "request_id",
    "search",
    "received_audience",
    "received_issuer",
    "user_agent",
];
pub(super) fn routes() -> Vec<Route> {
    routes![audit, export]
}

/// The filter as it is in the URL.
#[derive(FromForm)]
struct Query<'r> {
    what: Option<&'r str>,
    email: Option<&'r str>,
    user: Option<&'r str>,
    actor: Option<&'r str>,
    reason: Option<&'r str>,
    request: Option<&'r str>,
    provider: Option<&'r str>,
    ip: Option<&'r str>,
    from: Option<&'r str>,
    to: Option<&'r str>,
    before: Option<&'r str>,
}

/// The filter after clean-up, as the form shows it again.
#[derive(Default, Serialize)]
struct Asked {
    what: &'static str,
    email: String,
    user: String,
    actor: String,
    reason: String,
    request: String,
    provider: String,
    ip: String,
    from: String,
    to: String,
}

impl Query<'_> {
    fn tidy(&self) -> Asked {
        Asked {
            what: category(self.what.unwrap_or_default()).into(),
            email: tidy(self.email),
            user: tidy(self.user),
            actor: tidy(self.actor),
            reason: tidy(self.reason),
            request: tidy(self.request),
            provider: tidy(self.provider),
            ip: tidy(self.ip),
            from: tidy(self.from),
            to: tidy(self.to),
        }
    }
}

/// Returns an IP address or a network in CIDR notation as PostgreSQL reads it.
pub(super) fn network(text: &str) -> Option<String> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let longest = if address.parse::<IpAddr>().ok()?.is_ipv4() { 32 } else { 128 };
    let sound = bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= longest));
    sound.then(|| text.to_owned())
}

/// Returns the category of that name, or everything.
fn category(name: &str) -> EventCategory {
    name.parse().unwrap_or_default()
}

const fn label(what: EventCategory) -> &'static str {
    match what {
        EventCategory::Everything => "All",
        EventCategory::Refused => "Refused",
        EventCategory::SignIns => "Actions of users",
        EventCategory::Security => "Possible attacks",
        EventCategory::Staff => "Staff and API keys",
        EventCategory::Looks => "Views by staff",
    }
}

impl Asked {
    fn filter(&self, zone: Option<&str>) -> Result<Filter, NothingMatches> {
        let address = |text: &str| Email::parse(text).map(|email| email.folded().to_owned());
        Ok(Filter {
            what: category(self.what),
            email: read(&self.email, address)?,
            user: read(&self.user, |text| Uuid::parse_str(text).ok())?,
            actor: read(&self.actor, |text| {
                let named = || KeyName::is_actor(text) || Actor::is_provider(text);
                address(text).or_else(|| named().then(|| text.to_owned()))
            })?,
            reason: read(&self.reason, |text| Some(text.to_owned()))?,
            request: read(&self.request, |text| Some(text.to_owned()))?,
            provider: read(&self.provider, |text| Some(text.to_owned()))?,
            ip: read(&self.ip, network)?,
            from: read(&self.from, |day| begin_of(day, zone))?,
            to: read(&self.to, |day| end_of(day, zone))?,
        })
    }

    /// Returns the fields that are filled in.
    fn fields(&self) -> Vec<(&'static str, &str)> {
        let fields = [
            ("what", self.what),
            ("email", &self.email),
            ("user", &self.user),
            ("actor", &self.actor),
            ("reason", &self.reason),
            ("request", &self.request),
            ("provider", &self.provider),
            ("ip", &self.ip),
            ("from", &self.from),
            ("to", &self.to),
        ];
        let filled =
            |(name, value): &(&str, &str)| !value.is_empty() && (*name, *value) != ("what", "everything");
        fields.into_iter().filter(filled).collect()
    }

    /// Returns the fields that are filled in, as a URL's query.
    fn query(&self) -> String {
        self.query_without(None)
    }

    fn query_without(&self, field: Option<&str>) -> String {
        let fields = self.fields().into_iter().filter(|(name, _)| Some(*name) != field);
        form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
    }

    /// Returns the filters in use beside the category, in the words of the form.
    fn chips(&self) -> Vec<Chip> {
        let chip = |(name, value): (&str, &str)| {
            let label = match name {
                "email" => format!("E-mail: {value}"),
                "user" => format!("User: {value}"),
                "actor" => format!("By: {value}"),
                "reason" => format!("Reason: {}", Advice::about(value).map_or(value, |advice| advice.title)),
                "request" => format!("Request ID or receipt number: {value}"),
                "provider" => format!("Provider: {value}"),
                "ip" => format!("From the address: {value}"),
                "from" => format!("From: {value}"),
                _ => format!("To: {value}"),
            };
            let query = self.query_without(Some(name));
            let href = if query.is_empty() { "/admin/audit".into() } else { format!("/admin/audit?{query}") };
            Chip { label, href }
        };
        self.fields().into_iter().filter(|(name, _)| *name != "what").map(chip).collect()
    }
}

#[derive(Serialize)]
pub(super) struct Audit {
    asked: Asked,
    chips: Vec<Chip>,
    whats: Vec<Choice>,
    reasons: Vec<Choice>,
    events: Vec<EventView>,
    /// The id before which more may follow.
    next: Option<Uuid>,
    providers: Vec<String>,
    /// The filter as a URL's query.
    query: String,
    /// The ends of the URLs of the same filter in each category.
    links: Vec<String>,
    /// The fields beside the end of the time, for the jump to a day.
    kept: Vec<(&'static str, String)>,
}

impl Audit {
    fn new(asked: Asked, events: Vec<EventView>, next: Option<Uuid>, providers: Vec<String>) -> Self {
        let whats =
            EventCategory::VARIANTS.iter().map(|&what| Choice { value: what.into(), label: label(what) });
        let reasons =
            Advice::reasons().filter_map(|reason| Advice::about(reason).map(|advice| (reason, advice)));
        let reasons = reasons.map(|(value, advice)| Choice { value, label: advice.title });
        let (query, chips) = (asked.query(), asked.chips());
        let links = EventCategory::VARIANTS.iter().map(|&what| {
            let rest = asked.query_without(Some("what"));
            let what = (what != EventCategory::default()).then(|| format!("what={}", <&str>::from(what)));
            let parts: Vec<_> = what.into_iter().chain((!rest.is_empty()).then_some(rest)).collect();
            if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
        });
        let links = links.collect();
        let kept = asked.fields().into_iter().filter(|(name, _)| *name != "to");
        let kept = kept.map(|(name, value)| (name, value.to_owned())).collect();
        Self {
            asked,
            chips,
            whats: whats.collect(),
            reasons: reasons.collect(),
            events,
            next,
            providers,
            query,
            links,
            kept,
        }
    }
}

impl View for Audit {
    const TEMPLATE: &'static str = "admin/audit";
}

#[get("/audit?<query..>")]
async fn audit(
    staff: Staff,
    query: Query<'_>,
    providers: &State<Providers>,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Page, Failure> {
    let asked = query.tidy();
    // An invalid cursor starts from the beginning.
    let before = query.before.and_then(|id| Uuid::parse_str(id).ok());
    let (events, next) = match asked.filter(staff.member.time_zone.as_deref()) {
        Ok(filter) => page(db.pool(), &filter, before, PAGE).await?,
        Err(NothingMatches) => (Vec::new(), None),
    };
    record(db.pool(), &staff.member, &DataAccess::Audit { search: &asked.fields() }, &origin.0).await?;
    let events = events.into_iter().map(EventView::from).collect();
    Ok(Page::new(&staff, &Audit::new(asked, events, next, providers.names())))
}

#[post("/audit.csv?<query..>", data = "<form>")]
async fn export(
    staff: ExportingStaff,
    query: Query<'_>,
    form: StaffForm,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Csv, Failure> {
    let (asked, member, reason) = (query.tidy(), staff.0.member, form.reason()?);
    let look = DataAccess::AuditExport { search: &asked.fields(), reason: &reason };
    record(db.pool(), &member, &look, &origin.0).await?;
    let filter = asked.filter(member.time_zone.as_deref()).ok();
    let events = Events { pool: db.pool().clone(), filter, before: None };
    Ok(Csv::begin(events, &member, db.pool()).await?)
}

/// The events that match a filter, newest first.
struct Events {
    pool: PgPool,
    /// `None` if nothing matches or nothing is left.
    filter: Option<Filter>,
    before: Option<Uuid>,
}

impl Rows for Events {
    const NAME: &'static str = "audit";
    const COLUMNS: &'static [&'static str] = &HEADING;

    async fn next(&mut self) -> Result<Vec<Vec<String>>, Error> {
        let mut found = Vec::new();
        // A walk may find nothing for a while.
        while let Some(filter) = self.filter.as_ref().filter(|_| found.is_empty()) {
            let (events, next) = page(&self.pool, filter, self.before, BATCH).await?;
            (found, self.before) = (events, next);
            if next.is_none() {
                self.filter = None;
            }
        }
        Ok(rows(found))
    }
}

fn rows(events: Vec<EventRow>) -> Vec<Vec<String>> {
    let row = |event: EventRow| {
        let what = event_view::what(&event).to_owned();
        vec![
            event.id.to_string(),
            rfc3339(event.created_at),
            event.kind,
            what,
            event.reason.unwrap_or_default(),
            event.provider.unwrap_or_default(),
            event.email.unwrap_or_default(),
            event.user_id.map(|id| id.to_string()).unwrap_or_default(),
            event.actor.unwrap_or_default(),
            event.about.unwrap_or_default(),
            event.remark.unwrap_or_default(),
            event.ip.unwrap_or_default(),
            event.request_id.unwrap_or_default(),
            event.search.unwrap_or_default(),
            event.audience.unwrap_or_default(),
            event.issuer.unwrap_or_default(),
            event.user_agent.unwrap_or_default(),
        ]
    };
    events.into_iter().map(row).collect()
}
