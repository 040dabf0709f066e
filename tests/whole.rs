//! Tests that need other programs, or minutes: `cargo test --test whole`. CONTRIBUTING.md lists the
//! programs. Without its program a test is skipped with a message, and fails where `CI` is set.

#[cfg(not(debug_assertions))]
compile_error!("the tests use the development parts; run them without --release");

#[allow(
    dead_code,
    unused_imports,
    reason = "the quick tests use the rest of it"
)]
#[macro_use]
mod support;

mod browser;
mod deploy;
mod full_disk;
mod instructions;
mod ledger;
mod monitoring;
mod postgres;
mod programs;
mod real;
mod schemathesis;
