//! JWTs that we sign with a private key of ours at a provider.

use aws_lc_rs::error::Unspecified;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::Value;

use crate::secret::Secret;

/// The JWT could not be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system's random number generator failed")]
pub struct NotSigned;

/// Returns the PKCS#8 document of a private key in PEM (RFC 7468 §10), or `None` if it is none.
pub(super) fn pkcs8(pem: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once("-----BEGIN PRIVATE KEY-----")?;
    let (body, _) = rest.split_once("-----END PRIVATE KEY-----")?;
    let body: String = body.split_whitespace().collect();
    STANDARD.decode(body).ok()
}

/// Returns a signed JWT in its compact form (RFC 7515 §7.1).
pub(super) fn compact<S: AsRef<[u8]>>(
    header: &Value,
    claims: &Value,
    sign: impl FnOnce(&[u8]) -> Result<S, Unspecified>,
) -> Result<Secret<String>, NotSigned> {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(header), part(claims));
    let signature = sign(message.as_bytes()).map_err(|_| NotSigned)?;
    Ok(Secret::new(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))))
}
