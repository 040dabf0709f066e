//! Security Event Tokens (RFC 8417), pushed to us (RFC 8935): Google's Cross-Account Protection,
//! and the RISC and CAEP events of any provider with Shared Signals.

use serde_json::{Map, Value};

use super::Error;
use crate::domain::report::{Event, EventKind, Report, Subject, word};
use crate::domain::security_event::{self, Refused, seconds};
use crate::domain::{IdToken, Issuers, Object};
use crate::provider::Provider;

/// The media type of a pushed token (RFC 8417 §2.3).
const MEDIA_TYPE: &str = "application/secevent+jwt";
/// The most events in one message. The standard expects one, perhaps in several descriptions.
const MAX_EVENTS: usize = 16;
/// The longest `sub`, in bytes (OpenID Connect Core §2).
const MAX_SUBJECT: usize = 255;

pub(super) async fn read(
    provider: &Provider,
    media_type: &str,
    body: Vec<u8>,
    now: i64,
) -> Result<Report, Error> {
    if media_type != MEDIA_TYPE {
        return Err(Refused::malformed("`Content-Type` must be `application/secevent+jwt`").into());
    }
    let token = jwt(body).ok_or(Refused::malformed(
        "the body must be a JWT of at most 400 values: three base64url parts separated by dots",
    ))?;
    let claims = provider.verify_event(&token, now).await?;
    Ok(report(&claims, &provider.settings.issuers, now)?)
}

/// Reads the token without a copy, which would be kept until the provider's keys are there.
fn jwt(body: Vec<u8>) -> Option<IdToken> {
    let mut text = String::from_utf8(body).ok()?;
    text.truncate(text.trim_ascii_end().len());
    let blanks = text.len() - text.trim_ascii_start().len();
    text.drain(..blanks);
    IdToken::message(text)
}

fn report(claims: &Object, issuers: &Issuers, now: i64) -> Result<Report, Refused> {
    let issued_at = security_event::issued_at(claims, now)?;
    let id = security_event::message_id(claims)?.to_owned();
    let events = claims.get("events").and_then(Value::as_object);
    let events = events.ok_or(Refused::malformed(
        "`events` must be an object with an event",
    ))?;
    if !(1..=MAX_EVENTS).contains(&events.len()) {
        return Err(Refused::malformed("`events` must have 1 to 16 events"));
    }
    // An event is sent after it has happened, so the earliest time counts.
    let stated = claims.get("toe").into_iter().chain(
        events
            .values()
            .filter_map(|event| event.get("event_timestamp")),
    );
    let at = stated.filter_map(time).fold(issued_at, i64::min).min(now);
    let whole = claims.get("sub_id").or_else(|| claims.get("subject"));
    // Google's issuer has a slash at its end here, and none in its tokens.
    let ours = |iss: &str| {
        Some(iss) == claims.str("iss")
            || issuers.include(iss)
            || issuers.include(iss.trim_end_matches('/'))
    };
    let mut read = Vec::new();
    for (uri, event) in events {
        // A receiver need not understand every event (RFC 8417 §2).
        let Some(name) = Name::of(uri) else { continue };
        let event = event
            .as_object()
            .ok_or(Refused::malformed("an event must be an object"))?;
        read.push(name.event(event, whole, claims.str("sub"), &ours)?);
    }
    Ok(Report {
        id,
        at,
        events: read,
    })
}

/// Returns a time, which senders of old drafts give in milliseconds.
fn time(value: &Value) -> Option<i64> {
    const FAR_FUTURE: i64 = 100_000_000_000;
    seconds(value)
        .filter(|at| *at > 0)
        .map(|at| if at > FAR_FUTURE { at / 1000 } else { at })
}

/// A type of event, by the end of its URI.
struct Name {
    kind: EventKind,
    /// The reason that the type itself says.
    reason: Option<&'static str>,
}

