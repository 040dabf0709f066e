//! The page of API keys. A new key is shown in the answer to its form, and never again.

use std::collections::BTreeMap;

use rocket::http::Status;
use rocket::http::uri::Origin;
use rocket::response::Redirect;
use rocket::{Route, get, post, routes};
use serde::Serialize;
use time::OffsetDateTime;

use super::{Mistake, ending, until};
use crate::admin::api_keys::store::{self, KeyRow};
use crate::admin::api_keys::{add, revoke};
use crate::admin::dates::day_before;
use crate::admin::staff::store::Changed;
use crate::admin::{AdminStaff, Answer, Failure, Page, Question, Signed, Staff, StaffForm};
use crate::clock;
use crate::domain::{KeyName, KeyRole};
use crate::store::retrying;
use crate::web::guard::ClientOrigin;
use crate::web::{Db, rfc3339};

const NAME: &str = "Use lower-case letters, digits and hyphens, at most 40.";
const NAME_TAKEN: &str = "There is an API key with this name. Revoke it first, or choose another name.";
const NO_KEY: &str = "There is no API key with this name any more.";

/// The time in seconds after which a form that adds a key again is no reload of the answer with the key.
const RELOAD: i64 = 3600;

pub(super) fn routes() -> Vec<Route> {
    routes![list, ask_add_key, add_key, ask_revoke_key, revoke_key]
}

#[derive(Serialize)]
struct Key {
    name: String,
    role: &'static str,
    created_at: String,
    created_by: String,
    expires_at: Option<String>,
    /// The last day as it was typed, if the end shows it.
    last_day: Option<String>,
    expired: bool,
    last_used_at: Option<String>,
}

impl Key {
    fn new(row: KeyRow, zone: Option<&str>) -> Self {
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

#[derive(Serialize)]
struct KeysPage<'r> {
    keys: Vec<Key>,
    sent: BTreeMap<&'r str, &'r str>,
    mistake: Option<Mistake>,
}

/// The page of a key that was just added. It has nothing else: the key is not shown again, and no read that fails may lose
/// it.
#[derive(Serialize)]
struct NewKey {
    name: String,
    /// The key, unless it was shown before.
    key: Option<String>,
}

async fn page(staff: &Staff, form: &StaffForm, mistake: Option<Mistake>, db: &Db) -> Result<Page, Failure> {
    let (rows, zone) = (retrying!(store::all(db.pool()))?, staff.member.time_zone.as_deref());
    let keys = rows.into_iter().map(|row| Key::new(row, zone)).collect();
    let status = if mistake.is_some() { Status::BadRequest } else { Status::Ok };
    Ok(Page::new(staff, "admin/keys", &KeysPage { keys, sent: form.fields(), mistake }).with(status))
}

#[get("/keys")]
async fn list(staff: Staff, uri: &Origin<'_>, db: &Db) -> Result<Page, Failure> {
    page(&staff, &StaffForm::of(uri), None, db).await
}

fn trail() -> Vec<(String, String)> {
    vec![("/admin/staff".into(), "Staff".into()), ("/admin/keys".into(), "API keys".into())]
}

fn name(form: &StaffForm) -> Result<KeyName, Mistake> {
    form.get("name").and_then(|name| name.parse().ok()).ok_or(("name", NAME))
}

struct Added {
    name: KeyName,
    role: KeyRole,
    expires_at: Option<OffsetDateTime>,
    last_day: Option<String>,
}

impl Added {
    fn read(form: &StaffForm, staff: &Staff) -> Result<Self, Mistake> {
        let name = name(form)?;
        let role = form.get("role").and_then(|name| name.parse().ok()).ok_or(("role", "Choose a role."))?;
        let (expires_at, last_day) = until(form, staff)?.unzip();
        Ok(Self { name, role, expires_at, last_day })
    }

