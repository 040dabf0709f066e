//! The people who may use the pages, how they sign in, and the keys of the product's backend.

pub mod api_keys;
pub mod sign_in;
pub mod store;
