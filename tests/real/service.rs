//! One instance of the service, with the provider of a test.

use std::path::Path;

use reqwest::Client;
use serde_json::json;

use crate::deploy::phone;
use crate::deploy::vestibule::Vestibule;
use crate::support::app::{Answer, App};
use crate::support::cluster::Database;

/// An instance that does not run yet, with these settings for its provider.
pub fn at_provider(folder: &Path, database: &Database, settings: &[(&str, &str)]) -> Vestibule {
    let instance = Vestibule::without_provider(folder, &database.url);
    let url = instance.url();
    instance.with("ROCKET_PUBLIC_URL", &url).with_all(settings)
}

pub async fn sign_in(instance: &Vestibule, id_token: &str, nonce: Option<&str>) -> Answer {
    let mut body = json!({ "id_token": id_token });
    if let Some(nonce) = nonce {
        body["nonce"] = nonce.into();
    }
    let request = phone::post(
        &Client::new(),
        &instance.url(),
        "/api/v1/auth/oauth/idp",
        &body,
    );
    App::answer(request.send().await.unwrap()).await
}
