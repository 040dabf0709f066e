//! The question whether a change is to be made: what will happen, and a form for the reason.

use serde::Serialize;
use serde_json::Value;

use crate::admin::pages::failure::Failure;
use crate::admin::pages::guard::{Staff, StaffForm};
use crate::admin::pages::page::Page;

const NO_REASON: &str = "Write why: the audit log keeps it, with your e-mail address.";
const LONG_REASON: &str = "Write at most 500 characters.";

#[derive(Serialize)]
pub(super) struct Question {
    /// The change's name, by which `templates/admin/changes.html.tera` chooses the words.
    change: &'static str,
    title: String,
    /// The pages above, by URL and name. The change began on the last one.
    trail: Vec<(String, String)>,
    action: String,
    pub fields: Vec<(&'static str, String)>,
    pub reason: String,
    error: Option<&'static str>,
    button: String,
    /// The subject of the words, if the fields of a page around it do not have it.
    #[serde(flatten)]
    about: Option<Value>,
}

impl Question {
    pub fn new(
        change: &'static str,
        title: String,
        trail: Vec<(String, String)>,
        action: String,
        button: &str,
    ) -> Self {
        let fields = Vec::new();
        let reason = String::new();
        let button = button.to_owned();
        Self {
            change,
            title,
            trail,
            action,
            fields,
            reason,
            error: None,
            button,
            about: None,
        }
    }

    /// Adds the fields of the form, and what the words are about.
    pub fn with(self, fields: Vec<(&'static str, String)>, about: Value) -> Self {
        Self {
            fields,
            about: Some(about),
            ..self
        }
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
