//! The page of staff: who has access, until when, and giving and revoking it.

pub(super) mod keys;
pub mod store;

use std::collections::BTreeMap;

use rocket::http::Status;
use rocket::http::uri::Origin;
use rocket::response::Redirect;
use rocket::{Route, get, post, routes};
use serde::Serialize;
use time::OffsetDateTime;

use self::store::Changed;
use super::dates::{day_before, end_of, last_day};
use crate::admin::sign_in::store::{self as members, StaffRow};
use crate::admin::{AdminStaff, Answer, Failure, Page, Question, Signed, Staff, StaffForm};
use crate::clock;
use crate::domain::{Access, Email, Role};
use crate::store::retrying;
use crate::web::guard::ClientOrigin;
use crate::web::{Db, rfc3339};

const ONESELF: &str = "You cannot change your own access. Ask another admin.";
const LAST_ADMIN: &str =
    "This is the last admin whose access does not end. Make another member an admin without an end first.";
const NO_EMAIL: &str = "Give an e-mail address, such as name@example.com.";
const NO_DAY: &str = "Choose a day that is not over.";

pub(super) fn routes() -> Vec<Route> {
    [routes![list, ask_give, give, ask_take_away, take_away], keys::routes()].concat()
}

#[derive(Serialize)]
struct Member {
    email: String,
    role: &'static str,
    may_export: bool,
    ends_at: Option<String>,
    /// The last day of access as it was typed, if the end shows it.
    last_day: Option<String>,
    ended: bool,
    last_seen_at: Option<String>,
    /// The provider's name and the subject, once the member has signed in.
    identity: Option<(String, String)>,
    /// True for the reader's own entry.
    oneself: bool,
}

impl Member {
    fn new(row: StaffRow, reader: &StaffRow) -> Self {
        let access = row.access();
        Self {
            oneself: row.email == reader.email,
            email: row.email,
            role: access.role.into(),
            may_export: access.exports(),
            ends_at: access.ends_at.map(rfc3339),
            last_day: access.ends_at.and_then(|end| day_before(end, reader.time_zone.as_deref())),
            ended: access.ends_at.is_some_and(|end| end.unix_timestamp() <= clock::now()),
            last_seen_at: row.last_seen_at.map(rfc3339),
            identity: row.provider.zip(row.subject),
        }
    }
}

/// What is wrong with a form, and at which field.
type Mistake = (&'static str, &'static str);

#[derive(Serialize)]
struct StaffPage<'r> {
    members: Vec<Member>,
    /// The fields of the form, as they were sent or as a link fills them in.
    sent: BTreeMap<&'r str, &'r str>,
    mistake: Option<Mistake>,
    done: Option<&'static str>,
}

async fn all(staff: &Staff, db: &Db) -> Result<Vec<Member>, Failure> {
    let members = retrying!(members::all(db.pool()))?;
    Ok(members.into_iter().map(|row| Member::new(row, &staff.member)).collect())
}

async fn page(staff: &Staff, form: &StaffForm, mistake: Option<Mistake>, db: &Db) -> Result<Page, Failure> {
    let done = match form.get("done") {
        Some("given") => Some("Access is given. It begins with the next sign-in."),
        Some("taken") => Some("Access is revoked, and the member is signed out."),
        _ => None,
    };
    let view = StaffPage { members: all(staff, db).await?, sent: form.fields(), mistake, done };
    let status = if mistake.is_some() { Status::BadRequest } else { Status::Ok };
    Ok(Page::new(staff, "admin/staff", &view).with(status))
}

#[get("/staff")]
async fn list(staff: Staff, uri: &Origin<'_>, db: &Db) -> Result<Page, Failure> {
    page(&staff, &StaffForm::of(uri), None, db).await
}

/// Returns the e-mail address of the member whom a form concerns, who is not the reader.
fn whose(form: &StaffForm, staff: &Staff) -> Result<Email, Mistake> {
    let email = form.get("email").and_then(Email::parse).ok_or(("email", NO_EMAIL))?;
    if email.folded() == staff.member.email { Err(("email", ONESELF)) } else { Ok(email) }
}

/// Returns the end that a form names, and its day. The form has the last day, or a period that begins tomorrow, in the
/// reader's time zone.
fn until(form: &StaffForm, staff: &Staff) -> Result<Option<(OffsetDateTime, String)>, Mistake> {
    let zone = staff.member.time_zone.as_deref();
    let period = || form.get("for").and_then(|period| last_day(period, zone));
    let day = form.get("until").map(ToOwned::to_owned).or_else(period);
    let ended = |day: String| Some((end(&day, zone)?, day));
    day.map(|day| ended(day).ok_or(("until", NO_DAY))).transpose()
}

/// Returns the end of access that lasts up to the end of the day `YYYY-MM-DD` in the zone; `None` if it is not a day, or
/// over.
pub fn end(day: &str, zone: Option<&str>) -> Option<OffsetDateTime> {
    end_of(day, zone).filter(|end| end.unix_timestamp() > clock::now())
}

/// Returns the sentence about an end, as [`until`] returns it.
fn ending(what: &str, day: Option<&str>, staff: &Staff) -> String {
    let zone = staff.member.time_zone.as_deref().unwrap_or("UTC");
    day.map_or_else(
        || format!("{what} has no end."),
        |day| format!("{what} ends at the end of {day} ({zone})."),
    )
}

