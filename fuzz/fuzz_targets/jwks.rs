//! What a provider publishes as its keys.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vestibule_fuzz::domain::jwk::KeySet;
use vestibule_fuzz::object;

fuzz_target!(|data: &[u8]| {
    if let Some(keys) = object(data).and_then(|document| KeySet::read(&document).ok()) {
        assert!(!keys.keys().is_empty());
        for key in keys.keys() {
            for length in [0, 64, 256] {
                assert!(!key.verifies(b"message", &vec![0; length]), "no signature is a signature");
            }
        }
    }
});
