//! The service as it is shipped: the program itself, in the `release` profile, behind and beside the
//! programs of a deployment, with the files in `deploy/` (only addresses and paths are others).
//!
//! It takes HAProxy, nginx, PgBouncer, Patroni and etcd; `.ci/run` installs them. A test that lacks what it
//! needs says so.

mod backup;
mod drain;
mod every_request;
mod haproxy;
mod inside;
mod memory;
mod nginx;
mod outage;
mod patroni;
mod pgbouncer;
pub mod phone;
mod rolling;
mod settings;
mod site;
mod slow;
mod tls;
pub mod tools;
pub mod vestibule;
mod web_server;
