//! Answers 503 while the service starts: the port is open, but the database is not ready yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rocket::route::{Handler, Outcome};
use rocket::{Data, Request, Route};

use crate::web::{ErrorCode, Problem};

/// The progress of the start. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Stage(Arc<Reached>);

#[derive(Debug, Default)]
struct Reached {
    database: AtomicBool,
    end: AtomicBool,
}

impl Stage {
    pub fn reach_database(&self) {
        self.0.database.store(true, Ordering::Relaxed);
    }

    pub fn end(&self) {
        self.reach_database();
        self.0.end.store(true, Ordering::Relaxed);
    }

    pub fn has_database(&self) -> bool {
        self.0.database.load(Ordering::Relaxed)
    }

    pub fn is_over(&self) -> bool {
        self.0.end.load(Ordering::Relaxed)
    }
}

/// A route's handler, which runs once the start has finished.
#[derive(Clone)]
struct Started(Box<dyn Handler>);

/// Wraps each route's handler so that it answers 503 until the start has finished.
pub fn routes(routes: Vec<Route>) -> Vec<Route> {
    let gated = |mut route: Route| {
        route.handler = Box::new(Started(route.handler));
        route
    };
    routes.into_iter().map(gated).collect()
}

#[rocket::async_trait]
impl Handler for Started {
    async fn handle<'r>(&self, request: &'r Request<'_>, data: Data<'r>) -> Outcome<'r> {
        if request.rocket().state().is_none_or(Stage::is_over) {
            return self.0.handle(request, data).await;
        }
        let problem = Problem::new(ErrorCode::ServiceUnavailable, "the service is starting");
        Outcome::Error(Problem { retry_after: Some(2), ..problem }.keep(request).status())
    }
}
