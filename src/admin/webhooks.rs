//! The page of webhooks: what waits for each receiver, what none has accepted, and sending it again.

use rocket::http::Status;
use rocket::response::Redirect;
use rocket::{Route, State, get, post, routes};
use serde::Serialize;

use super::failure::Failure;
use super::page::{Page, View};
use crate::admin::guard::{AdminStaff, StaffForm};
use crate::clock;
use crate::config::Webhook;
use crate::store::error::retrying;
use crate::web::database::Db;
use crate::web::guard::ClientOrigin;
use crate::web::http::rfc3339::rfc3339;
use crate::webhooks::store::{Summary, exists, summaries};
use crate::webhooks::{Webhooks, replay};

pub(super) fn routes() -> Vec<Route> {
    routes![list, send_again]
}

/// The time in seconds after which a waiting message means that its receiver is behind.
const LATE: i64 = 600;

/// Returns true if a receiver's messages need a person: some are parked, or the oldest waits for long.
pub(super) fn is_behind(queue: &Summary) -> bool {
    queue.parked > 0 || queue.oldest_at.is_some_and(|at| clock::now() - at.unix_timestamp() > LATE)
}

#[derive(Serialize)]
pub(super) struct Receiver {
    pub name: String,
    /// The host, if this instance sends to it.
    host: Option<String>,
    /// `healthy`, `trying again`, or `behind` if it needs a person.
    pub state: &'static str,
    waiting: i64,
    oldest_at: Option<String>,
    parked: i64,
    failure: Option<String>,
}

impl Receiver {
    pub fn new(queue: Summary, webhooks: &Webhooks) -> Self {
        let state = match &queue {
            queue if is_behind(queue) => "behind",
            Summary { failure: Some(_), .. } => "trying again",
            _ => "healthy",
        };
        let mut configured = webhooks.configured();
        Self {
            host: configured.find(|webhook| webhook.name == queue.name).map(Webhook::host),
            name: queue.name,
            state,
            waiting: queue.waiting,
            oldest_at: queue.oldest_at.map(rfc3339),
            parked: queue.parked,
            failure: queue.failure,
        }
    }

    #[cfg(test)]
    pub fn sample(name: &str, waiting: i64, parked: i64) -> Self {
        Self {
            name: name.into(),
            host: (waiting > 0).then(|| super::samples::NASTY.into()),
            state: if parked > 0 { "behind" } else { "healthy" },
            waiting,
            oldest_at: (waiting > 0).then(|| super::samples::TIME.into()),
            parked,
            failure: (parked > 0).then(|| super::samples::NASTY.into()),
        }
    }
}

#[derive(Serialize)]
pub(super) struct WebhooksPage {
    receivers: Vec<Receiver>,
    done: bool,
}

impl WebhooksPage {
    fn new(summaries: Vec<Summary>, webhooks: &Webhooks, done: bool) -> Self {
        Self { receivers: summaries.into_iter().map(|queue| Receiver::new(queue, webhooks)).collect(), done }
    }
}

impl View for WebhooksPage {
    const TEMPLATE: &'static str = "admin/webhooks";

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        let receivers =
            vec![Receiver::sample("shop", 0, 0), Receiver::sample(super::samples::NASTY, 5, 100_000)];
        vec![Self { receivers, done: true }, Self { receivers: Vec::new(), done: false }]
    }
}

#[get("/webhooks?<done>")]
async fn list(
    staff: AdminStaff,
    done: Option<&str>,
    webhooks: &State<Webhooks>,
    db: &Db,
) -> Result<Page, Failure> {
    let page = WebhooksPage::new(retrying!(summaries(db.pool(), &[]))?, webhooks, done.is_some());
    Ok(Page::new(&staff.0, &page))
}

#[post("/webhooks/<name>/replay", data = "<form>")]
async fn send_again(
    staff: AdminStaff,
    name: &str,
    form: StaffForm,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Redirect, Failure> {
    let reason = form.reason()?;
    let by = staff.0.by(&reason, &origin.0);
    if !retrying!(exists(db.pool(), name))? {
        return Err(Status::NotFound.into());
    }
    replay(db.pool(), name, None, by).await?.ok_or(Status::Forbidden)?;
    Ok(Redirect::to("/admin/webhooks?done=replayed"))
}
