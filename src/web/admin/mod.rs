//! The admin pages under `/admin`, for support staff. The server renders them, and they work without scripts.

mod actions;
mod assets;
mod audit;
mod catcher;
mod change;
mod chart;
mod csv;
mod dates;
mod failure;
mod fields;
mod flow;
mod happened;
mod overview;
mod page;
mod person;
#[cfg(test)]
mod samples;
mod sign_in;
mod staff;
mod users;

use rocket::{Catcher, Route};

pub use self::flow::Admin;

/// Returns the routes, to be mounted at `/admin`.
#[must_use]
pub fn routes() -> Vec<Route> {
    let pages =
        [overview::routes(), audit::routes(), person::routes(), staff::routes(), users::routes()].concat();
    [assets::routes(), sign_in::routes(), actions::routes(), change::routes(), pages].concat()
}

/// Returns the catchers, to be registered at `/admin`.
#[must_use]
pub fn catchers() -> Vec<Catcher> {
    catcher::catchers()
}
