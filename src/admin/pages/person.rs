//! The page of one user: data, identities, sessions, notes and events.

use rocket::http::uri::Origin;
use rocket::http::{Header, Status};
use rocket::response::Redirect;
use rocket::response::content::RawJson;
use rocket::{Responder, Route, State, get, post, routes};
use serde::Serialize;
use strum::VariantArray;
use url::Url;
use uuid::Uuid;

use crate::accounts::identities::IdentityRow;
use crate::accounts::sessions::SessionRow;
use crate::accounts::{identities, merging, sessions};
use crate::admin::api::DataCopy;
use crate::admin::changes::store::deletion_of;
use crate::admin::changes::words::Done;
use crate::admin::lists::events;
use crate::admin::lists::events::EventRow;
use crate::admin::lists::person::{self, AlikeRow, NoteRow, PersonRow};
use crate::admin::lists::users::ListedUser;
use crate::admin::pages::changes::receipt;
use crate::admin::pages::event_view::{ClaimsChange, Day, EventView};
use crate::admin::pages::{Failure, Page, Signed, Staff, StaffForm, device, event_view, record};
use crate::config;
use crate::domain::text::{is_blank, one_line};
use crate::events::kind::HistoryCategory;
use crate::events::{DataAccess, EventKind};
use crate::provider_tokens::store as provider_tokens;
use crate::web::Db;
use crate::web::guard::ClientOrigin;

/// The numbers of events, of others' attempts and of possible duplicates on the page.
const EVENTS: i64 = 100;
const ATTEMPTS: i64 = 20;
const ALIKE: i64 = 5;
/// The number of sessions on the page, unless all are asked for.
const SESSIONS: usize = 5;
/// The longest note and the longest URL of a ticket, in characters.
const MAX_NOTE: usize = 2000;

pub(super) fn routes() -> Vec<Route> {
    routes![show, add_note, data]
}

#[derive(Serialize)]
struct Identity {
    #[serde(flatten)]
    row: IdentityRow,
    /// True if a token of the provider is stored, to be revoked when the identity is gone.
    token: bool,
}

#[derive(Serialize)]
struct Session {
    #[serde(flatten)]
    row: SessionRow,
    app: Option<String>,
    /// True if it was opened after a use that looks like theft, or shortly before.
    is_new: bool,
}

/// Kinds of events by which staff or a backend respond to a possible theft.
const CLOSING: [EventKind; 2] = [EventKind::SessionsEnded, EventKind::UserDisabled];

/// Returns the newest event that looks like theft, and after which neither staff nor a backend has
/// acted.
fn theft(events: &[EventRow]) -> Option<&EventRow> {
    let closes = |event: &EventRow| {
        CLOSING.iter().any(|kind| event.is(*kind))
            || event.is(EventKind::NoteAdded) && event.reason.as_deref() == Some(KNOWN)
    };
    let open = events.iter().take_while(|event| !closes(event));
    open.into_iter().find(|event| event_view::is_theft(event))
}

/// The reason of the event of a note that closes that question.
const KNOWN: &str = "known";

/// Returns the user's state for sign-ins, and the event that shows it: `disabled`, `suspended`,
/// `held`, `unreachable`, `theft`, `fresh` or `good`.
fn verdict<'a>(
    disabled: bool,
    identities: &[Identity],
    events: &'a [EventRow],
) -> (&'static str, Option<&'a EventRow>) {
    match identities.last() {
        _ if disabled => (
            "disabled",
            events
                .iter()
                .find(|event| event.is(EventKind::UserDisabled)),
        ),
        None => ("unreachable", None),
        Some(last)
            if identities
                .iter()
                .all(|identity| identity.row.suspended_at.is_some()) =>
        {
            (if last.row.held { "held" } else { "suspended" }, None)
        }
        Some(_) => match (
            theft(events),
            events.iter().find(|event| event_view::is_sign_in(event)),
        ) {
            (Some(theft), _) => ("theft", Some(theft)),
            (None, None) => ("fresh", None),
            (None, last) => ("good", last),
        },
    }
}

#[derive(Serialize)]
struct Chip {
    name: &'static str,
    label: &'static str,
    count: usize,
}

/// The form of a note, as it was sent last.
#[derive(Serialize)]
struct NoteForm {
    /// The id that the note will have. A form that is sent twice writes one note.
    id: Uuid,
    text: String,
    ticket: String,
    error: Option<&'static str>,
    ticket_error: Option<&'static str>,
}

