//! The staff page: access to the admin pages, the API keys, and the reader's time zone.

pub mod access;
pub(super) mod keys;
pub mod store;

use jiff::tz::{self, TimeZone};
use rocket::http::Status;
use rocket::response::Redirect;
use rocket::{Route, get, post, routes};
use serde::Serialize;
use sqlx::PgPool;
use time::OffsetDateTime;

use self::keys::Key;
use self::store::Changed;
use super::dates::day_before;
use super::failure::Failure;
use super::page::{Page, View};
use crate::admin::api_keys;
use crate::admin::guard::{AdminStaff, Staff, StaffForm};
use crate::admin::sign_in::store::{self as members, StaffRow};
use crate::clock;
use crate::domain::email::Email;
use crate::domain::staff::Access;
use crate::store::error::{Error, retrying};
use crate::web::database::Db;
use crate::web::guard::ClientOrigin;
use crate::web::http::rfc3339::rfc3339;

const ONESELF: &str = "You cannot change your own access. Ask another admin.";
const LAST_ADMIN: &str =
    "This is the last admin whose access does not end. Make another member an admin without an end first.";
const NO_DAY: &str = "Access ends at the end of a day that is not over. Choose such a day, or none.";

pub(super) fn routes() -> Vec<Route> {
    [routes![list, give, take_away, read_in_zone], keys::routes()].concat()
}

#[derive(Serialize)]
struct Member {
    email: String,
    role: &'static str,
    may_export: bool,
    ends_at: Option<String>,
    /// The last day of access as it was typed, if the end shows it.
    last_day: Option<String>,
    /// True if access has ended.
    ended: bool,
    created_at: String,
    last_seen_at: Option<String>,
    /// The provider's name and the subject, once the member has signed in.
    identity: Option<(String, String)>,
    /// True for the reader's own entry.
    oneself: bool,
}

impl Member {
    fn new(row: StaffRow, reader: &StaffRow) -> Self {
        Self {
            oneself: row.email == reader.email,
            email: row.email,
            role: row.access.role.into(),
            may_export: row.access.exports(),
            ends_at: row.access.ends_at.map(rfc3339),
            last_day: row.access.ends_at.and_then(|end| day_before(end, reader.time_zone.as_deref())),
            ended: row.access.ends_at.is_some_and(|end| end.unix_timestamp() <= clock::now()),
            created_at: rfc3339(row.created_at),
            last_seen_at: row.last_seen_at.map(rfc3339),
            identity: row.identity.map(|identity| (identity.provider, identity.subject)),
        }
    }
}

#[derive(Serialize)]
pub(super) struct StaffPage {
    members: Vec<Member>,
    keys: Vec<Key>,
    /// The names of the time zones to choose from.
    zones: Vec<String>,
    done: Option<&'static str>,
}

impl View for StaffPage {
    const TEMPLATE: &'static str = "admin/staff";

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        let member = |role, oneself: bool| Member {
            email: super::samples::NASTY.into(),
            role,
            may_export: oneself,
            ends_at: (role == "support").then(|| super::samples::TIME.into()),
            last_day: None,
            ended: false,
            created_at: super::samples::TIME.into(),
            last_seen_at: (!oneself).then(|| super::samples::TIME.into()),
            identity: oneself.then(|| (super::samples::NASTY.into(), super::samples::NASTY.into())),
            oneself,
        };
        let members = vec![member("admin", true), member("support", false), member("admin", false)];
        let empty = Self { members: Vec::new(), keys: Vec::new(), zones: zones(), done: None };
        vec![Self { members, keys: Key::samples(), zones: zones(), done: done(Some("given")) }, empty]
    }
}

