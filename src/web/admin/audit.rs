//! What happened, in words that a human understands.

use rocket::{Route, get, routes};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::failure::Failure;
use super::page::Page;
use crate::domain::email::Email;
use crate::store::directory::{self, EventRow};
use crate::web::database::Db;
use crate::web::guard::Staff;
use crate::web::problem::Kind;
use crate::web::wire_time::rfc3339;

/// Events on a page.
const PAGE: i64 = 200;

pub(super) fn routes() -> Vec<Route> {
    routes![audit]
}

/// An event as it is told.
#[derive(Serialize)]
pub(super) struct Happened {
    at: String,
    what: String,
    /// For refusals, the catalogue's cause and remedy.
    cause: Option<&'static str>,
    remedy: Option<&'static str>,
    provider: Option<String>,
    email: Option<String>,
    user_id: Option<Uuid>,
    ip: Option<String>,
    actor: Option<String>,
    remark: Option<String>,
    request_id: Option<String>,
}

impl From<EventRow> for Happened {
    fn from(event: EventRow) -> Self {
        let entry = event
            .reason
            .as_deref()
            .and_then(|reason| Kind::all().map(Kind::entry).find(|e| e.error == reason));
        let what = match event.kind.as_str() {
            "user_created" => "Signed in for the first time",
            "signed_in" => "Signed in",
            "identity_linked" if event.reason.as_deref() == Some("unproven_credentials_removed") => {
                "An identity was linked, and everything that was linked without proof before was removed"
            }
            "identity_linked" if event.reason.as_deref() == Some("same_provider") => {
                "A second account of the same provider was linked"
            }
            "identity_linked" => "An identity was linked",
            "identity_unlinked" => "An identity was unlinked",
            "sign_in_refused" => "A sign-in was refused",
            "link_refused" => "Linking an identity was refused",
            "refresh_token_replayed" => {
                "A refresh token was used twice; the session was ended, for it may have been stolen"
            }
            "signed_out" => "Signed out",
            "user_deleted" => "The user deleted the account",
            "user_disabled" => "Disabled by staff",
            "user_enabled" => "Enabled by staff",
            "sessions_ended" => "Signed out everywhere by staff",
            "staff_signed_in" => "A member of staff signed in",
            "staff_refused" => "Somebody who is not staff tried to open these pages",
            other => other,
        };
        Self {
            at: rfc3339(event.created_at),
            what: what.to_owned(),
            cause: entry.map(|entry| entry.cause),
            remedy: entry.map(|entry| entry.remedy),
            provider: event.provider,
            email: event.email,
            user_id: event.user_id,
            ip: event.ip,
            actor: event.actor,
            remark: event.remark,
            request_id: event.request_id,
        }
    }
}

#[get("/audit?<email>")]
async fn audit(staff: Staff, email: Option<&str>, db: &Db) -> Result<Page, Failure> {
    let typed: String = email.unwrap_or_default().trim().chars().take(Email::MAX_LENGTH).collect();
    let address = Email::parse(&typed);
    // What is no address was claimed by nobody.
    let events = match (&address, typed.is_empty()) {
        (None, false) => Vec::new(),
        (address, _) => directory::events(db.pool(), address.as_ref().map(Email::folded), PAGE).await?,
    };
    let events: Vec<_> = events.into_iter().map(Happened::from).collect();
    Ok(Page::new("admin/audit.html", &staff.member, &staff.csrf, json!({ "email": typed, "events": events })))
}