#[derive(Serialize)]
pub(super) struct PersonPage {
    person: PersonRow,
    /// The latest change of the claims, if stored events contain one.
    claims_set: Option<ClaimsChange>,
    verdict: &'static str,
    /// The event that the verdict is about.
    cause: Option<EventView>,
    identities: Vec<Identity>,
    sessions: Vec<Session>,
    session_count: usize,
    alike: Vec<AlikeRow>,
    notes: Vec<NoteRow>,
    note: NoteForm,
    chips: Vec<Chip>,
    only: &'static str,
    /// True if these are all events that are stored.
    complete: bool,
    days: Vec<Day>,
    attempts: Vec<Day>,
    /// What the change has done after which it is shown.
    done: Option<String>,
}

#[derive(Serialize)]
struct Gone {
    id: Uuid,
    remains: Option<ListedUser>,
    receipt: Option<String>,
    /// The merge or the deletion that ended the user.
    event: Option<EventView>,
}

/// Shows the merge or the deletion of a user who no longer exists; 404 if neither is known.
async fn gone(staff: &Staff, id: Uuid, db: &Db, origin: &ClientOrigin) -> Result<Page, Failure> {
    let remains = match db.run(|_| merging::merged_into(db, id)).await? {
        Some(remains) => db
            .run(|_| person::user(db, remains))
            .await?
            .map(|found| found.user),
        None => None,
    };
    let receipt = db.run(|_| deletion_of(db, id)).await?.map(receipt::path);
    if let Some(remains) = &remains {
        record(db, &staff.member, DataAccess::person(remains.id), &origin.0).await?;
    } else if receipt.is_none() {
        return Err(Status::NotFound.into());
    }
    let events = events::of_user(db, id, EVENTS).await?;
    let end = events
        .into_iter()
        .find(|event| event.is(EventKind::UsersMerged) || event.is(EventKind::UserDeleted));
    let view = Gone {
        id,
        remains,
        receipt,
        event: end.map(EventView::from),
    };
    Ok(Page::new(staff, "admin/gone", &view).with(Status::NotFound))
}

#[get("/users/<id>")]
async fn show(
    staff: Staff,
    id: &str,
    uri: &Origin<'_>,
    db: &Db,
    settings: &State<config::Session>,
    origin: ClientOrigin,
) -> Result<Page, Failure> {
    page(
        &staff,
        id,
        &StaffForm::of(uri),
        [None, None],
        db,
        settings,
        &origin,
    )
    .await
}

