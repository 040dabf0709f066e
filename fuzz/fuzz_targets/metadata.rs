//! A provider's discovery document.
#![no_main]

use libfuzzer_sys::fuzz_target;
use strum::VariantArray;
use vestibule_fuzz::domain::metadata::{Endpoint, Metadata};
use vestibule_fuzz::domain::secure_url::secure;
use vestibule_fuzz::object;

const ISSUER: &str = "https://id.example.com/realms/people";

fuzz_target!(|data: &[u8]| {
    if let Some(metadata) = object(data).and_then(|document| Metadata::read(&document, ISSUER).ok())
    {
        let urls = Endpoint::VARIANTS
            .iter()
            .filter_map(|endpoint| metadata.url(*endpoint).ok().flatten());
        for url in urls {
            assert!(secure(url) && url.scheme() == "https", "{url}");
        }
    }
});
