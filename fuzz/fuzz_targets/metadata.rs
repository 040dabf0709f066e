//! What a provider publishes of itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vestibule_fuzz::domain::secure_url::secure;
use vestibule_fuzz::domain::metadata::Metadata;
use vestibule_fuzz::object;

const ISSUER: &str = "https://id.example.com/realms/people";

fuzz_target!(|data: &[u8]| {
    if let Some(metadata) = object(data).and_then(|document| Metadata::read(&document, ISSUER).ok()) {
        let Metadata {
            jwks_url,
            introspection_url,
            revocation_url,
            authorization_url,
            token_url,
            token_auth_methods: _,
        } = metadata;
        let urls = [jwks_url, introspection_url, revocation_url, authorization_url, token_url];
        for url in urls.into_iter().flatten() {
            assert!(secure(&url) && url.scheme() == "https", "{url}");
        }
    }
});
