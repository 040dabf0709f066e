//! Facebook Limited Login (developers.facebook.com, "OIDC Token for Limited Login", "Validating the
//! Limited Login OIDC Token"). Classic Facebook Login has access tokens only and is not supported.
//!
//! Facebook has no endpoint for these tokens, so only the signature (RS256) is checked. There is no
//! `email_verified`, and `email` is present only if the user grants it.
//!
//! Facebook sends signed requests when a user removes the app or asks to have data deleted ("Data
//! Deletion Request Callback", "Parsing the Signed Request"). Such a request is `<signature>.<payload>`, each in base64url. The signature is the HMAC-SHA256
//! of the encoded payload with the app secret, which is the `client_secret`: it proves both the
//! sender and that this app is meant. Facebook gives a request no id, so the hash of its payload is
//! the id.

use std::borrow::Cow;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{HMAC_SHA256, Key, verify};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use url::form_urlencoded;

use super::{Preset, Sender};
use crate::domain::report::{Event, EventKind, Report, Subject};
use crate::domain::security_event::{Fault, Refused, check_time};
use crate::domain::{Object, is_subject};
use crate::secret::Secret;

pub const PRESET: Preset = Preset {
    name: "facebook",
    settings: r#"
verify = "jwks"
jwks_url = "https://limited.facebook.com/.well-known/oauth/openid/jwks/"
issuers = "https://www.facebook.com"
# The SDK makes up a nonce if the app gives none.
nonce = "if_sent"
"#,
    has_tokeninfo: false,
    has_hosted_domains: false,
    sender: Sender::Facebook,
    messages_registered: Some(
        "as the deauthorize callback of the app, and {url}/data-deletion as its data deletion request URL",
    ),
    without_client_secret: Some(
        "cannot be verified, nor can requests to delete data, which Facebook demands to be answered",
    ),
    ..Preset::CUSTOM
};

/// A request that Facebook has signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedRequest {
    pub id: String,
    /// `issued_at`, in seconds since the epoch.
    pub at: i64,
    /// `user_id`, which is the `sub` of this user's tokens.
    pub subject: String,
}

/// Returns the signed request in a form. `media_type` is in lower case and without parameters.
///
/// # Errors
/// The body is not a form with exactly one signed request.
pub fn in_form<'b>(media_type: &str, body: &'b [u8]) -> Result<Cow<'b, str>, Refused> {
    if media_type != "application/x-www-form-urlencoded" {
        return Err(Refused::malformed(
            "`Content-Type` must be `application/x-www-form-urlencoded`",
        ));
    }
    let mut requests = form_urlencoded::parse(body).filter(|(name, _)| name == "signed_request");
    match (requests.next(), requests.next()) {
        (Some((_, request)), None) => Ok(request),
        _ => Err(Refused::malformed(
            "the form must have one `signed_request`",
        )),
    }
}

