//! What is promised in writing, held against what is.

mod problems;
mod queries;
mod settings;
