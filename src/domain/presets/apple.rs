//! Sign in with Apple (developer.apple.com, "Verifying a user", "Fetch Apple's public key to verify
//! token signatures").
//!
//! Apple has no token-information endpoint, so only the signature is checked. `email_verified` and
//! `is_private_email` are strings or Booleans. A private relay e-mail address is treated like any
//! other; it is known only to the apps of one team. Apps hash their nonce with SHA-256 before they
//! hand it to Apple, and only the hash is in the token. Apple has two issuers: it changed to the
//! second one overnight (supabase/auth #2051). `email` may be missing, and `name` is never in the
//! token. Staff cannot sign in with Apple: that would need a response by POST.
//!
//! Apple's tokens have to be revoked when a user deletes the account (technical note TN3194). The
//! client secret for that is a JWT that a key of the team signs ("Token validation", "Token
//! revocation").
//!
//! Apple notifies our server of changes of an account ("Processing changes for Sign in with Apple
//! accounts"). The body is `{"payload": "<JWS>"}`. The claim `events` is a JSON object in a string, and its
//! `event_time` is in milliseconds. The documentation says `account-deleted` and Apple sends
//! `account-delete`. `exp` is a day after `iat` and is not checked: a late notification is still
//! true, and a notification is never applied twice.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{Preset, Sender};
use crate::domain::report::{Event, EventKind, Report, Subject};
use crate::domain::security_event::{Refused, issued_at, message_id};
use crate::domain::{Email, IdToken, Object, is_subject};
use crate::secret::Secret;

pub const PRESET: Preset = Preset {
    name: "apple",
    settings: r#"
verify = "jwks"
jwks_url = "https://appleid.apple.com/auth/keys"
token_url = "https://appleid.apple.com/auth/token"
token_auth = "client_secret_post"
revocation_url = "https://appleid.apple.com/auth/revoke"
issuers = ["https://appleid.apple.com", "https://account.apple.com"]
nonce_form = "sha256"
"#,
    has_tokeninfo: false,
    has_hosted_domains: false,
    sender: Sender::Apple,
    messages_expire: true,
    code_yields_id_token: true,
    messages_registered: Some(
        "as the server-to-server notification endpoint of the primary App ID",
    ),
    without_client_key: Some(
        "tokens cannot be revoked when an account is deleted, which Apple demands",
    ),
    ..Preset::CUSTOM
};

/// Says what to do about an id of a team or a key that [`is_id`] refuses.
pub const ID_REMEDY: &str =
    "set it to the ten letters and digits that Apple's developer pages show";
/// Says what to do about a text that [`ClientKey::read`] refuses.
pub const KEY_REMEDY: &str =
    "set it to the contents of the .p8 file that Apple's developer pages offer once";

/// Returns true if the text has the form of an id of a team or a key.
pub fn is_id(text: &str) -> bool {
    text.len() == 10 && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// The audience of a client secret.
const AUDIENCE: &str = "https://appleid.apple.com";
/// The lifetime of a client secret, in seconds. Apple accepts up to six months.
const LIFETIME: i64 = 5 * 60;

/// The private key by which Apple knows our client. It signs a client secret for each request
/// ("Creating a client secret").
pub struct ClientKey {
    team_id: String,
    key_id: String,
    pair: EcdsaKeyPair,
}

/// The text is not a private key as Apple issues them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the key is no P-256 key in PKCS#8")]
pub struct NoKey;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system's random number generator failed")]
pub struct NotSigned;

impl ClientKey {
    /// Reads the contents of a `.p8` file. A line break may be written as `\n`, as in environment
    /// variables.
    pub fn read(team_id: String, key_id: String, pem: &str) -> Result<Self, NoKey> {
        let pem = pem.replace("\\n", "\n");
        let der = pkcs8(&pem).ok_or(NoKey)?;
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der).map_err(|_| NoKey)?;
        Ok(Self {
            team_id,
            key_id,
            pair,
        })
    }

    /// Returns a client secret for one of our client ids: a JWT with ES256, in its compact form
    /// (RFC 7515 §7.1).
    pub fn secret(&self, client_id: &str, now: i64) -> Result<Secret<String>, NotSigned> {
        let header = json!({ "alg": "ES256", "kid": self.key_id });
        let claims = json!({
            "iss": self.team_id, "iat": now, "exp": now.saturating_add(LIFETIME), "aud": AUDIENCE, "sub": client_id,
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(&header), part(&claims));
        let signature = self
            .pair
            .sign(&SystemRandom::new(), message.as_bytes())
            .map_err(|_| NotSigned)?;
        Ok(Secret::new(format!(
            "{message}.{}",
            URL_SAFE_NO_PAD.encode(signature)
        )))
    }
}

/// Returns the PKCS#8 document of a private key in PEM (RFC 7468 §10), or `None` for another text.
fn pkcs8(pem: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once("-----BEGIN PRIVATE KEY-----")?;
    let (body, _) = rest.split_once("-----END PRIVATE KEY-----")?;
    let body: String = body.split_whitespace().collect();
    STANDARD.decode(body).ok()
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientKey").field(&self.key_id).finish()
    }
}

