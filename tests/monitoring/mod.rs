//! Prometheus with the configuration, the alerts and the dashboard in `deploy`, and the real
//! program. Alerts fire during a failure and end after it, and each name in them exists.
//!
//! The tests need Debian's package `prometheus`. Without it, they are skipped with a message.

mod client;
mod fires;
mod names;
mod prometheus;
mod promql;
