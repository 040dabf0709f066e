//! The ways to verify tokens with a provider.

use serde::Deserialize;

/// Says what to do about a provider's certificate that is missing or not trusted.
pub const CERTIFICATE: &str = "use https; for a private certificate authority, set SSL_CERT_FILE";

/// The means by which tokens are verified. There is no fallback from one to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    #[default]
    Tokeninfo,
    Jwks,
    /// The keys and then the endpoint; both must agree.
    Both,
}

/// Our authentication at a token or introspection endpoint (RFC 6749 §2.3, RFC 7662 §2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuthentication {
    ClientSecretBasic,
    /// Client id and secret as form fields.
    ClientSecretPost,
}