/// The number of events in one notification. Apple sends one.
const MAX_EVENTS: usize = 16;

/// Returns the signed token in the body of a notification.
///
/// # Errors
/// The body has another form.
pub fn payload(body: &[u8]) -> Result<IdToken, Refused> {
    let token = Object::parse(body)
        .ok()
        .and_then(|mut body| match body.remove("payload")? {
            Value::String(token) => IdToken::message(token),
            _ => None,
        });
    token.ok_or(Refused::malformed(
        "the body must be a JSON object whose `payload` is a JWT, each of at most 400 values",
    ))
}

/// Reads a notification from claims that Apple has signed for one of our client ids. An event of an
/// unknown type is left out: there is nothing to do about it, and Apple would send it again and
/// again.
///
/// # Errors
/// The claims have another form, or the notification is too old.
pub fn report(claims: &Object, now: i64) -> Result<Report, Refused> {
    let issued = issued_at(claims, now)?;
    let id = message_id(claims)?.to_owned();
    let mut at = i64::MIN;
    let mut events = Vec::new();
    for told in &told(claims)? {
        let time = told.get("event_time").and_then(Value::as_i64);
        at = at.max(time.map_or(issued, |milliseconds| milliseconds.div_euclid(1000)));
        events.extend(event(told)?);
    }
    // Apple reports an event after it has happened.
    Ok(Report {
        id,
        at: at.min(issued),
        events,
    })
}

