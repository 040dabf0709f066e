//! Mirrors the URLs under `/api/v1`.

mod linking;
mod sign_in;
