//! The pages of webhooks: the receivers, their messages that were not accepted yet, sending these
//! again, and a test.

use rocket::http::Status;
use rocket::http::uri::Origin;
use rocket::response::Redirect;
use rocket::{FromForm, Route, State, get, post, routes};
use serde::Serialize;
use time::OffsetDateTime;
use url::form_urlencoded::byte_serialize;
use uuid::Uuid;

use crate::admin::changes::words::{Line, Words};
use crate::admin::pages::{AdminStaff, Failure, Page, Question, Signed, Staff, StaffForm};
use crate::clock;
use crate::config::Webhook;
use crate::web::guard::ClientOrigin;
use crate::web::{Db, rfc3339};
use crate::webhooks::store::{Summary, Unaccepted, Which, exists, summaries, unaccepted};
use crate::webhooks::{Webhooks, replay};

pub(super) fn routes() -> Vec<Route> {
    routes![list, show, ask_again, send_again, test]
}

const NOT_CONFIGURED: &str =
    "This instance of the service has no webhook of that name in its settings.";

const MESSAGES: i64 = 50;

#[derive(Serialize)]
pub(super) struct Receiver {
    #[serde(flatten)]
    queue: Summary,
    /// The host, if this instance sends to it.
    host: Option<String>,
    /// `healthy`, `trying again`, or `behind` if it needs a person.
    pub state: &'static str,
}

impl Receiver {
    pub fn new(queue: Summary, webhooks: &Webhooks) -> Self {
        let state = match &queue {
            queue if queue.is_behind() => "behind",
            Summary {
                failure: Some(_), ..
            } => "trying again",
            _ => "healthy",
        };
        let host = webhooks.of_name(&queue.name).as_ref().map(Webhook::host);
        Self { queue, host, state }
    }
}

#[derive(Serialize)]
struct Messages {
    name: String,
    /// True if this instance sends to it.
    can_test: bool,
    /// `failed`, `parked`, or empty for all.
    state: &'static str,
    rows: Vec<Unaccepted>,
    /// The place of the next ones.
    next: Option<i64>,
}

#[derive(Serialize)]
struct WebhooksPage {
    now: String,
    receivers: Vec<Receiver>,
    messages: Option<Messages>,
    /// The number of messages that were just made due.
    sent: Option<u64>,
    tested: Option<Result<(), String>>,
}

#[derive(Default, FromForm)]
struct Shown<'r> {
    /// `failed` or `parked`; all otherwise.
    state: Option<&'r str>,
    after: Option<i64>,
    sent: Option<u64>,
}

async fn page(
    staff: &Staff,
    name: Option<&str>,
    shown: &Shown<'_>,
    tested: Option<Result<(), String>>,
    webhooks: &Webhooks,
    db: &Db,
) -> Result<Page, Failure> {
    let mut messages = None;
    if let Some(name) = name {
        if !db.run(|_| exists(db, name)).await? {
            return Err(Status::NotFound.into());
        }
        let (state, which) = match shown.state {
            Some("failed") => ("failed", Which::Failed),
            Some("parked") => ("parked", Which::Parked),
            _ => ("", Which::All),
        };
        let mut rows = db
            .run(|_| unaccepted(db, name, which, shown.after.unwrap_or(0), MESSAGES + 1))
            .await?;
        let more = i64::try_from(rows.len()).is_ok_and(|count| count > MESSAGES);
        rows.truncate(rows.len() - usize::from(more));
        messages = Some(Messages {
            name: name.to_owned(),
            can_test: webhooks.of_name(name).is_some(),
            state,
            next: rows.last().filter(|_| more).map(|last| last.id),
            rows,
        });
    }
    let receivers = db.run(|_| summaries(db, &[])).await?.into_iter();
    let receivers = receivers
        .map(|queue| Receiver::new(queue, webhooks))
        .collect();
    let now = OffsetDateTime::from_unix_timestamp(clock::now())
        .map(rfc3339)
        .unwrap_or_default();
    Ok(Page::new(
        staff,
        "admin/webhooks",
        &WebhooksPage {
            now,
            receivers,
            messages,
            sent: shown.sent,
            tested,
        },
    ))
}

