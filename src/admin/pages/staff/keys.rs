//! The page of API keys. A new key is shown in the answer to its form, and never again.

use std::collections::BTreeMap;

use rocket::http::Status;
use rocket::http::uri::Origin;
use rocket::response::Redirect;
use rocket::{Route, get, post, routes};
use serde::Serialize;
use time::OffsetDateTime;

use crate::admin::changes::words::Words;
use crate::admin::pages::staff::{Lasting, Mistake, end_in_words, until};
use crate::admin::pages::{AdminStaff, Failure, Page, Question, Signed, Staff, StaffForm};
use crate::admin::staff::api_keys::store::KeyRow;
use crate::admin::staff::api_keys::{add, revoke, store};
use crate::admin::staff::store::Changed;
use crate::clock;
use crate::domain::{KeyName, KeyRole};
use crate::web::Db;
use crate::web::guard::ClientOrigin;

const NAME: &str = "Use lower-case letters, digits and hyphens, at most 40.";
const NAME_TAKEN: &str =
    "There is an API key with this name. Revoke it first, or choose another name.";
const NO_KEY: &str = "There is no API key with this name any more.";

/// The time in seconds after which a form that adds a key again no longer counts as a reload of the
/// page with the key.
const RELOAD: i64 = 3600;

pub(super) fn routes() -> Vec<Route> {
    routes![list, ask_add_key, add_key, ask_revoke_key, revoke_key]
}

#[derive(Serialize)]
struct KeysPage<'r> {
    keys: Vec<Lasting<KeyRow>>,
    sent: BTreeMap<&'r str, &'r str>,
    mistake: Option<Mistake>,
}

/// The page of a key that was just added. It has nothing else: the key is not shown again, and no
/// read that fails may lose it.
#[derive(Serialize)]
struct NewKey {
    name: String,
    /// The key, unless it was shown before.
    key: Option<String>,
}

async fn page(
    staff: &Staff,
    form: &StaffForm,
    mistake: Option<Mistake>,
    db: &Db,
) -> Result<Page, Failure> {
    let rows = db.run(|_| store::all(db)).await?.into_iter();
    let keys = rows.map(|row| Lasting::new(row.role, row.expires_at, row, &staff.member));
    let status = if mistake.is_some() {
        Status::BadRequest
    } else {
        Status::Ok
    };
    Ok(Page::new(
        staff,
        "admin/keys",
        &KeysPage {
            keys: keys.collect(),
            sent: form.fields(),
            mistake,
        },
    )
    .with(status))
}

#[get("/keys")]
async fn list(staff: Staff, uri: &Origin<'_>, db: &Db) -> Result<Page, Failure> {
    page(&staff, &StaffForm::of(uri), None, db).await
}

fn trail() -> Vec<(String, String)> {
    vec![
        ("/admin/staff".into(), "Staff".into()),
        ("/admin/keys".into(), "API keys".into()),
    ]
}

fn name(form: &StaffForm) -> Result<KeyName, Mistake> {
    form.get("name")
        .and_then(|name| name.parse().ok())
        .ok_or(("name", NAME))
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
        let role = form
            .get("role")
            .and_then(|name| name.parse().ok())
            .ok_or(("role", "Choose a role."))?;
        let (expires_at, last_day) = until(form, staff)?.unzip();
        Ok(Self {
            name,
            role,
            expires_at,
            last_day,
        })
    }

    fn question(&self, staff: &Staff) -> Question {
        let title = format!("Add the API key {}", self.name);
        let role: &str = self.role.into();
        let mut fields = vec![("name", self.name.to_string()), ("role", role.to_owned())];
        fields.extend(self.last_day.clone().map(|day| ("until", day)));
        let can = match self.role {
            KeyRole::Admin => "read and change users, and everything else that the API has",
            KeyRole::Support => "read users and end their sessions",
            KeyRole::Reader => "read users",
        };
        let steps = vec![
            format!("A program with this key can {can}.").into(),
            end_in_words("The key", self.last_day.as_deref(), staff).into(),
            "The next page shows the key, once. Have a place ready to store it.".into(),
        ];
        let words = Words::new(title, steps, "Add the key");
        Question::new(words, trail(), "/admin/keys".into()).with(fields)
    }
}

