//! Security Event Tokens (RFC 8417): the checks that prove one genuine, and the errors that its
//! sender receives (RFC 8935 §2.4).

use serde_json::Value;

use super::id_token::Unverified;
use super::refusal::visible;
use super::{IdToken, Issuers, Object, kind};

/// The farthest that a message may come from the future, in seconds: the sender's clock and ours
/// may differ.
const MAX_SKEW: i64 = 5 * 60;
/// The oldest accepted message, in seconds. Ids of messages are kept for longer, so no message is
/// applied twice.
const MAX_AGE: i64 = 30 * 24 * 60 * 60;
/// The longest id of a message, in bytes.
const MAX_ID: usize = 255;

/// The error's name on the wire (RFC 8935 §2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Fault {
    /// The message cannot be read.
    InvalidRequest,
    /// The key that signed it is not one of the sender's.
    InvalidKey,
    /// `iss` is not the sender.
    InvalidIssuer,
    /// `aud` does not name one of our client ids.
    InvalidAudience,
    /// The sender did not sign it.
    AuthenticationFailed,
}

/// A message that is not applied, with the check that failed in words that reveal nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}: {detail}")]
pub struct Refused {
    pub fault: Fault,
    pub detail: &'static str,
    /// The received value, for the log alone.
    pub log: Option<String>,
}

impl Refused {
    pub const fn new(fault: Fault, detail: &'static str) -> Self {
        Self {
            fault,
            detail,
            log: None,
        }
    }

    pub const fn malformed(detail: &'static str) -> Self {
        Self::new(Fault::InvalidRequest, detail)
    }
}

/// Claims that other tokens have (OpenID Connect Core §2, RFC 9068 §2.2; `typ` at Keycloak,
/// `token_use` at Amazon Cognito). Messages of Google and Apple never have them, and messages of
/// the Shared Signals Framework must not (§4.1): their subject is in the event.
const OF_OTHERS: [&str; 6] = ["exp", "sub", "nonce", "azp", "typ", "token_use"];

/// Refuses a JOSE header that names another kind of token. Google's messages name no kind, and
/// Apple's are plain JWTs.
pub(super) fn check_header(header: &Object) -> Result<(), &'static str> {
    match kind::of(header).as_deref() {
        None | Some("secevent+jwt" | "jwt") => Ok(()),
        Some(_) => Err("`typ` is not that of a security event"),
    }
}

/// Checks that a message is not another kind of token that its sender signs with the same keys.
/// Some of these have claims that their users choose, such as `events`. `expires` is true for a
/// sender whose messages have an `exp`. A message is refused if its header names another kind, or
/// if the header does not name `secevent+jwt` and its claims belong to another kind.
pub fn check_kind(token: &IdToken, expires: bool) -> Result<(), Refused> {
    let Some((header, claims)) = token.unverified().map(Unverified::parts) else {
        return Ok(());
    };
    check_header(header).map_err(Refused::malformed)?;
    let mut foreign = OF_OTHERS
        .iter()
        .filter(|name| !(expires && **name == "exp"));
    // RFC 8417 §2.3.
    let typed = kind::of(header).as_deref() == Some("secevent+jwt");
    if !typed && foreign.any(|name| claims.get(name).is_some()) {
        return Err(Refused::malformed(
            "the token is not a security event: `typ` must be `secevent+jwt`",
        ));
    }
    Ok(())
}

pub fn check_audience(claims: &Object, client_ids: &[String]) -> Result<(), Refused> {
    let ours = |value: &Value| {
        value
            .as_str()
            .is_some_and(|id| client_ids.iter().any(|ours| ours == id))
    };
    let meant = match claims.get("aud") {
        Some(Value::Array(several)) => several.iter().any(ours),
        Some(one) => ours(one),
        None => false,
    };
    if meant {
        return Ok(());
    }
    let log = claims
        .get("aud")
        .map(|aud| format!("`aud` is {}", visible(&aud.to_string())));
    let detail = "`aud` is not a client id that is configured for this provider";
    Err(Refused {
        log,
        ..Refused::new(Fault::InvalidAudience, detail)
    })
}

pub fn check_issuer(claims: &Object, issuers: &Issuers) -> Result<(), Refused> {
    if issuers.issued(claims) {
        return Ok(());
    }
    let log = claims
        .str("iss")
        .map(|iss| format!("`iss` is {}", visible(iss)));
    Err(Refused {
        log,
        ..Refused::new(Fault::InvalidIssuer, "`iss` is not this provider's")
    })
}

/// Returns `iat` of a message, which has to be young enough for its id to be known still.
pub fn issued_at(claims: &Object, now: i64) -> Result<i64, Refused> {
    let iat = claims
        .get("iat")
        .and_then(seconds)
        .ok_or(Refused::malformed("`iat` must be a time"))?;
    check_time(iat, now)
}

/// Returns the time of a message. Refuses times in the future, and messages that are older than ids
/// are kept: a replay would not be recognised.
pub fn check_time(iat: i64, now: i64) -> Result<i64, Refused> {
    if iat > now.saturating_add(MAX_SKEW) {
        return Err(Refused::malformed(
            "the message is from the future; compare the clocks",
        ));
    }
    if iat < now.saturating_sub(MAX_AGE) {
        return Err(Refused::malformed("the message is more than 30 days old"));
    }
    Ok(iat)
}

/// Returns `jti`, the message's id.
pub fn message_id(claims: &Object) -> Result<&str, Refused> {
    let sound = |id: &&str| (1..=MAX_ID).contains(&id.len()) && !id.chars().any(char::is_control);
    claims.str("jti").filter(sound).ok_or(Refused::malformed(
        "`jti` must be a string of 1 to 255 bytes",
    ))
}

/// Returns a time in whole seconds, which JSON may have with a fraction.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a time out of bounds is the nearest bound"
)]
pub fn seconds(value: &Value) -> Option<i64> {
    value
        .as_i64()
        .or_else(|| value.as_f64().map(|seconds| seconds as i64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 2_000_000_000;

    fn claims(value: &Value) -> Object {
        Object::parse(value.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn messages_from_the_future_or_older_than_kept_ids_are_rejected() {
        let at = |iat: Value| issued_at(&claims(&json!({ "iat": iat })), NOW).ok();
        for iat in [NOW, NOW + MAX_SKEW, NOW - MAX_AGE] {
            assert_eq!(at(json!(iat)), Some(iat));
        }
        assert_eq!(at(json!(2e9)), Some(NOW));
        for iat in [
            json!(NOW + MAX_SKEW + 1),
            json!(NOW - MAX_AGE - 1),
            json!("now"),
            json!(null),
            json!(1e300),
        ] {
            assert_eq!(at(iat.clone()), None, "{iat}");
        }
    }
}
