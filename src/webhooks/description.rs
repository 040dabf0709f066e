//! The messages in the API's description, each with its JSON Schema.

use serde_json::{Map, Value, json};
use strum::{EnumMessage, VariantArray};
use utoipa::openapi::OpenApi;
use utoipa::openapi::tag::TagBuilder;

use super::sender::TEST;
use crate::domain::MessageType;
use crate::domain::text::capitalized;

const TAG: &str = "Webhooks";

pub fn describe(api: &mut OpenApi) {
    let messages = MessageType::VARIANTS.iter().map(|kind| {
        let name = kind.to_string();
        let words = kind
            .get_documentation()
            .unwrap_or_default()
            .trim()
            .replace('\n', " ");
        let described = webhook(
            &name,
            words.split_once(". ").unwrap_or_default(),
            &data(*kind),
        );
        (name, described)
    });
    let words = (
        "A receiver is tried",
        "It tells of no change, and `data` is empty: answer with 2xx.",
    );
    let messages = messages.chain([(TEST.to_owned(), webhook(TEST, words, &json!({})))]);
    let tag = TagBuilder::new()
        .name(TAG)
        .description(Some("What other systems are told by webhooks."))
        .build();
    api.tags.get_or_insert_default().push(tag);
    // A test finds them there.
    api.webhooks = serde_json::from_value(Value::Object(messages.collect())).ok();
}

fn webhook(kind: &str, (summary, description): (&str, &str), data: &Value) -> Value {
    let name: String = kind.split(['.', '_']).map(capitalized).collect();
    // No component: oapi-codegen leaves out components that no path uses, and then its code for the
    // webhooks does not compile.
    let schema = object(&json!({
        "type": { "type": "string", "enum": [kind] },
        "timestamp": time("The time of the change."),
        "data": object(data),
    }));
    let header = |name: &str, description: &str| {
        let schema = json!({ "type": "string" });
        json!({ "name": name, "in": "header", "required": true, "description": description, "schema": schema })
    };
    json!({ "post": {
        "operationId": format!("receive{name}"),
        "tags": [TAG],
        "summary": summary,
        "description": description,
        "security": [],
        "parameters": [
            header("webhook-id", "The id of the message, the same in each attempt. A message may arrive more than once."),
            header("webhook-timestamp", "The time of the attempt, in seconds since 1970-01-01T00:00:00Z."),
            header("webhook-signature", "`v1,` and the base64 of the HMAC-SHA256 of id, timestamp and body, joined by \
                                         dots; one for each secret, separated by blanks (Standard Webhooks)."),
        ],
        "requestBody": { "required": true, "content": { "application/json": { "schema": schema } } },
        "responses": {
            "2XX": { "description": "The message is accepted." },
            "410": { "description": "The receiver wants no more attempts to send this message." },
            "default": { "description": "The message is sent again, for three days." },
        },
    }})
}

fn data(kind: MessageType) -> Value {
    // Not `oneOf`, nor `null` alone: generators for Java make classes of these that do not exist.
    let mut user = user();
    user["type"] = json!(["object", "null"]);
    user["description"] =
        json!("The user as of the change; `null` if there is no such user any more.");
    let mut data = Map::from_iter([
        (
            "user_id".to_owned(),
            id("The user whom the change concerns."),
        ),
        ("user".to_owned(), user),
    ]);
    let more = match kind {
        MessageType::UserMerged => json!({
            "from": id("The user who is no more."),
            "into": id("The user who remains: `user_id`."),
            "from_claims": {
                "type": "object",
                "description": "The claims of `from`. `user` has those that were missing there, and else its own.",
            },
        }),
        MessageType::IdentityMoved => json!({
            "from": id("The user who had the identity."),
            "to": id("The user who has it now: `user_id`."),
            "identity": identity(&["id", "provider"]),
        }),
        MessageType::IdentityLinked
        | MessageType::IdentityUnlinked
        | MessageType::IdentityHeld
        | MessageType::IdentityReleased => json!({ "identity": identity(&["id", "provider"]) }),
        MessageType::SessionsEnded => json!({
            "sessions": {
                "type": "string", "enum": ["one", "others", "all"],
                "description": "`one`: `session_id`. `others`: all of the user's but `session_id`. `all`: all of the user's.",
            },
            "session_id": { "type": ["string", "null"], "format": "uuid", "description": "`sid` in access tokens." },
        }),
        MessageType::RefreshTokenReplayed => json!({ "session_id": id("`sid` in access tokens.") }),
        MessageType::ProviderEvent => json!({
            "event": {
                "type": "string",
                "description": "What has happened: `sessions_revoked`, `tokens_revoked`, `account_disabled`, `account_enabled`, \
                                `account_purged`, `account_deleted`, `credential_change`, `identifier_changed`, \
                                `email_disabled`, `email_enabled`, `consent_revoked` or `deauthorized`. There may be others.",
            },
            "reason": optional("The provider's reason, such as `hijacking`."),
            "occurred_at": time("The time of the event at the provider."),
            "identity": identity(&["id", "provider"]),
            "suspended": {
                "type": "boolean", "description": "True if nobody can sign in with the identity now.",
            },
            "sessions_ended": { "type": "integer", "minimum": 0, "description": "The number of sessions that ended." },
        }),
        _ => json!({}),
    };
    data.extend(more.as_object().cloned().unwrap_or_default());
    Value::Object(data)
}

fn user() -> Value {
    object(&json!({
        "id": id("`sub` in access tokens."),
        "email": optional("In ASCII lower case."),
        "email_verified": { "type": "boolean" },
        "name": optional("The name."),
        "picture": optional("The URL of the picture."),
        "created_at": time("The time of the first sign-in, or of the import."),
        "updated_at": time("The time of the last change."),
        "disabled_at": { "type": ["string", "null"], "format": "date-time" },
        "claims": { "type": "object", "description": "What the backend has set by the admin API." },
        "identities": {
            "type": "array", "items": identity(&["id", "provider", "subject", "email"]),
            "description": "The accounts that the user signs in with.",
        },
    }))
}

fn identity(required: &[&str]) -> Value {
    json!({
        "type": "object",
        "description": "An account at an identity provider. One that is gone has only `id` and `provider`.",
        "required": required,
        "properties": {
            "id": id("The id of the identity."),
            "provider": { "type": "string" },
            "subject": { "type": "string", "description": "The provider's id of the account." },
            "email": optional("The e-mail address of the account."),
        },
    })
}

/// Returns the schema of an object that has all of these members.
fn object(properties: &Value) -> Value {
    let required: Vec<_> = properties
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

fn id(description: &str) -> Value {
    json!({ "type": "string", "format": "uuid", "description": description })
}

fn time(description: &str) -> Value {
    json!({ "type": "string", "format": "date-time", "description": description })
}

fn optional(description: &str) -> Value {
    json!({ "type": ["string", "null"], "description": description })
}
