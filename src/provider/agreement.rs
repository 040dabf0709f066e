//! Cross-check of two sources of claims about one token.

use serde_json::Value;

use super::answer::Unavailable;
use crate::domain::issuer;
use crate::domain::json::Object;

/// Compares the endpoint's answer with the token's own claims: issuer, subject and audience. The audience of
/// an introspection is not compared, because Keycloak returns the audiences of the user's roles.
///
/// The claims have passed every check by now, so a contradiction is the provider's fault.
pub(super) fn cross_check(own: &Object, answer: &Object, introspected: bool) -> Result<(), Unavailable> {
    let text = |claims: &'_ Object, name| claims.str(name).unwrap_or_default().to_owned();
    let agreed = issuer::same(&text(own, "iss"), &text(answer, "iss"))
        && text(own, "sub") == text(answer, "sub")
        && (introspected || audience(own) == audience(answer));
    agreed.then_some(()).ok_or_else(|| Unavailable::new("disagreement").by_token())
}

/// Returns the audience as a sorted list. A token may have one or several, as text or as numbers.
fn audience(claims: &Object) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut clients: Vec<_> = match claims.get("aud") {
        None => Vec::new(),
        Some(Value::Array(several)) => several.iter().map(text).collect(),
        Some(one) => vec![text(one)],
    };
    clients.sort_unstable();
    clients.dedup();
    clients
}
