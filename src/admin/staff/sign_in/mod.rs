//! The sign-in of a member of staff: the flow at the provider, and the session that it opens.

pub mod flow;
pub mod session;
pub mod store;
