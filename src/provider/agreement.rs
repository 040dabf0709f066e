//! Two answers about one token that have to say the same.

use serde_json::Value;

use super::answer::Unavailable;
use crate::domain::issuer;
use crate::domain::json::Object;

/// Holds the endpoint's answer against the signed claims: issuer, subject and audience.
///
/// The claims have passed every check by now, so a contradiction is the provider's.
pub(super) fn check(signed: &Object, answer: &Object) -> Result<(), Unavailable> {
    let text = |claims: &'_ Object, name| claims.str(name).unwrap_or_default().to_owned();
    let agreed = issuer::same(&text(signed, "iss"), &text(answer, "iss"))
        && text(signed, "sub") == text(answer, "sub")
        && audience(signed) == audience(answer);
    agreed.then_some(()).ok_or(Unavailable::new("disagreement"))
}

/// The audience whichever way it is written: one or several, as text or as a number.
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
