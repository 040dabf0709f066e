//! The page of the reader's time zone.

use jiff::tz::{self, TimeZone};
use rocket::http::Status;
use rocket::response::Redirect;
use rocket::{Route, get, post, routes};
use serde::Serialize;

use crate::admin::pages::{Failure, Page, Staff, StaffForm};
use crate::admin::staff::sign_in::store as members;
use crate::web::Db;

pub(super) fn routes() -> Vec<Route> {
    routes![show, read_in_zone]
}

#[derive(Serialize)]
struct TimeZonePage {
    /// The names of the zones by place, and UTC.
    zones: Vec<String>,
    done: bool,
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "Rocket passes guards by value"
)]
#[get("/time-zone?<done>")]
fn show(staff: Staff, done: Option<&str>) -> Page {
    let names = tz::db().available().map(|name| name.to_string());
    let zones =
        names.filter(|name| name == "UTC" || name.contains('/') && !name.starts_with("Etc/"));
    Page::new(
        &staff,
        "admin/time_zone",
        &TimeZonePage {
            zones: zones.collect(),
            done: done.is_some(),
        },
    )
}

#[post("/time-zone", data = "<form>")]
async fn read_in_zone(staff: Staff, form: StaffForm, db: &Db) -> Result<Redirect, Failure> {
    let zone = form.get("zone");
    if zone.is_some_and(|name| TimeZone::get(name).is_err()) {
        return Err(Status::BadRequest.into());
    }
    members::set_time_zone(db, staff.member.id, zone).await?;
    Ok(Redirect::to("/admin/time-zone?done=yes"))
}
