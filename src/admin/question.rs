//! The question whether a change is to be made: what will happen, and a form for the reason.

use rocket::Either;
use rocket::http::Status;
use rocket::response::Redirect;
use serde::Serialize;

use crate::admin::guard::{Staff, StaffForm};
use crate::admin::page::Page;

/// The answer to a confirmed change: the way to what was changed, or the question again.
pub(super) type Answer = Either<Redirect, Page>;

const NO_REASON: &str = "Write why: the audit log keeps it, with your e-mail address.";
const LONG_REASON: &str = "Write at most 500 characters.";

#[derive(Default, Serialize)]
pub(super) struct Question {
    pub title: String,
    /// The pages above, by URL and name. The change began on the last one.
    pub trail: Vec<(String, String)>,
    pub changes: Vec<String>,
    pub warnings: Vec<String>,
    pub action: String,
    pub fields: Vec<(&'static str, String)>,
    pub reason: String,
    pub error: Option<&'static str>,
    pub hint: &'static str,
    pub button: String,
    /// True if the change cannot be undone.
    pub is_final: bool,
}

impl Question {
    /// Creates a question without warnings, about a change that can be undone.
    pub fn new(title: String, trail: Vec<(String, String)>, action: String, button: &str) -> Self {
        let (hint, button) = ("The audit log keeps it, with your e-mail address.", button.to_owned());
        Self { title, trail, action, hint, button, ..Self::default() }
    }

    /// Asks, with the reason that was typed before a sign-in came between.
    pub fn ask(self, staff: &Staff, form: &StaffForm) -> Page {
        let reason = form.get("reason").unwrap_or_default().to_owned();
        Page::new(staff, "admin/confirm", &Self { reason, ..self })
    }

    /// Asks again, after a form without a reason.
    pub fn again(mut self, staff: &Staff, form: &StaffForm) -> Page {
        self.refuse(form.get("reason"));
        Page::new(staff, "admin/confirm", &self).with(Status::BadRequest)
    }

    /// Notes what is wrong with a form without a reason, or with a text that is none.
    pub fn refuse(&mut self, typed: Option<&str>) {
        self.error = Some(if typed.is_some() { LONG_REASON } else { NO_REASON });
        typed.unwrap_or_default().clone_into(&mut self.reason);
    }
}
