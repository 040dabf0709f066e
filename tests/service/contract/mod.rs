//! Documented behaviour, compared with the program.

mod check;
mod commands;
mod log;
mod openapi;
mod outbound_proxy;
mod problems;
mod queries;
mod settings;
mod start;
mod traces;
