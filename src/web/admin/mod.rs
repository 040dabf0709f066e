//! The admin pages under `/admin`, for support staff: rendered here, usable without scripts.

mod assets;
mod audit;
mod catcher;
mod failure;
mod flow;
mod page;
mod sign_in;
mod users;

use rocket::{Catcher, Route};

pub use self::flow::Admin;

/// The routes, to be mounted at `/admin`.
#[must_use]
pub fn routes() -> Vec<Route> {
    [assets::routes(), audit::routes(), sign_in::routes(), users::routes()].concat()
}

/// The catchers, to be registered at `/admin`.
#[must_use]
pub fn catchers() -> Vec<Catcher> {
    catcher::catchers()
}
