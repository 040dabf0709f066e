//! The admin pages under `/admin`, for support staff. The server renders them, and they work
//! without scripts.

mod advice;
mod assets;
pub mod audit;
mod catcher;
pub(in crate::admin) mod changes;
mod chart;
mod csv;
mod device;
mod event_view;
mod failure;
mod fields;
pub mod guard;
mod naming;
mod overview;
mod page;
mod person;
mod question;
pub mod sign_in;
pub mod staff;
mod time_zone;
pub mod users;
mod webhooks;

use rocket::http::Status;
use rocket::{Catcher, Route};

use self::failure::Failure;
use self::guard::{AdminStaff, ExportingStaff, Signed, Staff, StaffForm};
use self::page::{Answer, Page};
use self::question::Question;
use crate::admin::staff::sign_in::store::StaffRow;
use crate::database::Database;
use crate::domain::{Actor, Origin};
use crate::events::DataAccess;
use crate::events::record::record_access;

pub fn routes() -> Vec<Route> {
    let lists = [audit::routes(), users::routes(), webhooks::routes()].concat();
    let pages = [
        overview::routes(),
        person::routes(),
        staff::routes(),
        time_zone::routes(),
    ]
    .concat();
    [
        assets::routes(),
        sign_in::routes(),
        changes::routes(),
        lists,
        pages,
    ]
    .concat()
}

pub fn catchers() -> Vec<Catcher> {
    catcher::catchers()
}

/// Records a view of personal data, so that staff can be asked for the reason later (OWASP ASVS 5.0, 16.3). Data may be shown
/// only after it has been recorded. Fails with 401 if the viewer has ceased to be a member of staff, or lost the right to
/// export, during the request.
async fn record(
    database: &Database,
    member: &StaffRow,
    access: DataAccess<'_>,
    origin: &Origin,
) -> Result<(), Failure> {
    let recorded = record_access(database, access, Actor::Staff(&member.email), origin).await?;
    if recorded {
        Ok(())
    } else {
        Err(Status::Unauthorized.into())
    }
}
