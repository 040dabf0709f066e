//! Signatures of messages (Standard Webhooks, "Signature scheme"): HMAC-SHA256 over id, time and payload.

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::secret::Secret;

/// Returns the value of `webhook-signature`: one signature for each secret, so that the receiver can change its own at
/// any time while there are two.
pub fn signatures(secrets: &[Secret<Vec<u8>>], id: &str, timestamp: i64, payload: &str) -> String {
    let signed = format!("{id}.{timestamp}.{payload}");
    let signature = |secret: &Secret<Vec<u8>>| {
        let tag = sign(&Key::new(HMAC_SHA256, secret.expose()), signed.as_bytes());
        format!("v1,{}", STANDARD.encode(tag))
    };
    secrets.iter().map(signature).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification_has_its_signature() {
        let secret = Secret::new(STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap());
        let sign = |secrets: &[_]| {
            signatures(secrets, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#)
        };
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(sign(std::slice::from_ref(&secret)), expected);
        let two = sign(&[Secret::new(vec![7; 32]), secret]);
        assert!(two.starts_with("v1,") && two.ends_with(&format!(" {expected}")), "{two}");
    }
}
