//! Tests of the routes under `/api/v1`, in folders like their URLs.

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
