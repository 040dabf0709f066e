//! A provider's key set.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vestibule_fuzz::domain::jwk::{Algorithm, KeySet};
use vestibule_fuzz::object;

const ALGORITHMS: [Algorithm; 10] = [
    Algorithm::Rs256,
    Algorithm::Rs384,
    Algorithm::Rs512,
    Algorithm::Ps256,
    Algorithm::Ps384,
    Algorithm::Ps512,
    Algorithm::Es256,
    Algorithm::Es384,
    Algorithm::Es512,
    Algorithm::EdDsa,
];

fuzz_target!(|data: &[u8]| {
    if let Some(keys) = object(data).and_then(|document| KeySet::read(&document).ok()) {
        assert!(!keys.keys().is_empty());
        for key in keys.keys() {
            for algorithm in ALGORITHMS {
                for length in [0, 64, 96, 132, 256] {
                    let verified = key.verifies(algorithm, b"message", &vec![0; length]);
                    assert!(!verified, "no signature is a signature");
                }
            }
        }
    }
});
