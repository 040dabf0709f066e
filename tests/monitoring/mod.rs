//! What operators are shown: Prometheus with the configuration, the alerts and the dashboard in `deploy`,
//! around the real program. Alerts fire when it misbehaves and end with it, and no name in them is wrong.
//!
//! It takes Debian's package `prometheus`. A test that lacks it says so.

mod client;
mod fires;
mod names;
mod prometheus;
mod promql;
