//! Mirrors the URLs under `/api/v1`.

mod linking;
mod me;
mod oauth;
mod reauthentication;
mod refresh;
mod sign_in;
mod session_end;