/// Returns the value that was read from a form. If the form has a mistake, the failure shows it
/// again.
async fn sound<T>(
    read: Result<T, Mistake>,
    staff: &Staff,
    form: &StaffForm,
    db: &Db,
) -> Result<T, Failure> {
    match read {
        Ok(read) => Ok(read),
        Err(mistake) => Err(Failure::Shown(page(staff, form, Some(mistake), db).await?)),
    }
}

#[get("/keys/add")]
async fn ask_add_key(staff: AdminStaff, uri: &Origin<'_>, db: &Db) -> Result<Page, Failure> {
    let staff = staff.0;
    let form = StaffForm::of(uri);
    let added = sound(Added::read(&form, &staff), &staff, &form, db).await?;
    Ok(added.question(&staff).ask(&staff, &form))
}

#[post("/keys", data = "<sent>")]
async fn add_key(sent: Signed, db: &Db, origin: ClientOrigin) -> Result<Page, Failure> {
    let Signed { staff, form } = sent.of_admin()?;
    let added = sound(Added::read(&form, &staff), &staff, &form, db).await?;
    let reason = added.question(&staff).confirmed(&staff, &form)?;
    let name = added.name.to_string();
    let by = staff.by(&reason, &origin.0);
    match add(db, &added.name, added.role, added.expires_at, by).await? {
        Ok(key) => Ok(Page::new(
            &staff,
            "admin/new_key",
            &NewKey {
                name,
                key: Some(key.expose().clone()),
            },
        )),
        Err(Changed::NotPermitted) => Err(Status::Forbidden.into()),
        Err(_) => {
            let rows = db.run(|_| store::all(db)).await?;
            let is_reload = rows.iter().any(|row| {
                let age = clock::now() - row.created_at.unix_timestamp();
                row.name == name && row.created_by == staff.member.email && age < RELOAD
            });
            if is_reload {
                return Ok(Page::new(
                    &staff,
                    "admin/new_key",
                    &NewKey { name, key: None },
                ));
            }
            page(&staff, &form, Some(("name", NAME_TAKEN)), db).await
        }
    }
}

fn revoking(name: &KeyName) -> Question {
    let title = format!("Revoke the API key {name}");
    let steps = vec![
        format!("The service refuses the key {name} at once, and for ever.").into(),
        "A program that uses it needs another key to go on.".into(),
    ];
    let words = Words::new(title, steps, "Revoke the key");
    Question::new(words, trail(), "/admin/keys/revoke".into())
        .with(vec![("name", name.to_string())])
}

#[get("/keys/revoke")]
async fn ask_revoke_key(staff: AdminStaff, uri: &Origin<'_>, db: &Db) -> Result<Page, Failure> {
    let staff = staff.0;
    let form = StaffForm::of(uri);
    let name = sound(name(&form), &staff, &form, db).await?;
    Ok(revoking(&name).ask(&staff, &form))
}

#[post("/keys/revoke", data = "<sent>")]
async fn revoke_key(sent: Signed, db: &Db, origin: ClientOrigin) -> Result<Redirect, Failure> {
    let Signed { staff, form } = sent.of_admin()?;
    let name = name(&form).map_err(|_| Status::BadRequest)?;
    let reason = revoking(&name).confirmed(&staff, &form)?;
    match revoke(db, &name, staff.by(&reason, &origin.0)).await? {
        Changed::Done => Ok(Redirect::to("/admin/keys?done=revoked")),
        Changed::Already => Err(Failure::Conflict(NO_KEY)),
        Changed::NotPermitted | Changed::LastAdmin => Err(Status::Forbidden.into()),
    }
}
