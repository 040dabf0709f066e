//! The service as it is shipped: the `release` build, behind and beside the programs of a
//! deployment, with the files in `deploy/` (with other addresses and paths).
//!
//! The tests need HAProxy, nginx, PgBouncer, Patroni and etcd; `.ci/run` installs them. Without its
//! program, a test is skipped with a message.

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