struct Given {
    email: Email,
    access: Access,
    last_day: Option<String>,
}

impl Given {
    fn read(form: &StaffForm, staff: &Staff) -> Result<Self, Mistake> {
        let email = whose(form, staff)?;
        let role = form.get("role").and_then(|name| name.parse().ok()).ok_or(("role", "Choose a role."))?;
        let (ends_at, last_day) = until(form, staff)?.unzip();
        let access = Access { role, may_export: form.get("export").is_some(), ends_at };
        Ok(Self { email, access, last_day })
    }

    async fn question(&self, staff: &Staff, db: &Db) -> Result<Question, Failure> {
        let (email, Access { role, may_export, .. }) = (self.email.folded(), self.access);
        let before = all(staff, db).await?.into_iter().find(|member| member.email == email);
        let exports = |may: bool| if may { "may export users and events" } else { "may not export" };
        let mut question =
            Question::new(format!("Give access to {email}"), trail(), "/admin/staff".into(), "Give access");
        question.changes = vec![
            format!("{email} is {role} and {}.", exports(self.access.exports())),
            ending("The access", self.last_day.as_deref(), staff),
        ];
        question.changes.push(match before {
            Some(before) if before.ended => "The access that this member had has ended.".into(),
            Some(before) => format!(
                "Until now, this member is {} and {}, {}.",
                before.role,
                exports(before.may_export),
                before
                    .last_day
                    .or(before.ends_at)
                    .map_or("without an end".into(), |day| format!("until {day}"))
            ),
            None => "This member is new, and signs in with the account of that address.".into(),
        });
        if role == Role::Admin {
            question.warnings.push("An admin can do everything, and also give and revoke access.".into());
        }
        question.fields = [("email", email.to_owned()), ("role", role.to_string())].into();
        question.fields.extend(may_export.then(|| ("export", "yes".to_owned())));
        question.fields.extend(self.last_day.clone().map(|day| ("until", day)));
        Ok(question)
    }
}

fn trail() -> Vec<(String, String)> {
    vec![("/admin/staff".into(), "Staff".into())]
}

#[get("/staff/give")]
async fn ask_give(staff: AdminStaff, uri: &Origin<'_>, db: &Db) -> Result<Page, Failure> {
    let (staff, form) = (staff.0, StaffForm::of(uri));
    match Given::read(&form, &staff) {
        Ok(given) => Ok(given.question(&staff, db).await?.ask(&staff, &form)),
        Err(mistake) => page(&staff, &form, Some(mistake), db).await,
    }
}

#[post("/staff", data = "<sent>")]
async fn give(sent: Signed, db: &Db, origin: ClientOrigin) -> Result<Answer, Failure> {
    let Signed { staff, form } = sent.of_admin()?;
    let given = match Given::read(&form, &staff) {
        Ok(given) => given,
        Err(mistake) => return Ok(Answer::Right(page(&staff, &form, Some(mistake), db).await?)),
    };
    let Ok(reason) = form.reason() else {
        return Ok(Answer::Right(given.question(&staff, db).await?.again(&staff, &form)));
    };
    let by = staff.by(&reason, &origin.0);
    answer(store::add(db.pool(), given.email.folded(), given.access, by).await?, "/admin/staff?done=given")
}

fn answer(changed: Changed, done: &'static str) -> Result<Answer, Failure> {
    match changed {
        Changed::Done | Changed::Already => Ok(Answer::Left(Redirect::to(done))),
        Changed::LastAdmin => Err(Failure::Conflict(LAST_ADMIN)),
        Changed::NotPermitted => Err(Status::Forbidden.into()),
    }
}

fn taking(email: &str) -> Question {
    let title = format!("Revoke the access of {email}");
    let mut question = Question::new(title, trail(), "/admin/staff/remove".into(), "Revoke access");
    question.changes = vec![
        format!("{email} is signed out of these pages at once, and can no longer sign in to them."),
        "The audit log keeps what this member did.".into(),
    ];
    question.fields = vec![("email", email.to_owned())];
    question
}

#[get("/staff/remove")]
async fn ask_take_away(staff: AdminStaff, uri: &Origin<'_>, db: &Db) -> Result<Page, Failure> {
    let (staff, form) = (staff.0, StaffForm::of(uri));
    match whose(&form, &staff) {
        Ok(email) => Ok(taking(email.folded()).ask(&staff, &form)),
        Err(mistake) => page(&staff, &form, Some(mistake), db).await,
    }
}

#[post("/staff/remove", data = "<sent>")]
async fn take_away(sent: Signed, db: &Db, origin: ClientOrigin) -> Result<Answer, Failure> {
    let Signed { staff, form } = sent.of_admin()?;
    let email = match whose(&form, &staff) {
        Ok(email) => email,
        Err(mistake) => return Ok(Answer::Right(page(&staff, &form, Some(mistake), db).await?)),
    };
    let Ok(reason) = form.reason() else {
        return Ok(Answer::Right(taking(email.folded()).again(&staff, &form)));
    };
    let by = staff.by(&reason, &origin.0);
    answer(store::remove(db.pool(), email.folded(), by).await?, "/admin/staff?done=taken")
}
