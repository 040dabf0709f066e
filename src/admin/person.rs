//! The page of one user: data, identities, sessions and events.

pub mod store;

use rocket::http::Status;
use rocket::{Route, State, get, routes};
use serde::Serialize;
use uuid::Uuid;

use self::store::AlikeRow;
use super::device;
use super::event_view::{self, EventView};
use super::failure::Failure;
use super::page::{Page, View};
use crate::admin::access_log::{DataAccess, record};
use crate::admin::audit::store::{self as events, EventRow};
use crate::admin::changes::pages as changes;
use crate::admin::guard::Staff;
use crate::admin::users::store::ListedUser;
use crate::config;
use crate::domain::merging::UserState;
use crate::provider_tokens::store as provider_tokens;
use crate::store::error::retrying;
use crate::store::identities::{self, IdentityRow};
use crate::store::sessions::{self, SessionRow};
use crate::web::database::Db;
use crate::web::guard::ClientOrigin;
use crate::web::http::rfc3339::rfc3339;

/// The number of events on the page.
const EVENTS: i64 = 100;
/// The number of others' attempts on the page.
const ATTEMPTS: i64 = 20;
/// The number of possible duplicates on the page.
const ALIKE: i64 = 5;

pub(super) fn routes() -> Vec<Route> {
    routes![show]
}

/// A user as the pages show them.
#[derive(Serialize)]
pub(super) struct Person {
    pub id: Uuid,
    pub email: Option<String>,
    pub email_verified: bool,
    pub name: Option<String>,
    pub created_at: String,
    pub disabled_at: Option<String>,
    pub providers: Vec<String>,
}

impl From<ListedUser> for Person {
    fn from(user: ListedUser) -> Self {
        Self {
            id: user.id,
            email: user.email,
            email_verified: user.email_verified,
            name: user.name,
            created_at: rfc3339(user.created_at),
            disabled_at: user.disabled_at.map(rfc3339),
            providers: user.providers,
        }
    }
}

impl From<&UserState> for Person {
    fn from(user: &UserState) -> Self {
        Self {
            id: user.id,
            email: user.email.clone(),
            email_verified: user.email_verified,
            name: user.name.clone(),
            created_at: rfc3339(user.created_at),
            disabled_at: user.disabled_at.map(rfc3339),
            providers: user.identities.iter().map(|identity| identity.provider.clone()).collect(),
        }
    }
}

impl Person {
    /// Returns the user's e-mail address or name, or else the id.
    pub(super) fn called(&self) -> String {
        let own = self.email.as_deref().or(self.name.as_deref()).map(isolated);
        own.unwrap_or_else(|| format!("the user {}", self.id))
    }
}

/// Isolates a user's own text within a sentence, so that right-to-left letters and direction marks affect only that
/// text (Unicode Standard Annex 9, FSI and PDI).
pub(super) fn isolated(text: &str) -> String {
    if text.is_ascii() { text.to_owned() } else { format!("\u{2068}{text}\u{2069}") }
}

#[derive(Serialize)]
pub(super) struct Identity {
    id: Uuid,
    provider: String,
    subject: String,
    email: Option<String>,
    created_at: String,
    suspended: Option<Suspended>,
    /// True if a token of the provider is stored, to be revoked when the identity is gone.
    token: bool,
}

#[derive(Serialize)]
struct Suspended {
    since: String,
    /// Why, in words.
    why: String,
    /// True if staff may release it.
    held: bool,
}

impl Suspended {
    fn of(row: &IdentityRow) -> Option<Self> {
        let why = match row.suspended_reason.as_deref() {
            Some("held") if row.held => "a hijacker of another identity may have linked it".into(),
            Some("hijacking") => "the provider reported the account hijacked".into(),
            Some("account_disabled") | None => "the provider reported the account disabled".into(),
            Some("account_purged" | "account_deleted") => "the provider reported the account deleted".into(),
            Some(reason) => format!("the provider reported the account disabled ({})", isolated(reason)),
        };
        Some(Self { since: rfc3339(row.suspended_at?), why, held: row.held })
    }
}

