//! Mirrors the URLs under `/api/v1`.

mod admin;
mod custom_claims;
pub mod dpop;
mod linking;
mod me;
mod merge;
mod name;
mod oauth;
mod provider_callbacks;
mod provider_events;
mod providers;
mod reauthentication;
mod refresh;
mod session_end;
mod sign_in;
mod subjects;
mod web;
