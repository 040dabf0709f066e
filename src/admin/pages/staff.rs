//! The page of staff: who has access, until when, and giving and revoking it.

pub(super) mod keys;

use std::collections::BTreeMap;

use rocket::http::Status;
use rocket::http::uri::Origin;
use rocket::response::Redirect;
use rocket::{Route, get, post, routes};
use serde::Serialize;
use time::OffsetDateTime;

use crate::admin::changes::words::Words;
use crate::admin::dates::{day_before, end_of, last_day};
use crate::admin::pages::{AdminStaff, Failure, Page, Question, Signed, Staff, StaffForm};
use crate::admin::staff::sign_in::store as members;
use crate::admin::staff::sign_in::store::StaffRow;
use crate::admin::staff::store::{self, Changed};
use crate::clock;
use crate::domain::{Access, Email, Role};
use crate::web::guard::ClientOrigin;
use crate::web::{Db, rfc3339};

const ONESELF: &str = "You cannot change your own access. Ask another admin.";
const LAST_ADMIN: &str = "This is the last admin whose access does not end. Make another member an admin without an end first.";
const NO_EMAIL: &str = "Give an e-mail address, such as name@example.com.";
const NO_DAY: &str = "Choose a day that is not over.";

pub(super) fn routes() -> Vec<Route> {
    [
        routes![list, ask_give, give, ask_take_away, take_away],
        keys::routes(),
    ]
    .concat()
}

/// The end of access or of a key.
#[derive(Serialize)]
struct End {
    at: String,
    /// The last day as it was typed, if the end shows it.
    day: Option<String>,
    over: bool,
}

/// A member of staff or a key, with its role and its end.
#[derive(Serialize)]
struct Lasting<Row> {
    role: &'static str,
    end: Option<End>,
    #[serde(flatten)]
    row: Row,
}

impl<Row> Lasting<Row> {
    fn new(
        role: impl Into<&'static str>,
        end: Option<OffsetDateTime>,
        row: Row,
        reader: &StaffRow,
    ) -> Self {
        let end = end.map(|end| End {
            at: rfc3339(end),
            day: day_before(end, reader.time_zone.as_deref()),
            over: end.unix_timestamp() <= clock::now(),
        });
        Self {
            role: role.into(),
            end,
            row,
        }
    }
}

/// A mistake in a form: its field, and the message.
type Mistake = (&'static str, &'static str);

#[derive(Serialize)]
struct StaffPage<'r> {
    members: Vec<Lasting<StaffRow>>,
    /// The fields of the form, as they were sent or as a link fills them in.
    sent: BTreeMap<&'r str, &'r str>,
    mistake: Option<Mistake>,
}

async fn all(staff: &Staff, db: &Db) -> Result<Vec<Lasting<StaffRow>>, Failure> {
    let members = db.run(|_| members::all(db)).await?.into_iter();
    Ok(members
        .map(|row| Lasting::new(row.role, row.ends_at, row, &staff.member))
        .collect())
}

async fn page(
    staff: &Staff,
    form: &StaffForm,
    mistake: Option<Mistake>,
    db: &Db,
) -> Result<Page, Failure> {
    let view = StaffPage {
        members: all(staff, db).await?,
        sent: form.fields(),
        mistake,
    };
    let status = if mistake.is_some() {
        Status::BadRequest
    } else {
        Status::Ok
    };
    Ok(Page::new(staff, "admin/staff", &view).with(status))
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

#[get("/staff")]
async fn list(staff: Staff, uri: &Origin<'_>, db: &Db) -> Result<Page, Failure> {
    page(&staff, &StaffForm::of(uri), None, db).await
}

/// Returns the e-mail address of the member whom a form concerns, who is not the reader.
fn whose(form: &StaffForm, staff: &Staff) -> Result<Email, Mistake> {
    let email = form
        .get("email")
        .and_then(Email::parse)
        .ok_or(("email", NO_EMAIL))?;
    if email.folded() == staff.member.email {
        Err(("email", ONESELF))
    } else {
        Ok(email)
    }
}

/// Returns the end that a form names, and its day. The form has the last day, or a period that
/// begins tomorrow, in the reader's time zone.
fn until(form: &StaffForm, staff: &Staff) -> Result<Option<(OffsetDateTime, String)>, Mistake> {
    let zone = staff.member.time_zone.as_deref();
    let period = || form.get("for").and_then(|period| last_day(period, zone));
    let day = form.get("until").map(ToOwned::to_owned).or_else(period);
    let ended = |day: String| Some((end(&day, zone)?, day));
    day.map(|day| ended(day).ok_or(("until", NO_DAY)))
        .transpose()
}

/// Returns the end of access that lasts up to the end of the day `YYYY-MM-DD` in the zone; `None`
/// if it is not a day, or over.
pub fn end(day: &str, zone: Option<&str>) -> Option<OffsetDateTime> {
    end_of(day, zone).filter(|end| end.unix_timestamp() > clock::now())
}

struct Given {
    email: Email,
    access: Access,
    last_day: Option<String>,
}

impl Given {
    fn read(form: &StaffForm, staff: &Staff) -> Result<Self, Mistake> {
        let email = whose(form, staff)?;
        let role = form
            .get("role")
            .and_then(|name| name.parse().ok())
            .ok_or(("role", "Choose a role."))?;
        let (ends_at, last_day) = until(form, staff)?.unzip();
        let access = Access {
            role,
            may_export: form.get("export").is_some(),
            ends_at,
        };
        Ok(Self {
            email,
            access,
            last_day,
        })
    }

    async fn question(&self, staff: &Staff, db: &Db) -> Result<Question, Failure> {
        let email = self.email.folded();
        let Access {
            role, may_export, ..
        } = self.access;
        let before = all(staff, db)
            .await?
            .into_iter()
            .find(|member| member.row.email == email);
        let mut fields = vec![("email", email.to_owned()), ("role", role.to_string())];
        fields.extend(may_export.then(|| ("export", "yes".to_owned())));
        fields.extend(self.last_day.clone().map(|day| ("until", day)));
        let question = Question::new(self.words(before, staff), trail(), "/admin/staff".into());
        Ok(question.with(fields))
    }

    fn words(&self, before: Option<Lasting<StaffRow>>, staff: &Staff) -> Words {
        let email = self.email.folded();
        let role = self.access.role;
        let until_now = match before {
            None => "This member is new, and signs in with the account of that address.".to_owned(),
            Some(Lasting { end: Some(end), .. }) if end.over => {
                "The access that this member had has ended.".to_owned()
            }
            Some(Lasting { role, end, row }) => {
                let exports = exports(row.access());
                let end = end.map(|end| format!("until {}", end.day.unwrap_or(end.at)));
                let end = end.unwrap_or_else(|| "without an end".to_owned());
                format!("Until now, this member is {role} and {exports}, {end}.")
            }
        };
        let steps = vec![
            format!("{email} is {role} and {}.", exports(self.access)).into(),
            end_in_words("The access", self.last_day.as_deref(), staff).into(),
            until_now.into(),
        ];
        let warnings = match role {
            Role::Admin => {
                vec!["An admin can do everything, and also give and revoke access.".into()]
            }
            Role::Support => Vec::new(),
        };
        let title = format!("Give access to {email}");
        Words {
            warnings,
            ..Words::new(title, steps, "Give access")
        }
    }
}

fn exports(access: Access) -> &'static str {
    if access.exports() {
        "may export users and events"
    } else {
        "may not export"
    }
}