impl Name {
    fn of(uri: &str) -> Option<Self> {
        let (family, name) = uri
            .strip_prefix("https://schemas.openid.net/secevent/")?
            .split_once("/event-type/")?;
        let (kind, reason) = match (family, name) {
            ("risc", "sessions-revoked" | "session-revoked") | ("caep", "session-revoked") => {
                (EventKind::SessionsRevoked, None)
            }
            ("oauth", "tokens-revoked" | "token-revoked") => (EventKind::TokensRevoked, None),
            ("risc", "account-disabled") => (EventKind::AccountDisabled, None),
            ("risc", "account-enabled") => (EventKind::AccountEnabled, None),
            ("risc", "account-purged") => (EventKind::AccountPurged, None),
            ("risc", "account-credential-change-required") => {
                (EventKind::CredentialChange, Some("required"))
            }
            ("risc", "credential-compromise") => (EventKind::CredentialChange, Some("compromised")),
            ("caep", "credential-change") => (EventKind::CredentialChange, None),
            ("risc", "identifier-changed") => (EventKind::IdentifierChanged, None),
            ("risc", "identifier-recycled") => (EventKind::IdentifierChanged, Some("recycled")),
            ("risc" | "ssf", "verification") => (EventKind::Verification, None),
            _ => return None,
        };
        Some(Self { kind, reason })
    }

    /// Reads an event. It has a subject of its own, or else the subject that the token has for all
    /// of its events: `whole` and `sub`.
    fn event(
        &self,
        event: &Map<String, Value>,
        whole: Option<&Value>,
        sub: Option<&str>,
        ours: &dyn Fn(&str) -> bool,
    ) -> Result<Event, Refused> {
        let stated = ["reason", "change_type", "initiating_entity"];
        let stated = stated
            .iter()
            .find_map(|member| event.get(*member)?.as_str())
            .and_then(word);
        let subject = match event
            .get("subject")
            .or_else(|| event.get("sub_id"))
            .or(whole)
        {
            _ if self.kind == EventKind::Verification => None,
            Some(subject) => subject_of(subject, ours)?,
            None => Some(
                sub.and_then(|sub| text(sub, Subject::Subject))
                    .ok_or(NO_SUBJECT)?,
            ),
        };
        let new = event
            .get("new-value")
            .or_else(|| event.get("new_value"))
            .and_then(Value::as_str);
        Ok(Event {
            kind: self.kind,
            subject,
            reason: self.reason.map(str::to_owned).or(stated),
            email: new.filter(|value| value.contains('@')).map(str::to_owned),
        })
    }
}

const NO_SUBJECT: Refused = Refused::malformed("the event's subject is missing or cannot be read");

/// Reads a subject, as Google, a draft or RFC 9493 writes it. Returns `None` for a subject that no
/// identity has, such as a telephone number or a token.
fn subject_of(subject: &Value, ours: &dyn Fn(&str) -> bool) -> Result<Option<Subject>, Refused> {
    let member = |name: &str| subject.get(name).and_then(Value::as_str);
    if member("iss").is_some_and(|iss| !ours(iss)) {
        return Err(Refused::malformed(
            "the event's subject is another issuer's",
        ));
    }
    let format = member("format")
        .or_else(|| member("subject_type"))
        .unwrap_or_default();
    let read = match format.replace('-', "_").as_str() {
        // Google (`id_token_claims`) and drafts name no format, or one of their own.
        "iss_sub" | "id_token_claims" | "" if member("sub").is_some() => {
            member("sub").and_then(|sub| text(sub, Subject::Subject))
        }
        "email" | "id_token_claims" | "" if member("email").is_some() => {
            member("email").and_then(|email| text(email, Subject::Email))
        }
        "opaque" => member("id").and_then(|id| text(id, Subject::Subject)),
        // Of the parts of a complex subject, only the user is known here.
        "complex" | "" => {
            return subject
                .get("user")
                .map_or(Ok(None), |user| subject_of(user, ours));
        }
        "aliases" => {
            let aliases = subject
                .get("identifiers")
                .and_then(Value::as_array)
                .ok_or(NO_SUBJECT)?;
            let read = aliases
                .iter()
                .take(MAX_EVENTS)
                .filter_map(|alias| subject_of(alias, ours).ok()?);
            // The subject cannot change hands, as an address can.
            return Ok(read.min_by_key(|alias| !matches!(alias, Subject::Subject(_))));
        }
        "iss_sub" | "id_token_claims" | "email" => None,
        _ => return Ok(None),
    };
    read.map(Some).ok_or(NO_SUBJECT)
}

fn text(text: &str, form: fn(String) -> Subject) -> Option<Subject> {
    let sound = (1..=MAX_SUBJECT).contains(&text.len()) && !text.chars().any(char::is_control);
    sound.then(|| form(text.to_owned()))
}
