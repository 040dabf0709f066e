//! The response of a token introspection endpoint (RFC 7662 §2.2).

use serde_json::Value;

use super::json::Object;

/// The error of an endpoint that does not introspect tokens of this kind (defined by RFC 7009 §2.2.1, also
/// used for introspection).
pub const NOT_INTROSPECTED: &str = "unsupported_token_type";

/// Returns the claims of an active token, without the members that introspection adds. Those would make every
/// token look like an access token.
#[must_use]
pub fn claims(mut answer: Object) -> Object {
    for name in ["active", "scope", "token_type", "username"] {
        answer.remove(name);
    }
    answer
}

/// Returns the member `active`; `None` if it is not a Boolean.
#[must_use]
pub fn active(answer: &Object) -> Option<bool> {
    match answer.get("active") {
        Some(Value::Bool(active)) => Some(*active),
        _ => None,
    }
}
