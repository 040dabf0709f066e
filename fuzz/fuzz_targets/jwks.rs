//! What a provider publishes as its keys.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vestibule_fuzz::domain::jwk::{Algorithm, KeySet};
use vestibule_fuzz::object;

fuzz_target!(|data: &[u8]| {
    if let Some(keys) = object(data).and_then(|document| KeySet::read(&document).ok()) {
        assert!(!keys.keys().is_empty());
        for key in keys.keys() {
            for algorithm in [Algorithm::Rs256, Algorithm::Ps256, Algorithm::Es256, Algorithm::EdDsa] {
                for length in [0, 64, 256] {
                    let verified = key.verifies(algorithm, b"message", &vec![0; length]);
                    assert!(!verified, "no signature is a signature");
                }
            }
        }
    }
});