impl Identity {
    fn new(row: IdentityRow, tokens: &[Uuid]) -> Self {
        Self {
            suspended: Suspended::of(&row),
            token: tokens.contains(&row.id),
            id: row.id,
            provider: row.provider,
            subject: row.subject,
            email: row.email,
            created_at: rfc3339(row.created_at),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Session {
    id: Uuid,
    provider: String,
    /// The device's name and platform, as the app gave them.
    device: Option<String>,
    platform: Option<String>,
    /// The user agent in words.
    app: Option<String>,
    ip: Option<String>,
    created_at: String,
    last_used_at: String,
}

impl From<SessionRow> for Session {
    fn from(row: SessionRow) -> Self {
        Self {
            id: row.id,
            provider: row.provider,
            device: row.device_name,
            platform: row.device_platform,
            app: row.user_agent.as_deref().map(device::in_words),
            ip: row.ip.map(|ip| ip.to_string()),
            created_at: rfc3339(row.created_at),
            last_used_at: rfc3339(row.last_used_at),
        }
    }
}

#[derive(Serialize)]
struct Alike {
    id: Uuid,
    called: String,
    /// What both have in common.
    why: &'static str,
    created_at: String,
    last_seen_on: Option<String>,
}

impl From<AlikeRow> for Alike {
    fn from(row: AlikeRow) -> Self {
        Self {
            id: row.id,
            called: row.email.or(row.name).unwrap_or_else(|| row.id.to_string()),
            why: if row.by_email { "same e-mail address" } else { "same name" },
            created_at: rfc3339(row.created_at),
            last_seen_on: row.last_seen_on.map(|day| day.to_string()),
        }
    }
}

/// The sign-ins of a user, as far as the page reads their events.
#[derive(Serialize)]
struct SignIns {
    last: String,
    count: usize,
    /// True if there may be older ones.
    more: bool,
}

/// Returns true if these are all events of a user.
fn is_complete(events: &[EventRow]) -> bool {
    i64::try_from(events.len()).is_ok_and(|count| count < EVENTS)
}

impl SignIns {
    fn among(events: &[EventRow]) -> Option<Self> {
        let mut sign_ins = events.iter().filter(|event| event_view::is_sign_in(event));
        let last = rfc3339(sign_ins.next()?.created_at);
        Some(Self { last, count: 1 + sign_ins.count(), more: !is_complete(events) })
    }
}

#[expect(clippy::struct_excessive_bools, reason = "each is a question of the template")]
#[derive(Serialize)]
pub(super) struct PersonPage {
    person: Person,
    own_name: bool,
    claims: Option<String>,
    last_seen_on: Option<String>,
    sign_ins: Option<SignIns>,
    identities: Vec<Identity>,
    /// True if one of them is suspended by its provider.
    is_suspended: bool,
    /// True if one of them is held.
    is_held: bool,
    /// True if all of them are.
    is_locked_out: bool,
    sessions: Vec<Session>,
    /// Other users with the same e-mail address or name.
    alike: Vec<Alike>,
    events: Vec<EventView>,
    /// Others' attempts with the user's e-mail address.
    attempts: Vec<EventView>,
    /// The message to show after an action.
    done: Option<String>,
}

impl View for PersonPage {
    const TEMPLATE: &'static str = "admin/person";
}

#[get("/users/<id>?<done>")]
async fn show(
    staff: Staff,
    id: &str,
    done: Option<&str>,
    db: &Db,
    settings: &State<config::Session>,
    origin: ClientOrigin,
) -> Result<Page, Failure> {
    let id = Uuid::parse_str(id).map_err(|_| Status::NotFound)?;
    let found = retrying!(store::user(db.pool(), id))?.ok_or(Status::NotFound)?;
    let identities = retrying!(identities::of_user(db.pool(), id))?;
    let tokens = retrying!(provider_tokens::of_user(db.pool(), id))?;
    let sessions = retrying!(sessions::of_user(db.pool(), id))?;
    let alike = retrying!(store::alike(db.pool(), id, ALIKE))?;
    let events = events::of_user(db.pool(), id, EVENTS).await?;
    let attempts = events::claiming(db.pool(), id, ATTEMPTS).await?;
    record(db.pool(), &staff.member, &DataAccess::Person(id), &origin.0).await?;
    let (sign_ins, complete) = (SignIns::among(&events), is_complete(&events));
    let history = EventView::of_history(events, complete);
    let is_suspended = |identity: &IdentityRow| identity.suspended_at.is_some();
    let view = PersonPage {
        last_seen_on: found.user.last_seen_on.map(|day| day.to_string()),
        own_name: found.own_name,
        person: found.user.into(),
        claims: found.claims,
        sign_ins,
        is_suspended: identities.iter().any(|identity| is_suspended(identity) && !identity.held),
        is_held: identities.iter().any(|identity| identity.held),
        is_locked_out: !identities.is_empty() && identities.iter().all(is_suspended),
        identities: identities.into_iter().map(|row| Identity::new(row, &tokens)).collect(),
        sessions: sessions.into_iter().map(Session::from).collect(),
        alike: alike.into_iter().map(Alike::from).collect(),
        events: history.into_iter().map(|event| event.on_the_page_of(id)).collect(),
        attempts: attempts.into_iter().map(EventView::from).collect(),
        done: done.and_then(|change| changes::done(change, settings.access_token_ttl)),
    };
    Ok(Page::new(&staff, &view))
}
