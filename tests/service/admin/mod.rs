//! The pages for staff.

mod actions;
mod api_keys;
mod audit;
mod changes;
mod export;
mod list;
mod listing;
mod overview;
mod pages;
mod person;
mod roles;
mod search;
mod sign_in;
mod staff;
mod users;

use reqwest::{Method, RequestBuilder};
use vestibule::domain::staff::{Access, Role};

use crate::support::people::sign_in as person;
use crate::support::staff_app::{Browser, StaffApp};

/// Role support with the right to export.
const EXPORTS: Access = Access {
    role: Role::Support,
    may_export: true,
    ends_at: None,
};

/// Builds the request for an export, as its form sends it.
async fn file(browser: &mut Browser, path: &str) -> RequestBuilder {
    let csrf = browser.csrf().await;
    browser
        .request(Method::POST, path)
        .form(&[("csrf", &*csrf), ("reason", "asked by the auditor")])
}

async fn staff_app_with(access: impl Into<Access>) -> (StaffApp, Browser) {
    let staff_app = StaffApp::open().await;
    // There must be an admin, in case the member with `access` is not one.
    staff_app.appoint("root@example.com", Role::Admin).await;
    staff_app.appoint("staff@example.com", access).await;
    let browser = staff_app.signed_in("staff@example.com").await;
    (staff_app, browser)
}
