//! Events in words for staff.

use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::admin::audit::store::EventRow;
use crate::admin::changes::pages::receipt;
use crate::web::http::rfc3339::rfc3339;
use crate::web::problem::ErrorCode;

/// An event as the pages show it.
#[derive(Serialize)]
pub(super) struct EventView {
    at: String,
    what: String,
    /// The catalogue's cause and remedy of a refusal.
    cause: Option<&'static str>,
    remedy: Option<&'static str>,
    provider: Option<String>,
    email: Option<String>,
    user: Option<Whom>,
    ip: Option<String>,
    actor: Option<String>,
    /// The member of staff whose access changed, the size of an import, or the merged user's e-mail address.
    about: Option<String>,
    /// The other user whom the event concerns.
    other: Option<Other>,
    /// The path of the receipt of a deletion.
    receipt: Option<String>,
    reason: Option<String>,
    /// The search of a view, in words.
    search: Option<String>,
    request_id: Option<String>,
}

/// The user whom an event concerns.
#[derive(Serialize)]
struct Whom {
    id: Uuid,
    /// False for a user who was deleted or merged into another one, and has no page.
    exists: bool,
    name: Option<String>,
}

/// Another user, with a link if there is a page to see.
#[derive(Serialize)]
struct Other {
    href: Option<String>,
    text: &'static str,
}

impl Other {
    fn of(event: &EventRow) -> Option<Self> {
        let read = |text: &Option<String>| Uuid::parse_str(text.as_deref()?).ok();
        let (from, to) = (read(&event.from_user), read(&event.to_user));
        match (event.kind.as_str(), from, to) {
            // A user who was merged into another has no page any more.
            ("users_merged", Some(from), _) => Some(Self {
                href: Some(format!("/admin/audit?user={from}")),
                text: "what happened to that user before",
            }),
            ("users_merged" | "identity_moved" | "user_created" | "email_lost", from, to) => {
                let other = to.or(from)?;
                Some(if event.other_exists {
                    Self { href: Some(format!("/admin/users/{other}")), text: "the other user" }
                } else {
                    Self { href: None, text: "the other user no longer exists" }
                })
            }
            _ => None,
        }
    }
}

/// Returns the fields of a search in words.
fn searched(fields: &str) -> Option<String> {
    let fields: Map<String, Value> = serde_json::from_str(fields).ok()?;
    let told = fields.iter().filter_map(|(name, value)| {
        let value = value.as_str()?;
        Some(if name == "q" { value.to_owned() } else { format!("{}: {value}", name.replace('_', " ")) })
    });
    Some(told.collect::<Vec<_>>().join(", "))
}

impl EventView {
    /// Returns the view for the page of a user, which does not repeat whom the event concerns.
    pub(super) fn on_the_page_of(mut self, user: Uuid) -> Self {
        self.user = self.user.filter(|whom| whom.id != user);
        self
    }
}

impl From<EventRow> for EventView {
    fn from(event: EventRow) -> Self {
        let entry = event
            .reason
            .as_deref()
            .and_then(|reason| ErrorCode::all().map(ErrorCode::entry).find(|e| e.error == reason));
        Self {
            at: rfc3339(event.created_at),
            what: what(&event).to_owned(),
            other: Other::of(&event),
            receipt: (event.kind == "user_deleted").then(|| receipt::path(event.id)),
            cause: entry.map(|entry| entry.cause),
            remedy: entry.map(|entry| entry.remedy),
            provider: event.provider,
            email: event.email,
            user: event.user_id.map(|id| Whom { id, exists: event.user_exists, name: event.user_name }),
            ip: event.ip,
            actor: event.actor,
            about: event.about,
            reason: event.remark,
            search: event.search.as_deref().and_then(searched),
            request_id: event.request_id,
        }
    }
}

