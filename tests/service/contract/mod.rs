//! What is promised in writing, held against what is.

mod check;
mod log;
mod commands;
mod openapi;
mod problems;
mod queries;
mod schemathesis;
mod settings;
mod start;
#[cfg(feature = "otlp")]
mod traces;
