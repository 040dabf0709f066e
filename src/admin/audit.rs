//! The audit: the events that match a filter.

pub mod store;

use rocket::{FromForm, Route, get, post, routes};
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
            from: tidy(self.from),
            to: tidy(self.to),
        }
    }
}

/// Returns the category of that name, or everything.
fn category(name: &str) -> EventCategory {
    name.parse().unwrap_or_default()
}

const fn label(what: EventCategory) -> &'static str {
    match what {
        EventCategory::Everything => "All except views",
        EventCategory::Refused => "Refused sign-ins and links",
        EventCategory::SignIns => "Actions of users",
        EventCategory::Security => "Possible attacks",
        EventCategory::Staff => "Actions of staff and API keys",
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

    /// Returns the filters in use, in the words of the form. The e-mail address stands in its own field.
    fn chips(&self) -> Vec<Chip> {
        let chip = |(name, value): (&str, &str)| {
            let label = match name {
                "what" => format!("Events: {}", label(category(value))),
                "user" => format!("User: {value}"),
                "actor" => format!("By: {value}"),
                "reason" => format!("Reason: {}", Advice::about(value).map_or(value, |advice| advice.title)),
                "request" => format!("Request ID or receipt number: {value}"),
                "from" => format!("From: {value}"),
                _ => format!("To: {value}"),
            };
            let query = self.query_without(Some(name));
            let href = if query.is_empty() { "/admin/audit".into() } else { format!("/admin/audit?{query}") };
            Chip { label, href }
        };
        self.fields().into_iter().filter(|(name, _)| *name != "email").map(chip).collect()
    }
}

#[derive(Serialize)]
pub(super) struct Audit {
    asked: Asked,
    chips: Vec<Chip>,
    whats: Vec<Choice>,
    reasons: Vec<Choice>,
    events: Vec<EventView>,
    /// The id of the last event, if more follow.
    next: Option<Uuid>,
    /// The filter as a URL's query.
    query: String,
}

impl Audit {
    fn new(asked: Asked, events: Vec<EventView>, next: Option<Uuid>) -> Self {
        let whats =
            EventCategory::VARIANTS.iter().map(|&what| Choice { value: what.into(), label: label(what) });
        let reasons =
            Advice::reasons().filter_map(|reason| Advice::about(reason).map(|advice| (reason, advice)));
        let reasons = reasons.map(|(value, advice)| Choice { value, label: advice.title });
        let (query, chips) = (asked.query(), asked.chips());
        Self { asked, chips, whats: whats.collect(), reasons: reasons.collect(), events, next, query }
    }
}

impl View for Audit {
    const TEMPLATE: &'static str = "admin/audit";
}

#[get("/audit?<query..>")]
async fn audit(staff: Staff, query: Query<'_>, db: &Db, origin: ClientOrigin) -> Result<Page, Failure> {
    let asked = query.tidy();
    // An invalid cursor starts from the beginning.
    let before = query.before.and_then(|id| Uuid::parse_str(id).ok());
    let limit = i64::try_from(PAGE + 1).unwrap_or(i64::MAX);
    let mut events = match asked.filter(staff.member.time_zone.as_deref()) {
        Ok(filter) => page(db.pool(), &filter, before, limit).await?,
        Err(NothingMatches) => Vec::new(),
    };
    record(db.pool(), &staff.member, &DataAccess::Audit { search: &asked.fields() }, &origin.0).await?;
    let more = events.len() > PAGE;
    events.truncate(PAGE);
    let next = events.last().filter(|_| more).map(|event| event.id);
    let events = events.into_iter().map(EventView::from).collect();
    Ok(Page::new(&staff, &Audit::new(asked, events, next)))
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
        let Some(filter) = &self.filter else { return Ok(Vec::new()) };
        let limit = i64::try_from(BATCH).unwrap_or(i64::MAX);
        let events = page(&self.pool, filter, self.before, limit).await?;
        self.before = events.last().map(|event| event.id);
        if events.len() < BATCH {
            self.filter = None;
        }
        Ok(rows(events))
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
