//! `/event`: issues a security event token (RFC 8417) about an account, with subjects as Google writes them. It follows no
//! standard; `vestibule dev event` uses it, and sends the token on as a provider would (RFC 8935).

use rocket::form::{self, Strict};
use rocket::response::status::BadRequest;
use rocket::{FromForm, State, get};
use serde_json::{Value, json};
use uuid::Uuid;

use super::account::DevAccount;
use super::{IdentityProvider, describe};
use crate::clock;

/// The events that the provider can send, with the families of their types.
pub const KINDS: [(&str, &str); 13] = [
    ("sessions-revoked", "risc"),
    ("session-revoked", "caep"),
    ("tokens-revoked", "oauth"),
    ("token-revoked", "oauth"),
    ("account-disabled", "risc"),
    ("account-enabled", "risc"),
    ("account-purged", "risc"),
    ("account-credential-change-required", "risc"),
    ("credential-compromise", "risc"),
    ("credential-change", "caep"),
    ("identifier-changed", "risc"),
    ("identifier-recycled", "risc"),
    ("verification", "risc"),
];

#[derive(FromForm)]
pub(super) struct EventRequest<'r> {
    kind: &'r str,
    email: Option<&'r str>,
    sub: Option<&'r str>,
    reason: Option<&'r str>,
}

/// Issues a token. An unknown parameter is an error, because a misspelt one would change nothing.
#[get("/event?<request..>")]
pub(super) fn event(
    provider: &State<IdentityProvider>,
    request: form::Result<'_, Strict<EventRequest<'_>>>,
) -> Result<String, BadRequest<String>> {
    let token = request.map_err(|errors| describe(&errors)).and_then(|request| issue(provider, &request));
    token.map_err(|why| BadRequest(why + "\n"))
}

fn issue(provider: &IdentityProvider, request: &EventRequest<'_>) -> Result<String, String> {
    let known = KINDS.iter().find(|(kind, _)| *kind == request.kind);
    let (kind, family) = known.ok_or("`kind` is not an event that this provider sends")?;
    let now = clock::now();
    let mut event = json!({});
    if let Some(reason) = request.reason {
        event["reason"] = reason.into();
    }
    match *kind {
        "verification" => event["state"] = "vestibule dev event".into(),
        // The hash is of no token: the service stores none.
        "token-revoked" => {
            event["subject"] = json!({
                "subject_type": "oauth_token", "token_type": "refresh_token",
                "token_identifier_alg": "hash_base64_sha512_sha512", "token": Uuid::new_v4(),
            });
        }
        kind => {
            let [email, subject] = [request.email, request.sub].map(Option::unwrap_or_default);
            let account = DevAccount::new(email, subject, "", true)?;
            event["subject"] =
                json!({ "subject_type": "iss-sub", "iss": provider.issuer, "sub": account.subject });
            if kind == "credential-change" {
                event["credential_type"] = "password".into();
                event["change_type"] = "update".into();
            }
            if let Some(email) = account.email.filter(|_| kind == "identifier-changed") {
                event["new-value"] = format!("new.{}", email.as_given()).into();
            }
        }
    }
    let header = json!({ "alg": "RS256", "kid": provider.key.id, "typ": "secevent+jwt" });
    let uri = format!("https://schemas.openid.net/secevent/{family}/event-type/{kind}");
    let mut events = serde_json::Map::new();
    events.insert(uri, event);
    let claims = json!({
        "iss": provider.issuer, "aud": provider.client_id, "iat": now, "jti": Uuid::new_v4(),
        "events": Value::Object(events),
    });
    Ok(provider.sign(&header, &claims))
}
