//! Proves on raw sockets that the test provider does on the wire what it says, and (in `verify`) that the
//! service holds its own against a provider that does anything.

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
mod verify;