/// Returns the event's meaning. A kind from an older or newer version is shown by its name.
pub(super) fn what(event: &EventRow) -> &str {
    let reason = event.reason.as_deref();
    let by_staff = event.actor.is_some();
    match event.kind.as_str() {
        "user_created" if reason == Some("email_proven") => {
            "Signed in for the first time, and took over an e-mail address that another user claimed without proof"
        }
        "user_created" => "Signed in for the first time",
        "signed_in" => "Signed in",
        "identity_linked" if reason == Some("same_provider") => {
            "A second account of the same provider was linked"
        }
        "identity_linked" => "An identity was linked",
        "identity_unlinked" => "An identity was unlinked",
        "sign_in_refused" => "A sign-in was refused",
        "link_refused" => "Linking an identity was refused",
        "refresh_token_replayed" => {
            "A refresh token was used twice; the session was ended, for it may have been stolen"
        }
        "refresh_token_reissued" => {
            "A refresh was repeated after a lost answer; the refresh token that was never used is void"
        }
        "email_lost" => "Lost an e-mail address that was never proved to a new user who proved it",
        "signed_out" => "Signed out",
        "user_deleted" if by_staff => "Deleted by staff",
        "user_deleted" => "The user deleted the account",
        // The other user's id is forgotten when this one is deleted; the direction is not.
        "users_merged" if reason == Some("to_another") => "Merged into another user",
        "users_merged" => "Another user was merged into this one",
        "identity_moved" if reason == Some("to_another") => "An identity was moved to another user",
        "identity_moved" => "An identity was moved here from another user",
        "user_disabled" => "Disabled by staff",
        "user_enabled" => "Enabled by staff",
        "sessions_ended" => "Signed out everywhere by staff",
        "users_imported" => "Imported users from a file",
        "user_viewed" => "Looked at the user",
        "users_viewed" => "Looked at the list of users",
        "users_exported" => "Exported the list of users",
        "audit_viewed" => "Looked at the audit",
        "audit_exported" => "Exported the audit",
        "staff_added" => "Gave somebody access to these pages",
        "staff_role_changed" => "Changed somebody's access to these pages",
        "staff_removed" => "Took somebody's access to these pages away",
        "staff_signed_in" => "A member of staff signed in",
        "staff_identity_reset" => "Let the next sign-in decide which account is somebody's",
        "staff_refused" if reason == Some("another_identity") => {
            "Another account with the address of a member of staff tried to open these pages"
        }
        "staff_refused" if reason == Some("not_authoritative") => {
            "Somebody whose address Google has only verified once tried to open these pages"
        }
        "staff_refused" => "Somebody who is not staff tried to open these pages",
        other => other,
    }
}

#[cfg(test)]
impl EventView {
    /// Returns a refusal with all fields, and an event with as few as possible.
    pub(super) fn samples() -> Vec<Self> {
        use super::samples::{NASTY, TIME};
        let text = || Some(NASTY.to_owned());
        let refusal = ErrorCode::all().map(ErrorCode::entry).next();
        let whom = |exists, name| Some(Whom { id: Uuid::max(), exists, name });
        let bare = || Self {
            at: TIME.into(),
            what: NASTY.into(),
            cause: None,
            remedy: None,
            provider: None,
            email: None,
            user: None,
            ip: None,
            actor: None,
            about: None,
            other: None,
            receipt: None,
            reason: None,
            search: None,
            request_id: None,
        };
        let full = Self {
            at: TIME.into(),
            what: NASTY.into(),
            cause: refusal.map(|entry| entry.cause),
            remedy: refusal.map(|entry| entry.remedy),
            provider: text(),
            email: text(),
            user: whom(true, text()),
            ip: text(),
            actor: text(),
            about: text(),
            other: Some(Other {
                href: Some(format!("/admin/users/{}", Uuid::max())),
                text: "the other user",
            }),
            receipt: Some(receipt::path(Uuid::max())),
            reason: text(),
            search: text(),
            request_id: text(),
        };
        let gone = Self { at: TIME.into(), what: NASTY.into(), user: whom(false, None), ..bare() };
        vec![full, bare(), gone]
    }
}
