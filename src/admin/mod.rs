//! The admin pages under `/admin`, for support staff. The server renders them, and they work without scripts. The product's
//! backend has the same verbs as an API ([`api`]).

pub mod access_log;
mod advice;
pub mod api;
pub mod api_keys;
mod assets;
pub mod audit;
mod catcher;
pub mod changes;
mod chart;
pub(crate) mod command;
mod csv;
mod dates;
mod device;
mod event_view;
mod failure;
mod fields;
pub mod guard;
mod overview;
mod page;
pub mod person;
mod question;
mod reason;
pub mod sign_in;
pub mod staff;
mod time_zone;
pub mod users;
mod webhooks;

use rocket::{Catcher, Route};

use self::access_log::record;
use self::failure::Failure;
use self::guard::{AdminStaff, ExportingStaff, Signed, Staff, StaffForm};
use self::page::Page;
use self::question::{Answer, Question};
pub use self::sign_in::flow::Admin;

pub fn routes() -> Vec<Route> {
    let lists = [audit::routes(), users::routes(), webhooks::routes()].concat();
    let pages = [overview::routes(), person::routes(), staff::routes(), time_zone::routes()].concat();
    [assets::routes(), sign_in::routes(), changes::pages::routes(), lists, pages].concat()
}

pub fn catchers() -> Vec<Catcher> {
    catcher::catchers()
}
