//! The admin API, as the product's backend uses it.

mod changes;
mod claims;
mod keys;
mod roles;