/// Shows the user as the form's fields ask: `done`, the change after which it is shown;
/// `sessions=all`; `only` one category of events; and a note that was typed before, with the
/// mistakes in its text and its ticket.
async fn page(
    staff: &Staff,
    id: &str,
    form: &StaffForm,
    [error, ticket_error]: [Option<&'static str>; 2],
    db: &Db,
    settings: &config::Session,
    origin: &ClientOrigin,
) -> Result<Page, Failure> {
    let id = Uuid::parse_str(id).map_err(|_| Status::NotFound)?;
    let Some(found) = db.run(|_| person::user(db, id)).await? else {
        return gone(staff, id, db, origin).await;
    };
    let identities = db.run(|_| identities::of_user(db, id)).await?;
    let tokens = db.run(|_| provider_tokens::of_user(db, id)).await?;
    let sessions = db.run(|_| sessions::of_user(db, id)).await?;
    let alike = db.run(|_| person::alike(db, id, ALIKE)).await?;
    let notes = db.run(|_| person::notes(db, id)).await?;
    let events = events::of_user(db, id, EVENTS).await?;
    let attempts = events::claiming(db, id, ATTEMPTS).await?;
    record(db, &staff.member, DataAccess::person(id), &origin.0).await?;

    let identities: Vec<_> = identities
        .into_iter()
        .map(|row| Identity {
            token: tokens.contains(&row.id),
            row,
        })
        .collect();
    let (verdict, cause) = verdict(found.user.disabled_at.is_some(), &identities, &events);
    let suspect = theft(&events).map(|event| event.created_at - time::Duration::HOUR);
    let session_count = sessions.len();
    let shown_sessions = if form.get("sessions") == Some("all") {
        session_count
    } else {
        SESSIONS
    };
    let sessions = sessions.into_iter().take(shown_sessions).map(|row| {
        let is_new = suspect.is_some_and(|since| row.created_at >= since);
        Session {
            app: row.user_agent.as_deref().map(device::in_words),
            is_new,
            row,
        }
    });
    let only = form
        .get("only")
        .and_then(|name| name.parse::<HistoryCategory>().ok());
    let chip = |&category: &HistoryCategory| {
        let count = events
            .iter()
            .filter(|event| event_view::category(event) == category)
            .count();
        Chip {
            name: category.into(),
            label: category.label(),
            count,
        }
    };
    let chips = HistoryCategory::VARIANTS.iter().map(chip);
    let complete = i64::try_from(events.len()).is_ok_and(|count| count < EVENTS);
    let zone = staff.member.time_zone.as_deref();
    let done = form.get("done").and_then(|name| name.parse::<Done>().ok());
    let field = |name| form.get(name).unwrap_or_default().to_owned();
    let note = NoteForm {
        id: note_id(form),
        text: field("text"),
        ticket: field("ticket"),
        error,
        ticket_error,
    };
    let view = PersonPage {
        claims_set: ClaimsChange::latest(&events),
        verdict,
        cause: cause.cloned().map(EventView::from),
        identities,
        sessions: sessions.collect(),
        session_count,
        alike,
        notes,
        note,
        chips: chips.filter(|chip| chip.count > 0).collect(),
        only: only.map_or("", Into::into),
        complete,
        days: Day::all(EventView::of_history(events, complete, only), id, zone),
        attempts: Day::all(
            attempts.into_iter().map(EventView::from).collect(),
            id,
            zone,
        ),
        done: done.map(|done| done.words(settings.access_token_ttl.div_ceil(60))),
        person: found,
    };
    Ok(Page::new(staff, "admin/person", &view))
}

/// Returns the id that the form of a note has, or a new one.
fn note_id(form: &StaffForm) -> Uuid {
    form.get("note")
        .and_then(|id| Uuid::parse_str(id).ok())
        .unwrap_or_else(Uuid::now_v7)
}

#[post("/users/<id>/notes", data = "<sent>")]
async fn add_note(
    id: &str,
    sent: Signed,
    db: &Db,
    settings: &State<config::Session>,
    origin: ClientOrigin,
) -> Result<Redirect, Failure> {
    let Signed { staff, form } = sent;
    let user = Uuid::parse_str(id).map_err(|_| Status::NotFound)?;
    let [text, ticket] = ["text", "ticket"].map(|name| form.get(name).unwrap_or_default());
    let lines: Vec<_> = text.lines().map(one_line).collect();
    let text = lines.join("\n").trim().to_owned();
    let error = match text.chars().count() {
        _ if is_blank(&text) => Some("Write something."),
        ..=MAX_NOTE => None,
        _ => Some("Write at most 2000 characters."),
    };
    let is_link =
        |url: &Url| matches!(url.scheme(), "https" | "http") && url.as_str().len() <= MAX_NOTE;
    let url = Url::parse(ticket).ok().filter(is_link);
    let ticket_error = (url.is_none() && !ticket.is_empty())
        .then_some("Give the whole address of the ticket, which begins with https://.");
    if error.is_some() || ticket_error.is_some() {
        let page = page(
            &staff,
            id,
            &form,
            [error, ticket_error],
            db,
            settings,
            &origin,
        )
        .await?;
        return Err(Failure::Shown(page.with(Status::BadRequest)));
    }
    let id_of_note = note_id(&form);
    let note = (text.as_str(), url.as_ref().map(Url::as_str));
    let known = form.get("known").map(|_| KNOWN);
    let by = staff.by("", &origin.0);
    let add = || person::add_note(db, id_of_note, user, note, known, by);
    let added = db.change(add, |added| !added);
    if !added.await? {
        return Err(Status::NotFound.into());
    }
    Ok(Redirect::to(format!(
        "/admin/users/{user}?done={}",
        <&str>::from(Done::Note)
    )))
}

/// The identities, claims, live sessions, notes and latest events of a user, as a file.
#[derive(Responder)]
struct File {
    json: RawJson<String>,
    name: Header<'static>,
    cache: Header<'static>,
}

#[get("/users/<id>/data.json")]
async fn data(staff: Staff, id: &str, db: &Db, origin: ClientOrigin) -> Result<File, Failure> {
    let id = Uuid::parse_str(id).map_err(|_| Status::NotFound)?;
    let copy = DataCopy::of(db, id).await?.ok_or(Status::NotFound)?;
    record(db, &staff.member, DataAccess::person(id), &origin.0).await?;
    let json = serde_json::to_string_pretty(&copy).map_err(|_| Status::InternalServerError)?;
    let name = Header::new(
        "Content-Disposition",
        format!("attachment; filename=\"{id}.json\""),
    );
    Ok(File {
        json: RawJson(json),
        name,
        cache: Header::new("Cache-Control", "no-store"),
    })
}
