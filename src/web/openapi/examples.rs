//! Example requests and answers. The tests check them against the schemas.

use serde_json::{Map, Value, json};
use utoipa::PartialSchema;

use crate::domain::User;

pub const REQUEST_ID: &str = "0199a6c2f0c47d51b3c59c8d2f6a7e10";
const USER: &str = "0199a6c2-f0c4-7d51-b3c5-9c8d2f6a7e11";
const OTHER_USER: &str = "0199a6c2-f0c4-7d51-b3c5-9c8d2f6a7e15";
const IDENTITY: &str = "0199a6c2-f0c4-7d51-b3c5-9c8d2f6a7e12";
const SUBJECT: &str = "110169484474386276334";
const EMAIL: &str = "ada@example.com";
const THEN: &str = "2026-01-31T09:26:53.589793Z";
/// A shortened token; a real one has some 800 bytes.
const ID_TOKEN: &str = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxMTAxIn0.c2lnbmF0dXJl";
const CLIENT_ID: &str = "1234567890-android.apps.googleusercontent.com";
const REFRESH_TOKEN: &str = "an-opaque-text-of-43-characters-to-be-kept-";

/// The formats that texts have, and a text of each.
const FORMATS: [(&str, &str); 3] = [("uuid", USER), ("date-time", THEN), ("date", "2026-02-01")];

/// Makes the example of a schema from the examples of its members. A member without an example is
/// `null` where it may be, and left out where it may be missing.
pub fn sample(schema: &Value, schemas: &Value) -> Value {
    let reference = schema["$ref"]
        .as_str()
        .and_then(|reference| reference.rsplit('/').next());
    if let Some(name) = reference {
        return sample(&schemas[name], schemas);
    }
    if let Some(example) = schema.get("example") {
        return example.clone();
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let members = parts
            .iter()
            .filter_map(|part| sample(part, schemas).as_object().cloned());
        return members.flatten().collect::<Map<_, _>>().into();
    }
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    let is = |name| schema["type"] == name;
    if let Some(members) = schema["properties"].as_object() {
        let required = schema["required"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let shown = members.iter().filter(|(name, member)| {
            required.contains(&json!(name)) || member.get("example").is_some()
        });
        let members = shown.map(|(name, member)| (name.clone(), sample(member, schemas)));
        return members.collect::<Map<_, _>>().into();
    }
    let text = FORMATS
        .iter()
        .find(|(format, _)| schema["format"] == *format)
        .map(|(_, text)| *text);
    match () {
        () if is("array") => json!([sample(&schema["items"], schemas)]),
        () if is("string") => text.unwrap_or_default().into(),
        () if is("integer") => 1.into(),
        () if is("boolean") => false.into(),
        // Only claims have members of any name.
        () if is("object") => json!({ "roles": ["editor"], "tenant": 7 }),
        () => Value::Null,
    }
}

/// Returns the example of a type, by the name of its schema. Where one is not enough, the route has
/// several.
pub fn of(schema: &str) -> Option<Value> {
    Some(match schema {
        "Credential" => credential(),
        "JwkSet" => json!({ "keys": [{
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256",
            "kid": "y-mb4lLIhEBkSItlHErgd7bwrBp0sA-Kq4KMEJJlYbo",
            "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
        }] }),
        "OAuthError" => {
            json!({ "error": "invalid_grant", "error_description": "session_ended: the session has ended" })
        }
        "Providers" => json!({ "providers": [
            { "name": "google", "kind": "google", "issuer": null,
              "client_id": "1234567890-web.apps.googleusercontent.com", "nonce": "both_or_neither", "nonce_form": "raw",
              "clients": { "1234567890-ios.apps.googleusercontent.com": { "nonce": "if_sent", "nonce_form": "raw" } } },
            { "name": "apple", "kind": "apple", "issuer": null, "client_id": "com.example.app",
              "nonce": "both_or_neither", "nonce_form": "sha256", "clients": {} },
        ] }),
        "RefreshRequest" | "SignOutRequest" => json!({ "refresh_token": REFRESH_TOKEN }),
        "RemovalRequest" => reauthentication(),
        "RevocationRequest" => {
            json!({ "token": REFRESH_TOKEN, "token_type_hint": "refresh_token", "client_id": CLIENT_ID })
        }
        "TokenGrant" => token_grant(),
        "TokenRequest" => {
            json!({ "grant_type": "refresh_token", "refresh_token": REFRESH_TOKEN, "client_id": CLIENT_ID })
        }
        "UpdateMeRequest" => json!({ "name": "Ada Lovelace" }),
        _ => return None,
    })
}

/// Returns a sign-in, or a request to link an identity, with the required members only.
pub fn id_token() -> Value {
    json!({ "id_token": ID_TOKEN })
}

pub fn id_token_and_nonce() -> Value {
    json!({ "id_token": ID_TOKEN, "nonce": "n-0S6_WzA2Mj" })
}

fn reauthentication() -> Value {
    json!({ "reauthentication": { "provider": "google", "id_token": ID_TOKEN, "nonce": "n-0S6_WzA2Mj" } })
}

/// Returns a request to link an identity in a session that is not fresh.
pub fn whole_link() -> Value {
    let mut body = reauthentication();
    body["id_token"] = ID_TOKEN.into();
    body
}

pub fn whole_sign_in() -> Value {
    json!({
        "authorization_code": "c4f30d6a8e2.0.rrsvq.7tF1xwkQ",
        "id_token": ID_TOKEN, "nonce": "n-0S6_WzA2Mj", "create": true,
        "device": { "name": "Ada's phone", "platform": "Android 17" }, "name": "Ada Lovelace",
    })
}

/// Returns a request to merge another account, or to be shown what that changes.
pub fn merge_me(dry_run: bool) -> Value {
    json!({ "provider": "google", "id_token": ID_TOKEN, "nonce": "n-0S6_WzA2Mj", "dry_run": dry_run })
}

pub fn merge_result(applied: bool) -> Value {
    json!({
        "applied": applied, "user": user(), "claims": { "roles": ["editor"], "tenant": 7 },
        "identities": [{ "provider": "google", "subject": SUBJECT, "email": "a@example.com" }],
        "ended_sessions": 1, "merged": { "user_id": OTHER_USER, "claims": { "tenant": 7 } },
    })
}

/// A Security Event Token, as a provider pushes it.
pub const SECURITY_EVENT: &str =
    "eyJ0eXAiOiJzZWNldmVudCtqd3QiLCJhbGciOiJSUzI1NiJ9.eyJldmVudHMiOnt9fQ.c2lnbmF0dXJl";

pub fn signed_in(outcome: &str) -> Value {
    let mut body = credential();
    body["outcome"] = outcome.into();
    body["user"] = user_with_claims();
    body["identity"] =
        json!({ "id": IDENTITY, "provider": "google", "subject": SUBJECT, "email": EMAIL });
    body
}

fn credential() -> Value {
    let mut credential = token_grant();
    credential["expires_at"] = "2026-01-31T09:41:53Z".into();
    credential
}

fn token_grant() -> Value {
    json!({
        "access_token": "eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCJ9.eyJzdWIiOiIwMTk5In0.c2lnbmF0dXJl",
        "token_type": "Bearer", "expires_in": 900,
        "refresh_token": REFRESH_TOKEN, "refresh_expires_in": 2_592_000,
    })
}

fn user() -> Value {
    sample(&json!(User::schema()), &Value::Null)
}

fn user_with_claims() -> Value {
    let mut body = user();
    body["claims"] = json!({ "roles": ["editor"], "tenant": 7 });
    body
}