/// Returns the objects in `events`: one or several, in a string or, for the day on which Apple
/// corrects that, without.
fn told(claims: &Object) -> Result<Vec<Object>, Refused> {
    const MALFORMED: Refused = Refused::malformed("`events` must be a JSON object in a string");
    let value = match claims.get("events") {
        Some(Value::String(text)) => {
            // The wrapper refuses members that occur twice, at any depth.
            let wrapped = Object::parse(format!(r#"{{"events":{text}}}"#).as_bytes())
                .map_err(|_| MALFORMED)?;
            let alone = wrapped
                .get("events")
                .filter(|_| wrapped.members().count() == 1);
            alone.cloned().ok_or(MALFORMED)?
        }
        Some(value) => value.clone(),
        None => return Err(MALFORMED),
    };
    let several = match value {
        Value::Array(several) if (1..=MAX_EVENTS).contains(&several.len()) => several,
        one @ Value::Object(_) => vec![one],
        _ => return Err(MALFORMED),
    };
    several
        .into_iter()
        .map(|one| match one {
            Value::Object(members) => Ok(members.into()),
            _ => Err(MALFORMED),
        })
        .collect()
}

fn event(told: &Object) -> Result<Option<Event>, Refused> {
    const UNTYPED: Refused = Refused::malformed("`type` of an event must be a string");
    const NOBODY: Refused = Refused::malformed(
        "`sub` of an event must be 1 to 255 ASCII characters, at least one of them visible and none a control character",
    );
    let kind = match told.str("type").ok_or(UNTYPED)? {
        "email-disabled" => EventKind::EmailDisabled,
        "email-enabled" => EventKind::EmailEnabled,
        "consent-revoked" => EventKind::ConsentRevoked,
        "account-delete" | "account-deleted" => EventKind::AccountDeleted,
        _ => return Ok(None),
    };
    let subject = told.str("sub").filter(|sub| is_subject(sub));
    let subject = subject.ok_or(NOBODY)?;
    Ok(Some(Event {
        kind,
        subject: Some(Subject::Subject(subject.to_owned())),
        reason: None,
        email: told
            .str("email")
            .and_then(Email::parse)
            .map(|email| email.as_given().to_owned()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 2_000_000_000;

    fn object(value: &Value) -> Object {
        Object::parse(value.to_string().as_bytes()).unwrap()
    }

    fn claims(events: &Value) -> Value {
        json!({
            "iss": "https://appleid.apple.com", "aud": "com.example.app", "exp": NOW + 86_400, "iat": NOW,
            "jti": "abede67e-7b1b-4d4c-b7a2-5a2a1d6f0c1e", "events": events,
        })
    }

    fn told(kind: &str) -> Value {
        json!({ "type": kind, "sub": "000001.aa.0001", "event_time": (NOW - 20) * 1000 + 999 })
    }

    fn told_by(claims: &Value) -> Result<Report, Refused> {
        report(&object(claims), NOW)
    }

    #[test]
    fn apple_events_are_read_in_every_form_and_unknown_ones_skipped() {
        let subject = Some(Subject::Subject("000001.aa.0001".into()));
        let known = Event {
            kind: EventKind::AccountDeleted,
            subject,
            reason: None,
            email: None,
        };
        for (kind, events) in [("account-delete", vec![known]), ("account-paused", vec![])] {
            let id = "abede67e-7b1b-4d4c-b7a2-5a2a1d6f0c1e".to_owned();
            let expected = Report {
                id,
                at: NOW - 20,
                events,
            };
            let told = told(kind);
            for events in [
                json!(told.to_string()),
                told.clone(),
                json!([told]),
                json!(json!([told]).to_string()),
            ] {
                assert_eq!(
                    told_by(&claims(&events)).as_ref(),
                    Ok(&expected),
                    "{events}"
                );
            }
        }
        // An unknown one need not even have a subject.
        assert!(
            told_by(&claims(&json!(r#"{"type":"new"}"#)))
                .unwrap()
                .events
                .is_empty()
        );
    }

    #[test]
    fn the_e_mail_address_is_kept_whatever_is_private_email_is() {
        for private in [
            json!("true"),
            json!("false"),
            json!(true),
            json!(null),
            json!(1),
        ] {
            let mut told = told("email-disabled");
            told["email"] = "Relay@privaterelay.appleid.com".into();
            told["is_private_email"] = private;
            let report = told_by(&claims(&json!(told.to_string()))).unwrap();
            assert_eq!(
                report.events[0].email.as_deref(),
                Some("Relay@privaterelay.appleid.com")
            );
        }
        for odd in [
            json!("not an address"),
            json!(1),
            json!(["a@x"]),
            json!(null),
        ] {
            let mut told = told("email-enabled");
            told["email"] = odd;
            assert_eq!(
                told_by(&claims(&json!(told.to_string()))).unwrap().events[0].email,
                None
            );
        }
    }

    #[test]
    fn a_report_takes_its_latest_event_time_capped_by_the_notification() {
        let at = |times: &[Value]| {
            let events = times.iter().map(|time| {
                let mut told = told("consent-revoked");
                told["event_time"] = time.clone();
                told
            });
            told_by(&claims(&json!(events.collect::<Value>().to_string())))
                .unwrap()
                .at
        };
        assert_eq!(
            at(&[json!((NOW - 90) * 1000), json!((NOW - 30) * 1000)]),
            NOW - 30
        );
        assert_eq!(at(&[json!((NOW + 90) * 1000)]), NOW);
        for odd in [json!(null), json!("1"), json!(1.5), json!(u64::MAX)] {
            assert_eq!(at(&[odd]), NOW);
        }
        assert_eq!(at(&[json!(-1)]), -1);
    }

    #[test]
    fn what_is_not_a_notification_is_refused() {
        let with = |name: &str, value: Value| {
            let mut claims = claims(&json!(told("consent-revoked").to_string()));
            claims[name] = value;
            claims
        };
        let of = |name: &str, value: Value| {
            let mut told = told("consent-revoked");
            told[name] = value;
            claims(&json!(told.to_string()))
        };
        assert!(told_by(&with("iat", json!(NOW + 300))).is_ok());
        let many = vec![told("consent-revoked"); MAX_EVENTS + 1];
        for odd in [
            with("jti", json!(null)),
            with("iat", json!(NOW + 301)),
            with("events", json!(null)),
            with("events", json!("")),
            with("events", json!("{")),
            with("events", json!("{},\"x\":{}")),
            with(
                "events",
                json!(r#"{"type":"consent-revoked","sub":"a","sub":"b"}"#),
            ),
            with("events", json!([])),
            with("events", json!(["consent-revoked"])),
            with("events", json!(many)),
            with("events", json!(1)),
            of("type", json!(null)),
            of("type", json!(1)),
            of("sub", json!(null)),
            of("sub", json!("")),
            of("sub", json!("a\nb")),
            of("sub", json!("s".repeat(256))),
        ] {
            assert!(told_by(&odd).is_err(), "{:.200}", odd.to_string());
        }
    }

    #[test]
    fn the_payload_is_a_member_of_one_object() {
        let body = |payload: &str| format!(r#"{{"payload":{payload},"more":1}}"#);
        assert_eq!(
            payload(body(r#""e30.e30.c2ln""#).as_bytes())
                .unwrap()
                .expose(),
            "e30.e30.c2ln"
        );
        let twice = r#"{"payload":"e30.e30.c2ln","payload":"e30.e30.c2ln"}"#.to_owned();
        let bare = ["", "e30.e30.c2ln", "{}", r#"["e30.e30.c2ln"]"#].map(str::to_owned);
        let odd = [
            "1",
            r#""""#,
            r#""e30.e30""#,
            r#""a.b.c""#,
            r#""bnVsbA.e30.c2ln""#,
        ]
        .map(body);
        for odd in bare.into_iter().chain(odd).chain([twice]) {
            assert!(payload(odd.as_bytes()).is_err(), "{odd}");
        }
    }
}
