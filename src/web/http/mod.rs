//! The plumbing of HTTP that every request passes.

pub mod catcher;
pub mod cors;
pub mod deadline;
pub mod fields;
pub mod forwarded;
pub mod proof_nonce;
pub mod rate_limit;
pub mod rate_limit_fields;
pub mod reject_empty_segments;
pub mod request_id;
pub mod request_log;
pub mod stage;
pub mod templates;
pub mod traces;
