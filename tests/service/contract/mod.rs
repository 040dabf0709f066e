//! What is promised in writing, held against what is.

mod queries;
mod settings;
