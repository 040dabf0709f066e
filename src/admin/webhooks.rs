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
struct Receiver {
    name: String,
    /// The host, if this instance sends to it.
    host: Option<String>,
    waiting: i64,
    oldest_at: Option<String>,
    parked: i64,
    failure: Option<String>,
}

#[derive(Serialize)]
pub(super) struct WebhooksPage {
    receivers: Vec<Receiver>,
    done: bool,
}

impl WebhooksPage {
    fn new(summaries: Vec<Summary>, webhooks: &Webhooks, done: bool) -> Self {
        let host = |name: &str| webhooks.configured().find(|one| one.name == name).map(Webhook::host);
        let receiver = |summary: Summary| Receiver {
            host: host(&summary.name),
            name: summary.name,
            waiting: summary.waiting,
            oldest_at: summary.oldest_at.map(rfc3339),
            parked: summary.parked,
            failure: summary.failure,
        };
        Self { receivers: summaries.into_iter().map(receiver).collect(), done }
    }
}

impl View for WebhooksPage {
    const TEMPLATE: &'static str = "admin/webhooks";

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        let receiver = |name: &str, waiting, parked| Receiver {
            name: name.into(),
            host: (waiting > 0).then(|| super::samples::NASTY.into()),
            waiting,
            oldest_at: (waiting > 0).then(|| super::samples::TIME.into()),
            parked,
            failure: (parked > 0).then(|| super::samples::NASTY.into()),
        };
        let receivers = vec![receiver("shop", 0, 0), receiver(super::samples::NASTY, 5, 100_000)];
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