    fn question(&self, staff: &Staff) -> Question {
        let title = format!("Add the API key {}", self.name);
        let may = match self.role {
            KeyRole::Reader => "read users",
            KeyRole::Support => "read users and end their sessions",
            KeyRole::Admin => "read and change users, and everything else that the API has",
        };
        let mut question = Question::new(title, trail(), "/admin/keys".into(), "Add the key");
        question.changes = vec![
            format!("A program with this key can {may}."),
            ending("The key", self.last_day.as_deref(), staff),
            "The next page shows the key, once. Have a place ready to store it.".into(),
        ];
        let role: &str = self.role.into();
        question.fields = vec![("name", self.name.to_string()), ("role", role.to_owned())];
        question.fields.extend(self.last_day.clone().map(|day| ("until", day)));
        question
    }
}

#[get("/keys/add")]
async fn ask_add_key(staff: AdminStaff, uri: &Origin<'_>, db: &Db) -> Result<Page, Failure> {
    let (staff, form) = (staff.0, StaffForm::of(uri));
    match Added::read(&form, &staff) {
        Ok(added) => Ok(added.question(&staff).ask(&staff, &form)),
        Err(mistake) => page(&staff, &form, Some(mistake), db).await,
    }
}

#[post("/keys", data = "<sent>")]
async fn add_key(sent: Signed, db: &Db, origin: ClientOrigin) -> Result<Page, Failure> {
    let Signed { staff, form } = sent.of_admin()?;
    let added = match Added::read(&form, &staff) {
        Ok(added) => added,
        Err(mistake) => return page(&staff, &form, Some(mistake), db).await,
    };
    let Ok(reason) = form.reason() else { return Ok(added.question(&staff).again(&staff, &form)) };
    let (name, by) = (added.name.to_string(), staff.by(&reason, &origin.0));
    match add(db.pool(), &added.name, added.role, added.expires_at, by).await? {
        Ok(key) => Ok(Page::new(&staff, "admin/new_key", &NewKey { name, key: Some(key.expose().clone()) })),
        Err(Changed::NotPermitted) => Err(Status::Forbidden.into()),
        Err(_) => {
            let rows = retrying!(store::all(db.pool()))?;
            let is_reload = rows.iter().any(|row| {
                let age = clock::now() - row.created_at.unix_timestamp();
                row.name == name && row.created_by == staff.member.email && age < RELOAD
            });
            if is_reload {
                return Ok(Page::new(&staff, "admin/new_key", &NewKey { name, key: None }));
            }
            page(&staff, &form, Some(("name", NAME_TAKEN)), db).await
        }
    }
}

fn revoking(name: &KeyName) -> Question {
    let title = format!("Revoke the API key {name}");
    let mut question = Question::new(title, trail(), "/admin/keys/revoke".into(), "Revoke the key");
    question.changes = vec![
        format!("The service refuses the key {name} at once, and for ever."),
        "A program that uses it needs another key to go on.".into(),
    ];
    question.fields = vec![("name", name.to_string())];
    question
}

#[get("/keys/revoke")]
async fn ask_revoke_key(staff: AdminStaff, uri: &Origin<'_>, db: &Db) -> Result<Page, Failure> {
    let (staff, form) = (staff.0, StaffForm::of(uri));
    match name(&form) {
        Ok(name) => Ok(revoking(&name).ask(&staff, &form)),
        Err(mistake) => page(&staff, &form, Some(mistake), db).await,
    }
}

#[post("/keys/revoke", data = "<sent>")]
async fn revoke_key(sent: Signed, db: &Db, origin: ClientOrigin) -> Result<Answer, Failure> {
    let Signed { staff, form } = sent.of_admin()?;
    let name = name(&form).map_err(|_| Status::BadRequest)?;
    let Ok(reason) = form.reason() else { return Ok(Answer::Right(revoking(&name).again(&staff, &form))) };
    match revoke(db.pool(), &name, staff.by(&reason, &origin.0)).await? {
        Changed::Done => Ok(Answer::Left(Redirect::to("/admin/keys?done=revoked"))),
        Changed::Already => Err(Failure::Conflict(NO_KEY)),
        Changed::NotPermitted | Changed::LastAdmin => Err(Status::Forbidden.into()),
    }
}
