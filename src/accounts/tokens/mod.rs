//! The credentials that the service issues.

pub mod access_token;
pub mod opaque_token;
pub mod proof_nonces;
pub mod refresh_token;

pub use self::access_token::Issuer;
pub use self::opaque_token::OpaqueToken;
pub use self::proof_nonces::ProofNonces;
