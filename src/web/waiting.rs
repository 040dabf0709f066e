//! What is answered before there is a database: that the process lives, and nothing else.

use figment::Figment;
use rocket::http::Status;
use rocket::{Build, Request, Rocket, catch, catchers};

use super::ops;
use super::problem::{Kind, Problem};
use super::request_log::RequestLog;

/// A server at the service's own address, that makes room at once when it is told to.
#[must_use]
pub fn rocket(figment: Figment) -> Rocket<Build> {
    let figment = figment
        .merge(("keep_alive", 0))
        .merge(("shutdown.grace", 1))
        .merge(("shutdown.mercy", 1))
        .merge(("shutdown.force", false));
    rocket::custom(figment)
        .attach(RequestLog)
        .mount("/", ops::before_the_database())
        .register("/", catchers![unavailable])
}

#[catch(default)]
fn unavailable(_: Status, request: &Request<'_>) -> Problem {
    let problem = Problem::new(Kind::ServiceUnavailable, "the service is starting");
    Problem { retry_after: Some(2), ..problem }.keep(request).clone()
}
