//! A time limit for every request: a handler that exceeds it is stopped, and the client gets 503.
//! So do clients that come while the service starts.

use std::time::Duration;

use rocket::route::{Handler, Outcome};
use rocket::{Data, Request, Route};
use tokio::time::timeout;

use super::stage::Stage;
use super::traces;
use crate::database::LIMIT;
use crate::web::Problem;

/// The time limit that replaces [`LIMIT`] if Rocket manages one.
#[derive(Debug, Clone, Copy)]
pub struct Limit(pub Duration);

/// A route's handler with a time limit.
#[derive(Clone)]
struct InTime {
    handler: Box<dyn Handler>,
    /// True if it runs only once the start has finished.
    waits: bool,
}

/// Wraps each route's handler so that it answers within [`LIMIT`].
pub fn routes(routes: Vec<Route>) -> Vec<Route> {
    wrapped(routes, false)
}

/// Wraps each route's handler so that it answers within [`LIMIT`], and 503 until the start has
/// finished.
pub fn once_started(routes: Vec<Route>) -> Vec<Route> {
    wrapped(routes, true)
}

fn wrapped(routes: Vec<Route>, waits: bool) -> Vec<Route> {
    let bounded = |mut route: Route| {
        route.handler = Box::new(InTime {
            handler: route.handler,
            waits,
        });
        route
    };
    routes.into_iter().map(bounded).collect()
}

#[rocket::async_trait]
impl Handler for InTime {
    async fn handle<'r>(&self, request: &'r Request<'_>, data: Data<'r>) -> Outcome<'r> {
        let refused = |problem: Problem| Outcome::Error(problem.keep(request).status());
        if self.waits && !request.rocket().state().is_none_or(Stage::has_started) {
            return refused(Problem::unavailable(2, "the service is starting"));
        }
        let limit = request
            .rocket()
            .state()
            .map_or(LIMIT, |Limit(limit)| *limit);
        let handled = traces::noting(request, self.handler.handle(request, data));
        let answer = timeout(limit, handled).await;
        answer.unwrap_or_else(|_| {
            let late = Problem::unavailable(1, "the request took too long");
            refused(late.logged("the request reached its deadline"))
        })
    }
}
