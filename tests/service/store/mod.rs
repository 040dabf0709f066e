//! What concurrent requests may not do to each other.

mod instances;
mod races;
mod refresh_races;
mod round_trips;
