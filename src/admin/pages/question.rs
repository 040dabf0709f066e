//! The question whether a change is to be made: what will happen, and a form for the reason.

use serde::Serialize;

use crate::admin::changes::words::Words;
use crate::admin::pages::failure::Failure;
use crate::admin::pages::guard::{Staff, StaffForm};
use crate::admin::pages::page::Page;

const NO_REASON: &str = "Write why: the audit log keeps it, with your e-mail address.";
const LONG_REASON: &str = "Write at most 500 characters.";

#[derive(Serialize)]
pub(super) struct Question {
    #[serde(flatten)]
    words: Words,
    /// The pages above, by URL and name. The change began on the last one.
    trail: Vec<(String, String)>,
    action: String,
    pub fields: Vec<(&'static str, String)>,
    pub reason: String,
    error: Option<&'static str>,
}

impl Question {
    pub fn new(words: Words, trail: Vec<(String, String)>, action: String) -> Self {
        Self {
            words,
            trail,
            action,
            fields: Vec::new(),
            reason: String::new(),
            error: None,
        }
    }

    /// Adds the fields of the form.
    pub fn with(self, fields: Vec<(&'static str, String)>) -> Self {
        Self { fields, ..self }
    }

    /// Asks, with the reason that was typed before a sign-in came between.
    pub fn ask(self, staff: &Staff, form: &StaffForm) -> Page {
        let reason = form.get("reason").unwrap_or_default().to_owned();
        Page::new(staff, "admin/confirm", &Self { reason, ..self })
    }

    /// Returns the reason in the form that confirms the change. Without one, the failure asks
    /// again.
    pub fn confirmed(mut self, staff: &Staff, form: &StaffForm) -> Result<String, Failure> {
        form.reason().map_err(|status| {
            self.refuse(form.get("reason"));
            Failure::Shown(Page::new(staff, "admin/confirm", &self).with(status))
        })
    }

    /// Notes that a form has no reason, or that its reason is too long.
    pub fn refuse(&mut self, typed: Option<&str>) {
        self.error = Some(if typed.is_some() {
            LONG_REASON
        } else {
            NO_REASON
        });
        typed.unwrap_or_default().clone_into(&mut self.reason);
    }
}
