//! Answers HTTP. Beside this module only `admin`, `app` and `dev` name Rocket. Guards read requests and handlers call one
//! `service` verb; nothing here decides.

pub mod api;
pub mod catcher;
pub mod database;
pub mod deadline;
pub mod drain;
pub mod exact_path;
pub mod forwarded;
pub mod guard;
pub mod metrics;
pub mod openapi;
pub mod ops;
pub mod problem;
pub mod problem_pages;
pub mod rate_limit;
pub mod rate_limit_fields;
pub mod request_log;
pub mod starting;
pub mod templates;
#[cfg(feature = "otlp")]
pub mod traces;
pub mod well_known;
pub mod wire_time;