impl StaffPage {
    async fn read(pool: &PgPool, staff: &Staff) -> Result<Self, Error> {
        let members = retrying!(members::all(pool))?;
        let members = members.into_iter().map(|row| Member::new(row, &staff.member)).collect();
        let zone = staff.member.time_zone.as_deref();
        let keys =
            retrying!(api_keys::store::all(pool))?.into_iter().map(|row| Key::new(row, zone)).collect();
        Ok(Self { members, keys, zones: zones(), done: None })
    }
}

/// Returns the names of zones by place, and UTC.
fn zones() -> Vec<String> {
    let names = tz::db().available().map(|name| name.to_string());
    names.filter(|name| name == "UTC" || name.contains('/') && !name.starts_with("Etc/")).collect()
}

fn done(name: Option<&str>) -> Option<&'static str> {
    match name? {
        "given" => Some("Access is given. It begins with the next sign-in."),
        "taken" => Some("Access is revoked, and the member is signed out."),
        "revoked" => Some("The API key is revoked. It is refused from now on."),
        "zone" => Some("Times are now shown in that zone."),
        _ => None,
    }
}

#[get("/staff?<done>")]
async fn list(staff: Staff, done: Option<&str>, db: &Db) -> Result<Page, Failure> {
    let page = StaffPage::read(db.pool(), &staff).await?;
    Ok(Page::new(&staff, &StaffPage { done: self::done(done), ..page }))
}

/// Returns the e-mail address of the member whom a form concerns; fails if it is the reader's own.
fn whose(form: &StaffForm, staff: &Staff) -> Result<Email, Failure> {
    let email = form.get("email").and_then(Email::parse).ok_or(Status::BadRequest)?;
    if email.folded() == staff.member.email { Err(Failure::Conflict(ONESELF)) } else { Ok(email) }
}

/// Returns the end of the day that a form names, in the reader's time zone.
fn until(form: &StaffForm, staff: &Staff) -> Result<Option<OffsetDateTime>, Failure> {
    let end = |day| access::end(day, staff.member.time_zone.as_deref()).ok_or(Failure::Conflict(NO_DAY));
    form.get("until").map(end).transpose()
}

#[post("/staff", data = "<form>")]
async fn give(
    staff: AdminStaff,
    form: StaffForm,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Redirect, Failure> {
    let email = whose(&form, &staff.0)?;
    let role = form.get("role").and_then(|name| name.parse().ok()).ok_or(Status::BadRequest)?;
    let reason = form.reason()?;
    let ends_at = until(&form, &staff.0)?;
    let by = staff.0.by(&reason, &origin.0);
    let access = Access { role, may_export: form.get("export").is_some(), ends_at };
    match access::give(db.pool(), &email, access, by).await? {
        Changed::Done | Changed::Already => Ok(Redirect::to("/admin/staff?done=given")),
        Changed::LastAdmin => Err(Failure::Conflict(LAST_ADMIN)),
        Changed::NotPermitted => Err(Status::Forbidden.into()),
    }
}

#[post("/staff/remove", data = "<form>")]
async fn take_away(
    staff: AdminStaff,
    form: StaffForm,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Redirect, Failure> {
    let email = whose(&form, &staff.0)?;
    let reason = form.reason()?;
    let by = staff.0.by(&reason, &origin.0);
    match access::take_away(db.pool(), &email, by).await? {
        Changed::Done | Changed::Already => Ok(Redirect::to("/admin/staff?done=taken")),
        Changed::LastAdmin => Err(Failure::Conflict(LAST_ADMIN)),
        Changed::NotPermitted => Err(Status::Forbidden.into()),
    }
}

#[post("/time-zone", data = "<form>")]
async fn read_in_zone(staff: Staff, form: StaffForm, db: &Db) -> Result<Redirect, Failure> {
    let zone = form.get("zone");
    if zone.is_some_and(|name| TimeZone::get(name).is_err()) {
        return Err(Status::BadRequest.into());
    }
    members::set_time_zone(db.pool(), staff.member.id, zone).await?;
    Ok(Redirect::to("/admin/staff?done=zone"))
}
