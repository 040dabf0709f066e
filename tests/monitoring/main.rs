//! What operators are shown: Prometheus with the configuration, the alerts and the dashboard in `deploy`,
//! around the real program. Alerts fire when it misbehaves and end with it, and no name in them is wrong.
//!
//! It takes Debian's package `prometheus`. A test that lacks it says so.

#[cfg(not(all(feature = "dev", debug_assertions)))]
compile_error!("the tests use the development parts; run them without --release and --no-default-features");

#[path = "../support/cluster.rs"]
#[allow(dead_code, reason = "the service's tests use the rest")]
mod cluster;
#[path = "../support/missing.rs"]
mod missing;
#[path = "../support/process.rs"]
#[allow(dead_code, reason = "the service's tests use the rest")]
mod process;
#[path = "../support/provider/mod.rs"]
#[allow(dead_code, unused_imports, reason = "it is whole; its own tests, in tests/provider, use all of it")]
mod provider;
#[path = "../support/token.rs"]
#[allow(dead_code, reason = "the service's tests use the rest")]
mod token;

mod client;
mod fires;
mod names;
mod prometheus;
mod promql;
