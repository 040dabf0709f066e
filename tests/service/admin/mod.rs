//! The pages for staff.

mod actions;
mod audit;
mod changes;
mod export;
mod list;
mod listing;
mod overview;
mod pages;
mod roles;
mod search;
mod sign_in;
mod staff;
mod users;

use serde_json::json;
use vestibule::domain::staff::Role;

use crate::support::app::Answer;
use crate::support::desk::{Browser, Desk};

/// Signs a person in by the API, with a token that the provider mints.
async fn person(desk: &Desk, parameters: &[(&str, &str)]) -> Answer {
    let mint = format!("{}/dev/idp/mint", desk.app.url);
    let token =
        reqwest::Client::new().get(mint).query(parameters).send().await.unwrap().text().await.unwrap();
    desk.app.post("idp", &json!({ "id_token": token.trim() })).await
}

async fn desk_with(role: Role) -> (Desk, Browser) {
    let desk = Desk::open().await;
    // Somebody has to be an admin; this one may be somebody else.
    desk.appoint("root@example.com", Role::Admin).await;
    desk.appoint("staff@example.com", role).await;
    let browser = desk.signed_in("staff@example.com").await;
    (desk, browser)
}
