//! The service holds its own against a provider that does anything.

mod verify;
