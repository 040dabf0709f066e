//! The response of an introspection endpoint (RFC 7662).
#![no_main]

use libfuzzer_sys::fuzz_target;
use vestibule_fuzz::domain::introspection::{active, claims};
use vestibule_fuzz::{judge, object};

fuzz_target!(|data: &[u8]| {
    if let Some(answer) = object(data)
        && active(&answer) == Some(true)
    {
        judge(&claims(answer));
    }
});
