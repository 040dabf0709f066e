//! API keys on the staff page. A new key is shown in the answer to its form, and never again.

use rocket::http::Status;
use rocket::response::Redirect;
use rocket::{Route, post, routes};
use serde::Serialize;

use super::until;
use crate::admin::api_keys::store::{Changed, KeyRow};
use crate::admin::api_keys::{add, revoke};
use crate::admin::dates::day_before;
use crate::admin::failure::Failure;
use crate::admin::guard::{AdminStaff, StaffForm};
use crate::admin::page::{Page, View};
use crate::clock;
use crate::domain::api_key::KeyName;
use crate::web::database::Db;
use crate::web::guard::ClientOrigin;
use crate::web::http::rfc3339::rfc3339;

const NAME_TAKEN: &str = "There is an API key with this name. Revoke it first, or choose another name.";
const NO_KEY: &str = "There is no API key with this name any more.";

pub(super) fn routes() -> Vec<Route> {
    routes![add_key, revoke_key]
}

#[derive(Serialize)]
pub(super) struct Key {
    name: String,
    role: &'static str,
    created_at: String,
    created_by: String,
    expires_at: Option<String>,
    /// The last day as it was typed, if the end shows it.
    last_day: Option<String>,
    /// True if the key has expired.
    expired: bool,
    last_used_at: Option<String>,
}

/// The page of a key that was just added. It has nothing else: the key is not shown again, and no read that fails may lose
/// it.
#[derive(Serialize)]
pub(in crate::admin) struct NewKey {
    name: String,
    key: String,
}

impl Key {
    /// Describes a key to a reader in that time zone.
    pub(super) fn new(row: KeyRow, zone: Option<&str>) -> Self {
        Self {
            name: row.name,
            role: row.role.into(),
            created_at: rfc3339(row.created_at),
            created_by: row.created_by,
            expires_at: row.expires_at.map(rfc3339),
            last_day: row.expires_at.and_then(|end| day_before(end, zone)),
            expired: row.expires_at.is_some_and(|end| end.unix_timestamp() <= clock::now()),
            last_used_at: row.last_used_at.map(rfc3339),
        }
    }
}

#[cfg(test)]
impl Key {
    /// Returns a key with as few fields as possible, and one with all.
    pub(super) fn samples() -> Vec<Self> {
        use crate::admin::samples::{NASTY, TIME};
        let key = |time: Option<&str>, expired: bool| Self {
            name: "shop-backend".into(),
            role: "reader",
            created_at: TIME.into(),
            created_by: NASTY.into(),
            expires_at: time.map(Into::into),
            last_day: expired.then(|| "2026-07-01 (UTC)".into()),
            expired,
            last_used_at: time.map(Into::into),
        };
        vec![key(None, false), key(Some(TIME), false), key(Some(TIME), true)]
    }
}

impl View for NewKey {
    const TEMPLATE: &'static str = "admin/new_key";

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        vec![Self { name: "shop-backend".into(), key: format!("vst_{}", "x".repeat(43)) }]
    }
}

fn name(form: &StaffForm) -> Result<KeyName, Status> {
    form.get("name").and_then(|name| name.parse().ok()).ok_or(Status::BadRequest)
}

#[post("/staff/keys", data = "<form>")]
async fn add_key(staff: AdminStaff, form: StaffForm, db: &Db, origin: ClientOrigin) -> Result<Page, Failure> {
    let (name, reason) = (name(&form)?, form.reason()?);
    let role = form.get("role").and_then(|name| name.parse().ok()).ok_or(Status::BadRequest)?;
    let expires_at = until(&form, &staff.0)?;
    let by = staff.0.by(&reason, &origin.0);
    match add(db.pool(), &name, role, expires_at, by).await? {
        Ok(key) => Ok(Page::new(&staff.0, &NewKey { name: name.to_string(), key: key.expose().clone() })),
        Err(Changed::NotPermitted) => Err(Status::Forbidden.into()),
        Err(Changed::Done | Changed::Already) => Err(Failure::Conflict(NAME_TAKEN)),
    }
}

#[post("/staff/keys/revoke", data = "<form>")]
async fn revoke_key(
    staff: AdminStaff,
    form: StaffForm,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Redirect, Failure> {
    let (name, reason) = (name(&form)?, form.reason()?);
    let by = staff.0.by(&reason, &origin.0);
    match revoke(db.pool(), &name, by).await? {
        Changed::Done => Ok(Redirect::to("/admin/staff?done=revoked")),
        Changed::Already => Err(Failure::Conflict(NO_KEY)),
        Changed::NotPermitted => Err(Status::Forbidden.into()),
    }
}
