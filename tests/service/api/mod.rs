//! Mirrors the URLs under `/api/v1`.

mod linking;
mod me;
mod oauth;
mod reauthentication;
mod providers;
mod refresh;
mod session_end;
mod sign_in;
