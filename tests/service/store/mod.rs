//! The database: statements, constraints and concurrent requests.

mod conflicts;
mod erasure;
mod event_counts;
mod events;
mod import;
mod instances;
mod keys;
mod keys_command;
mod last_seen;
mod migrations;
mod model;
mod plans;
mod prune;
mod races;
mod refresh_races;
mod roles;
mod round_trips;
mod secret_key;
mod seed;
mod together;
