//! The response of a tokeninfo endpoint.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vestibule_fuzz::{judge, object};

fuzz_target!(|data: &[u8]| {
    if let Some(claims) = object(data) {
        judge(&claims);
    }
});
