//! The use cases of the API, and the credentials that they issue: `domain` decides, and `store` runs the statements.

pub mod access_token;
pub mod account;
pub mod erasure;
pub mod event_counts;
pub mod lanes;
pub mod opaque_token;
pub mod proof_nonces;
pub mod prune;
pub mod refresh;
pub mod refresh_token;
pub mod refusals;
pub mod session;
pub mod sign_in;
pub mod sign_out;

pub use self::access_token::Issuer;
pub use self::lanes::SharedStatements;
pub use self::opaque_token::OpaqueToken;
pub use self::proof_nonces::ProofNonces;
pub use self::refusals::Refusals;
