//! The pages for staff.

mod sign_in;
mod users;
