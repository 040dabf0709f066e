//! Answers HTTP. Beside this module only `admin`, `app` and `dev` name Rocket. Guards read requests and handlers call one
//! `service` verb; nothing here decides.

pub mod api;
pub mod data_deletion;
pub mod database;
pub mod guard;
pub mod http;
pub mod metrics;
pub mod openapi;
pub mod ops;
pub mod problem;
pub mod well_known;
