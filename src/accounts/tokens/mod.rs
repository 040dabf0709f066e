//! The credentials that the service issues.

pub mod access_token;
pub mod opaque_token;
pub mod proof_nonces;
pub mod refresh_token;

pub use self::access_token::Issuer;
pub use self::opaque_token::OpaqueToken;
pub use self::proof_nonces::ProofNonces;
use crate::secret::Secret;

/// The tokens that a client uses until its next refresh.
#[derive(Debug)]
pub struct Tokens {
    pub access_token: Secret<String>,
    /// Seconds until the access token expires: its lifetime, or the rest of the session's.
    pub expires_in: u32,
    pub refresh_token: Secret<String>,
    /// Seconds until the refresh token expires if it is not used: its lifetime, or the rest of the
    /// session's.
    pub refresh_expires_in: u32,
    pub bound: bool,
}
