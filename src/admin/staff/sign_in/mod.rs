//! How a member of staff signs in: the flow at the provider, and the session that it opens.

pub mod flow;
pub mod session;
pub mod store;