impl SignedRequest {
    /// Reads a request that was signed with the app secret, at `now` in seconds since the epoch.
    ///
    /// # Errors
    /// The request is malformed, forged or too old.
    pub fn read(text: &str, app_secret: &Secret<String>, now: i64) -> Result<Self, Refused> {
        const MALFORMED: Refused =
            Refused::malformed("`signed_request` must be two base64url parts separated by a dot");
        const FORGED: Refused = Refused::new(
            Fault::AuthenticationFailed,
            "the request is not signed with the app secret",
        );
        let malformed = Refused::malformed;
        // Facebook's documentation has both parts without padding, and some of its requests have
        // it.
        let decode = |part: &str| {
            URL_SAFE_NO_PAD
                .decode(part.trim_end_matches('='))
                .map_err(|_| MALFORMED)
        };
        let (signature, payload) = text.split_once('.').ok_or(MALFORMED)?;
        let signature = decode(signature)?;
        let content = decode(payload)?;
        let key = Key::new(HMAC_SHA256, app_secret.expose().as_bytes());
        verify(&key, payload.as_bytes(), &signature).map_err(|_| FORGED)?;
        let claims =
            Object::parse(&content).map_err(|_| malformed("the payload must be a JSON object"))?;
        if !claims
            .str("algorithm")
            .is_some_and(|name| name.eq_ignore_ascii_case("HMAC-SHA256"))
        {
            return Err(malformed("`algorithm` must be HMAC-SHA256"));
        }
        // The signed request of a login is signed with the same secret, and the scripts of a page
        // can read it.
        if claims.has("code") {
            return Err(malformed("a login's signed request is none of a callback"));
        }
        let at = claims.get("issued_at").and_then(Value::as_i64);
        let at = check_time(at.ok_or(malformed("`issued_at` must be a time"))?, now)?;
        let subject = match claims.get("user_id") {
            Some(Value::String(id)) => Some(id.clone()).filter(|id| is_subject(id)),
            Some(Value::Number(id)) => id.as_u64().map(|id| id.to_string()),
            _ => None,
        };
        let subject = subject.ok_or(malformed("`user_id` must be 1 to 255 ASCII characters, at least one of them visible and none a control character"))?;
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, payload.trim_end_matches('=').as_bytes()));
        Ok(Self { id, at, subject })
    }

    pub fn deauthorization(self) -> Report {
        let subject = Some(Subject::Subject(self.subject));
        let event = Event {
            kind: EventKind::Deauthorized,
            subject,
            reason: None,
            email: None,
        };
        Report {
            id: self.id,
            at: self.at,
            events: vec![event],
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::hmac::sign;
    use serde_json::json;

    use super::*;

    const NOW: i64 = 2_000_000_000;
    const SECRET: &str = "an app secret of the tests";

    fn signed_with(secret: &str, payload: &str) -> String {
        let payload = URL_SAFE_NO_PAD.encode(payload);
        let signature = sign(
            &Key::new(HMAC_SHA256, secret.as_bytes()),
            payload.as_bytes(),
        );
        format!("{}.{payload}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn claims() -> Value {
        json!({ "user_id": "218471", "algorithm": "HMAC-SHA256", "issued_at": NOW - 5, "expires": NOW + 3600 })
    }

    fn with(name: &str, value: Value) -> String {
        let mut claims = claims();
        claims[name] = value;
        signed_with(SECRET, &claims.to_string())
    }

    fn read(text: &str) -> Result<SignedRequest, Refused> {
        SignedRequest::read(text, &Secret::new(SECRET.into()), NOW)
    }

    /// Made with Python's `hmac`, of the payload in the documentation.
    #[test]
    fn a_request_that_was_made_elsewhere_is_read() {
        let text = "0oi8Fcu5K0zyA9CqK1Z-F9WzYX3HhcMneIrdFNsDF94.eyJhbGdvcml0aG0iOiJITUFDLVNIQTI1NiIsImV4cGlyZXMiOjEyOTE4NDA0MDAsImlzc3VlZF9hdCI6MTI5MTgzNjgwMCwib2F1dGhfdG9rZW4iOiJ1c2VyLWFjY2Vzcy10b2tlbiIsInVzZXJfaWQiOiIyMTg0NzEifQ";
        let read =
            SignedRequest::read(text, &Secret::new("appsecret".into()), 1_291_836_900).unwrap();
        assert_eq!((read.subject.as_str(), read.at), ("218471", 1_291_836_800));
    }

    #[test]
    fn a_genuine_request_is_read_with_or_without_padding() {
        let text = signed_with(SECRET, &claims().to_string());
        let request = read(&text).unwrap();
        assert_eq!(
            (request.at, request.subject.as_str(), request.id.len()),
            (NOW - 5, "218471", 43)
        );
        let (signature, payload) = text.split_once('.').unwrap();
        assert_eq!(
            read(&format!("{signature}=.{payload}")),
            Ok(request.clone())
        );
        let report = request.clone().deauthorization();
        assert_eq!((report.id, report.at), (request.id, NOW - 5));
        let subject = Some(Subject::Subject("218471".into()));
        assert_eq!(
            report.events,
            [Event {
                kind: EventKind::Deauthorized,
                subject,
                reason: None,
                email: None
            }]
        );
    }

    #[test]
    fn the_id_is_that_of_the_content() {
        let id = |text: &str| read(text).unwrap().id;
        assert_eq!(
            id(&with("user_id", json!("1"))),
            id(&with("user_id", json!("1")))
        );
        assert_ne!(
            id(&with("user_id", json!("1"))),
            id(&with("user_id", json!("2")))
        );
        assert_ne!(
            id(&with("issued_at", json!(NOW))),
            id(&with("issued_at", json!(NOW - 1)))
        );
    }

    #[test]
    fn a_request_of_somebody_else_is_refused() {
        let genuine = signed_with(SECRET, &claims().to_string());
        let (signature, payload) = genuine.split_once('.').unwrap();
        let other = URL_SAFE_NO_PAD
            .encode(json!({ "user_id": "2", "algorithm": "none", "issued_at": NOW }).to_string());
        for forged in [
            signed_with("another app's secret", &claims().to_string()),
            signed_with("", &claims().to_string()),
            format!(".{payload}"),
            format!("{}.{payload}", &signature[..signature.len() - 2]),
            format!("{signature}.{other}"),
            format!("{signature}.{payload}.{payload}"),
            payload.to_owned(),
            String::new(),
            ".".into(),
            "é.é".into(),
            format!("{signature} .{payload}"),
        ] {
            assert!(read(&forged).is_err(), "{forged}");
        }
    }

    #[test]
    fn what_is_signed_but_odd_is_refused() {
        assert!(read(&with("issued_at", json!(NOW + 300))).is_ok());
        assert!(read(&with("user_id", json!(218_471))).is_ok());
        assert!(read(&with("algorithm", json!("hmac-sha256"))).is_ok());
        for odd in [
            with("algorithm", json!("none")),
            with("algorithm", json!(null)),
            with("issued_at", json!(null)),
            with("issued_at", json!("1291836800")),
            with("issued_at", json!(NOW + 301)),
            with("user_id", json!(null)),
            with("user_id", json!("")),
            with("user_id", json!("1".repeat(256))),
            with("user_id", json!("1\n2")),
            with("user_id", json!(-1)),
            with("code", json!("a code of a login")),
            with("code", json!(null)),
            with("user_id", json!(["218471"])),
            signed_with(SECRET, "[]"),
            signed_with(SECRET, ""),
            signed_with(
                SECRET,
                r#"{"algorithm":"HMAC-SHA256","issued_at":2000000000,"user_id":"1","user_id":"2"}"#,
            ),
        ] {
            assert!(read(&odd).is_err(), "{odd:.200}");
        }
    }
}
