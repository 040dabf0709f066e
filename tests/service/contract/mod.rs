//! What is promised in writing, held against what is.

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
