//! A time limit for every request: a handler that exceeds it is stopped, and the client gets 503.

use std::time::Duration;

use rocket::route::{Handler, Outcome};
use rocket::{Data, Request, Route};

use super::traces;
use crate::store::deadline::{self, LIMIT};
use crate::web::problem::{ErrorCode, Problem};

/// The time limit that replaces [`LIMIT`] if Rocket manages one.
#[derive(Debug, Clone, Copy)]
pub struct Limit(pub Duration);

/// A route's handler with a time limit.
#[derive(Clone)]
struct InTime(Box<dyn Handler>);

/// Wraps each route's handler so that it answers within [`LIMIT`].
pub fn routes(routes: Vec<Route>) -> Vec<Route> {
    let bounded = |mut route: Route| {
        route.handler = Box::new(InTime(route.handler));
        route
    };
    routes.into_iter().map(bounded).collect()
}

#[rocket::async_trait]
impl Handler for InTime {
    async fn handle<'r>(&self, request: &'r Request<'_>, data: Data<'r>) -> Outcome<'r> {
        let limit = request.rocket().state().map_or(LIMIT, |Limit(limit)| *limit);
        let handled = traces::noting(request, self.0.handle(request, data));
        let answer = deadline::within(limit, handled).await;
        answer.unwrap_or_else(|| {
            let problem = Problem {
                retry_after: Some(1),
                ..Problem::new(ErrorCode::ServiceUnavailable, "the request took too long")
            };
            Outcome::Error(problem.logged("the request reached its deadline").keep(request).status())
        })
    }
}
