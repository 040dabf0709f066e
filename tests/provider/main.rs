//! Proves on raw sockets that the test provider does on the wire what it says.

mod answers;
mod bodies;
mod client;
mod cuts;
mod dead_ends;
mod gate;
mod inflate;
mod keep_alive;
mod pace;
mod recording;
mod rules;
mod sizes;

#[path = "../support/provider/mod.rs"]
mod provider;