#[get("/webhooks")]
async fn list(staff: AdminStaff, webhooks: &State<Webhooks>, db: &Db) -> Result<Page, Failure> {
    page(&staff.0, None, &Shown::default(), None, webhooks, db).await
}

#[get("/webhooks/<name>?<shown..>")]
async fn show(
    staff: AdminStaff,
    name: &str,
    shown: Shown<'_>,
    webhooks: &State<Webhooks>,
    db: &Db,
) -> Result<Page, Failure> {
    page(&staff.0, Some(name), &shown, None, webhooks, db).await
}

#[post("/webhooks/<name>/test", data = "<_form>")]
async fn test(
    staff: AdminStaff,
    name: &str,
    _form: StaffForm,
    webhooks: &State<Webhooks>,
    db: &Db,
) -> Result<Page, Failure> {
    let sent = webhooks
        .test(name)
        .await
        .ok_or(Failure::Conflict(NOT_CONFIGURED))?;
    let tested = sent.map(drop).map_err(|failed| failed.to_string());
    page(
        &staff.0,
        Some(name),
        &Shown::default(),
        Some(tested),
        webhooks,
        db,
    )
    .await
}

fn path(name: &str) -> String {
    format!(
        "/admin/webhooks/{}",
        byte_serialize(name.as_bytes()).collect::<String>()
    )
}

/// Asks whether that message to a receiver, or all, is to be sent again.
fn question(name: &str, only: Option<Uuid>) -> Question {
    let title = match only {
        Some(id) => format!("Send the message {id} again"),
        None => format!("Send all messages to {name} again"),
    };
    let mut steps: Vec<Line> = match only {
        Some(_) => vec![
            format!("The message is sent to {name} now, if no earlier message of its user waits.")
                .into(),
        ],
        None => vec![
            format!("Each message to {name} that is parked or waits after a failure is sent now.")
                .into(),
            "Messages about one user are sent one after the other, the oldest first.".into(),
        ],
    };
    steps.push("A message that was parked has all its attempts again.".into());
    let trail = vec![
        ("/admin/webhooks".into(), "Webhooks".into()),
        (path(name), name.to_owned()),
    ];
    let action = format!("{}/replay", path(name));
    let fields = only
        .map(|id| ("message", id.to_string()))
        .into_iter()
        .collect();
    let words = Words::new(title, steps, "Send again");
    Question::new(words, trail, action).with(fields)
}

/// Reads the id of the message that a form or link is about; `None` if it is about all messages.
fn only(form: &StaffForm) -> Result<Option<Uuid>, Status> {
    form.get("message")
        .map(|id| Uuid::parse_str(id).map_err(|_| Status::NotFound))
        .transpose()
}

#[get("/webhooks/<name>/replay")]
async fn ask_again(
    staff: AdminStaff,
    name: &str,
    uri: &Origin<'_>,
    db: &Db,
) -> Result<Page, Failure> {
    let form = StaffForm::of(uri);
    if !db.run(|_| exists(db, name)).await? {
        return Err(Status::NotFound.into());
    }
    Ok(question(name, only(&form)?).ask(&staff.0, &form))
}

#[post("/webhooks/<name>/replay", data = "<sent>")]
async fn send_again(
    name: &str,
    sent: Signed,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Redirect, Failure> {
    let Signed { staff, form } = sent.of_admin()?;
    let only = only(&form)?;
    let reason = question(name, only).confirmed(&staff, &form)?;
    if !db.run(|_| exists(db, name)).await? {
        return Err(Status::NotFound.into());
    }
    let replayed = replay(db, name, only, staff.by(&reason, &origin.0)).await?;
    let due = replayed.ok_or(Status::Forbidden)?.due;
    Ok(Redirect::to(format!("{}?sent={due}", path(name))))
}
