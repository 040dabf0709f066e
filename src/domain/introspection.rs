//! The answer of a token introspection endpoint (RFC 7662 §2.2).

use serde_json::Value;

use super::json::Object;

/// The error of an endpoint that does not introspect tokens of this kind (RFC 7009 §2.2.1, and used for
/// introspection, too).
pub const NOT_INTROSPECTED: &str = "unsupported_token_type";

/// Returns the claims in an answer about an active token: without the members that introspection itself has, which
/// would make an access token of each.
#[must_use]
pub fn claims(mut answer: Object) -> Object {
    for name in ["active", "scope", "token_type", "username"] {
        answer.remove(name);
    }
    answer
}

/// Whether the token is active; nothing, when the answer does not say so in the only words there
/// are for it.
#[must_use]
pub fn active(answer: &Object) -> Option<bool> {
    match answer.get("active") {
        Some(Value::Bool(active)) => Some(*active),
        _ => None,
    }
}
