//! Signing keys of running services, and their age.

use vestibule::accounts::Issuer;
use vestibule::keys::KeyRing;

use super::app::App;
use super::cluster::Database;

/// `public_url` of the services under test, and so the `iss` and `aud` of their tokens.
pub const ISSUER: &str = "http://127.0.0.1:8000";

/// A verifier of access tokens, with the keys of a running service.
pub fn issuer(keys: &KeyRing) -> Issuer {
    Issuer::new(keys.clone(), ISSUER.into(), 900)
}

/// A second instance on a service's database.
pub async fn second_instance(first: &App) -> App {
    App::start_beside(&first.database, |figment| figment).await
}

/// Makes the keys older: moves all of their timestamps that many seconds back.
pub async fn pass(database: &Database, seconds: u32) {
    run!(
        &database.pool,
        "UPDATE signing_keys SET created_at = created_at - make_interval(secs => $1),
                signs_from = signs_from - make_interval(secs => $1),
                retired_at = retired_at - make_interval(secs => $1)",
        f64::from(seconds)
    );
}

/// The id in a token's header.
pub fn kid(token: &str) -> String {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let header = URL_SAFE_NO_PAD
        .decode(token.split('.').next().unwrap())
        .unwrap();
    serde_json::from_slice::<serde_json::Value>(&header).unwrap()["kid"]
        .as_str()
        .unwrap()
        .to_owned()
}
