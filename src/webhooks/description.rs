//! The messages in the API's description, each with its JSON Schema.

use serde_json::{Value, json};
use strum::{EnumMessage, VariantArray};
use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{OpenApi, RefOr};

use super::message;
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
            message::schema(*kind),
        );
        (name, described)
    });
    let words = (
        "A receiver is tried",
        "It tells of no change, and `data` is empty: answer with 2xx.",
    );
    let messages = messages.chain([(TEST.to_owned(), webhook(TEST, words, Object::new().into()))]);
    let tag = TagBuilder::new()
        .name(TAG)
        .description(Some("What other systems are told by webhooks."))
        .build();
    api.tags.get_or_insert_default().push(tag);
    // A test finds them there.
    api.webhooks = serde_json::from_value(Value::Object(messages.collect())).ok();
}

fn webhook(kind: &str, (summary, description): (&str, &str), data: RefOr<Schema>) -> Value {
    let name: String = kind.split(['.', '_']).map(capitalized).collect();
    // No component: oapi-codegen leaves out components that no path uses, and then its code for the
    // webhooks does not compile.
    let time = ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .description(Some("The time of the change."));
    let schema = ObjectBuilder::new()
        .property(
            "type",
            ObjectBuilder::new()
                .schema_type(Type::String)
                .enum_values(Some([kind])),
        )
        .required("type")
        .property("timestamp", time)
        .required("timestamp")
        .property("data", data)
        .required("data");
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
        "requestBody": { "required": true, "content": { "application/json": { "schema": schema.build() } } },
        "responses": {
            "2XX": { "description": "The message is accepted." },
            "410": { "description": "The receiver wants no more attempts to send this message." },
            "default": { "description": "The message is sent again, for three days." },
        },
    }})
}