/// Says when access or a key ends.
fn end_in_words(what: &str, last_day: Option<&str>, staff: &Staff) -> String {
    let zone = staff.member.time_zone.as_deref().unwrap_or("UTC");
    match last_day {
        Some(day) => format!("{what} ends at the end of {day} ({zone})."),
        None => format!("{what} has no end."),
    }
}

fn trail() -> Vec<(String, String)> {
    vec![("/admin/staff".into(), "Staff".into())]
}

#[get("/staff/give")]
async fn ask_give(staff: AdminStaff, uri: &Origin<'_>, db: &Db) -> Result<Page, Failure> {
    let staff = staff.0;
    let form = StaffForm::of(uri);
    let given = sound(Given::read(&form, &staff), &staff, &form, db).await?;
    Ok(given.question(&staff, db).await?.ask(&staff, &form))
}

#[post("/staff", data = "<sent>")]
async fn give(sent: Signed, db: &Db, origin: ClientOrigin) -> Result<Redirect, Failure> {
    let Signed { staff, form } = sent.of_admin()?;
    let given = sound(Given::read(&form, &staff), &staff, &form, db).await?;
    let reason = given.question(&staff, db).await?.confirmed(&staff, &form)?;
    let by = staff.by(&reason, &origin.0);
    answer(
        store::add(db, given.email.folded(), given.access, by).await?,
        "/admin/staff?done=given",
    )
}

fn answer(changed: Changed, done: &'static str) -> Result<Redirect, Failure> {
    match changed {
        Changed::Done | Changed::Already => Ok(Redirect::to(done)),
        Changed::LastAdmin => Err(Failure::Conflict(LAST_ADMIN)),
        Changed::NotPermitted => Err(Status::Forbidden.into()),
    }
}

fn taking(email: &str) -> Question {
    let title = format!("Revoke the access of {email}");
    let steps = vec![
        format!("{email} is signed out of these pages at once, and can no longer sign in to them.")
            .into(),
        "The audit log keeps what this member did.".into(),
    ];
    let words = Words::new(title, steps, "Revoke access");
    Question::new(words, trail(), "/admin/staff/remove".into())
        .with(vec![("email", email.to_owned())])
}

#[get("/staff/remove")]
async fn ask_take_away(staff: AdminStaff, uri: &Origin<'_>, db: &Db) -> Result<Page, Failure> {
    let staff = staff.0;
    let form = StaffForm::of(uri);
    let email = sound(whose(&form, &staff), &staff, &form, db).await?;
    Ok(taking(email.folded()).ask(&staff, &form))
}

#[post("/staff/remove", data = "<sent>")]
async fn take_away(sent: Signed, db: &Db, origin: ClientOrigin) -> Result<Redirect, Failure> {
    let Signed { staff, form } = sent.of_admin()?;
    let email = sound(whose(&form, &staff), &staff, &form, db).await?;
    let reason = taking(email.folded()).confirmed(&staff, &form)?;
    let by = staff.by(&reason, &origin.0);
    answer(
        store::remove(db, email.folded(), by).await?,
        "/admin/staff?done=taken",
    )
}
