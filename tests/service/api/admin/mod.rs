//! The admin API, as the product's backend uses it.

mod changes;
mod claims;
mod create;
mod feed;
mod keys;
mod reads;
mod roles;
