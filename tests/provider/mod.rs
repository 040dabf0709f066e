//! The service against a provider that may respond with anything.

mod verify;
