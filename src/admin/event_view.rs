//! Events in words for staff.

use serde::Serialize;
use uuid::Uuid;

use crate::admin::audit::store::{DATA_ACCESS_KINDS, EventRow};
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
    user_id: Option<Uuid>,
    ip: Option<String>,
    actor: Option<String>,
    /// The member of staff whose access changed, the size of an import, or the merged user's e-mail address.
    about: Option<String>,
    /// The other user whom the event concerns.
    other: Option<Other>,
    remark: Option<String>,
    remark_label: &'static str,
    request_id: Option<String>,
}

/// A link to another user.
#[derive(Serialize)]
struct Other {
    href: String,
    text: &'static str,
}

impl Other {
    fn of(event: &EventRow) -> Option<Self> {
        let read = |text: &Option<String>| Uuid::parse_str(text.as_deref()?).ok();
        let (from, to) = (read(&event.from_user), read(&event.to_user));
        match (event.kind.as_str(), from, to) {
            // A user who was merged into another has no page any more.
            ("users_merged", Some(from), _) => Some(Self {
                href: format!("/admin/audit?user={from}"),
                text: "what happened to that user before",
            }),
            ("users_merged" | "identity_moved" | "user_created" | "email_lost", from, to) => {
                let href = format!("/admin/users/{}", to.or(from)?);
                Some(Self { href, text: "the other user" })
            }
            _ => None,
        }
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
            cause: entry.map(|entry| entry.cause),
            remedy: entry.map(|entry| entry.remedy),
            provider: event.provider,
            email: event.email,
            user_id: event.user_id,
            ip: event.ip,
            actor: event.actor,
            about: event.about,
            remark: event.remark,
            remark_label: if DATA_ACCESS_KINDS.contains(&event.kind.as_str()) {
                "Asked for"
            } else {
                "Reason"
            },
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
        "users_merged" if event.from_user.is_some() => "Another user was merged into this one",
        "users_merged" => "Merged into another user",
        "identity_moved" if event.from_user.is_some() => "An identity was moved here from another user",
        "identity_moved" => "An identity was moved to another user",
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
        "staff_role_changed" => "Changed somebody's role on these pages",
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
        let bare = Self {
            at: TIME.into(),
            what: NASTY.into(),
            cause: None,
            remedy: None,
            provider: None,
            email: None,
            user_id: None,
            ip: None,
            actor: None,
            about: None,
            other: None,
            remark: None,
            remark_label: "Reason",
            request_id: None,
        };
        let full = Self {
            at: TIME.into(),
            what: NASTY.into(),
            cause: refusal.map(|entry| entry.cause),
            remedy: refusal.map(|entry| entry.remedy),
            provider: text(),
            email: text(),
            user_id: Some(Uuid::max()),
            ip: text(),
            actor: text(),
            about: text(),
            other: Some(Other { href: format!("/admin/users/{}", Uuid::max()), text: "the other user" }),
            remark: text(),
            remark_label: "Reason",
            request_id: text(),
        };
        vec![full, bare]
    }
}
