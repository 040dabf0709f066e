//! A page on its way to the browser, with the headers that every page has.

use rocket::http::{Header, Status};
use rocket::request::Request;
use rocket::response::{self, Responder};
use rocket_dyn_templates::Template;
use serde::Serialize;
use serde_json::{Value, json};

use super::flow::Admin;
use crate::store::staff::StaffRow;

/// A rendered page.
pub(super) struct Page {
    status: Status,
    template: &'static str,
    context: Value,
}

impl Page {
    /// A page that anyone may see.
    pub(super) fn public(status: Status, template: &'static str, content: impl Serialize) -> Self {
        Self { status, template, context: json!({ "page": content }) }
    }

    /// A page for a member of staff, whose forms carry the session's token.
    pub(super) fn new(template: &'static str, staff: &StaffRow, csrf: &str, content: impl Serialize) -> Self {
        let staff = json!({ "email": staff.email, "role": staff.role.name() });
        Self {
            status: Status::Ok,
            template,
            context: json!({ "page": content, "staff": staff, "csrf": csrf }),
        }
    }
}

impl<'r> Responder<'r, 'static> for Page {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'static> {
        let mut response = Template::render(self.template, self.context).respond_to(request)?;
        response.set_status(self.status);
        let admin = request.rocket().state::<Admin>();
        let form_target = admin.and_then(Admin::provider_origin).unwrap_or_default();
        let policy = format!(
            "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self' {form_target}; \
             frame-ancestors 'none'; base-uri 'none'; object-src 'none'"
        );
        response.set_header(Header::new("Content-Security-Policy", policy));
        response.set_header(Header::new("X-Frame-Options", "DENY"));
        response.set_header(Header::new("Referrer-Policy", "same-origin"));
        response.set_header(Header::new("Cache-Control", "no-store"));
        if admin.is_some_and(Admin::is_https) {
            response.set_header(Header::new("Strict-Transport-Security", "max-age=31536000"));
        }
        Ok(response)
    }
}
