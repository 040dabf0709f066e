//! Failures of providers, clients and the database.

mod clients;
mod cut_connections;
mod database;
mod held_answers;
mod logins;
mod lost_answers;
mod provider;
mod read_only;
mod row_locks;
