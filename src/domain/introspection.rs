//! The answer of a token introspection endpoint (RFC 7662 §2.2).

use serde_json::Value;

use super::json::Object;

/// Whether the token is active; nothing, when the answer does not say so in the only words there
/// are for it.
#[must_use]
pub fn active(answer: &Object) -> Option<bool> {
    match answer.get("active") {
        Some(Value::Bool(active)) => Some(*active),
        _ => None,
    }
}
