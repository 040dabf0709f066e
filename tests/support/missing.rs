//! What a test does on a machine that lacks what it needs.

use std::io::Write;

/// Says that a test is skipped, which is an error where `CI` is set.
pub fn skip(missing: &str) {
    assert!(std::env::var_os("CI").is_none(), "{missing}");
    // What `eprintln!` writes is heard only when the test fails.
    std::io::stderr()
        .write_all(format!("\nSKIPPED: {missing}\n").as_bytes())
        .unwrap();
}
