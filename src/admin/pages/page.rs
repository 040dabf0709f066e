//! Pages as responses: the content, the reader, and the headers that every page has.

use rocket::Either;
use rocket::http::{Header, Status};
use rocket::request::Request;
use rocket::response::{self, Redirect, Responder};
use serde::Serialize;
use serde_json::{Value, json};

use crate::admin::pages::guard::{Staff, known_staff};
use crate::admin::staff::sign_in::flow::Admin;
use crate::domain::Role;
use crate::provider::{Breaker, CallStats, Providers};
use crate::web::Problem;
use crate::web::http::templates::html;
use crate::webhooks::Webhooks;

/// A page, or the way to another one.
pub(super) type Answer = Either<Redirect, Page>;

pub(super) struct Page {
    status: Status,
    template: &'static str,
    context: Value,
}

impl Page {
    /// Creates a page that anyone may see. Its template knows the view as `page`.
    pub(super) fn public(status: Status, template: &'static str, view: &impl Serialize) -> Self {
        Self {
            status,
            template,
            context: json!({ "page": view, "zone": "UTC" }),
        }
    }

    /// Creates a page for a member of staff. Its forms carry the session's CSRF token.
    pub(super) fn new(staff: &Staff, template: &'static str, view: &impl Serialize) -> Self {
        let member = &staff.member;
        let context = json!({
            "page": view,
            "staff": {
                "email": member.email, "role": member.role.to_string(),
                "is_admin": member.role == Role::Admin, "may_export": member.access().exports(),
                "time_zone": member.time_zone,
            },
            "csrf": staff.csrf,
            "zone": member.time_zone.as_deref().unwrap_or("UTC"),
        });
        Self {
            status: Status::Ok,
            template,
            context,
        }
    }

    /// Creates a page for the sender of a request, with the header if a guard has found them to be
    /// staff.
    pub(super) fn for_sender(
        request: &Request<'_>,
        status: Status,
        template: &'static str,
        view: &impl Serialize,
    ) -> Self {
        known_staff(request).map_or_else(
            || Self::public(status, template, view),
            |staff| Self::new(staff, template, view).with(status),
        )
    }

    pub(super) fn with(self, status: Status) -> Self {
        Self { status, ..self }
    }
}

impl<'r> Responder<'r, 'static> for Page {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'static> {
        let mut context = self.context;
        if context.get("staff").is_some() {
            context["alerts"] = alerts(request);
        }
        let mut response = html(self.template, context).respond_to(request)?;
        response.set_status(self.status);
        let admin = request.rocket().state::<Admin>();
        let form_target = admin.and_then(Admin::provider_origin).unwrap_or_default();
        let policy = format!(
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self' {form_target}; \
             frame-ancestors 'none'; base-uri 'none'; object-src 'none'"
        );
        response.set_header(Header::new("Content-Security-Policy", policy));
        response.set_header(Header::new("X-Frame-Options", "DENY"));
        response.set_header(Header::new("Referrer-Policy", "same-origin"));
        response.set_header(Header::new("Cache-Control", "no-store"));
        if matches!(self.status.code, 429 | 503) {
            let problem = Problem::unexplained(self.status.code).keep(request);
            response.set_header(Header::new(
                "Retry-After",
                problem.retry_after.unwrap_or(60).to_string(),
            ));
        }
        if admin.is_some_and(Admin::is_https) {
            response.set_header(Header::new("Strict-Transport-Security", "max-age=31536000"));
        }
        Ok(response)
    }
}

/// Returns the numbers beside the links of the navigation, as this instance last saw what they
/// count.
fn alerts(request: &Request<'_>) -> Value {
    let providers = request.rocket().state::<Providers>();
    let webhooks = request.rocket().state::<Webhooks>();
    let failing = |stats: &CallStats| matches!(stats.breaker, Breaker::Open | Breaker::HalfOpen);
    let failing = providers.map(|all| {
        all.call_stats()
            .iter()
            .filter(|(_, stats)| failing(stats))
            .count()
    });
    let behind = webhooks.map(|all| {
        all.queues()
            .iter()
            .filter(|queue| queue.is_behind())
            .count()
    });
    json!({ "providers": failing, "webhooks": behind })
}
