//! The request schemas match the hand-written request guards.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use vestibule::domain::api_key::KeyRole;

use super::document::{Document, Operation};
use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::token::claims;

/// A user and a backend that send the described requests.
struct Sender {
    app: App,
    token: String,
    key: String,
}

impl Sender {
    async fn start() -> Self {
        let app = App::start().await;
        let token = app
            .sign_in(&claims("ada", "ada@example.com"))
            .await
            .access_token();
        let key = app.api_key("admin", KeyRole::Admin).await;
        Self { app, token, key }
    }

    async fn send(&self, operation: &Operation<'_>, body: &Value) -> Answer {
        let credential = if operation.path.contains("/admin/") {
            &self.key
        } else {
            &self.token
        };
        let method = Method::from_bytes(operation.method.to_uppercase().as_bytes()).unwrap();
        let path = operation
            .path
            .replace("{identity}", "idp")
            .replace("{provider}", "idp");
        let path = path.replace("{id}", &"0".repeat(32));
        if path.contains("/auth/") {
            return self
                .app
                .send(method, &path, Some("application/json"), body.to_string())
                .await;
        }
        self.app
            .as_user(credential, method, &path, Some(body))
            .await
    }
}

/// Returns the JSON examples of an operation's body, and their schema.
fn examples<'a>(document: &'a Document, operation: &Operation<'a>) -> (Vec<&'a Value>, &'a Value) {
    let content = &operation.body["requestBody"]["content"]["application/json"];
    let several = content["examples"]
        .as_object()
        .into_iter()
        .flat_map(|examples| examples.values());
    let examples = several
        .map(|example| document.example(example))
        .chain(content.get("example"));
    (examples.collect(), &content["schema"])
}

/// Collects the JSON pointers (RFC 6901) of strings and booleans in a body.
fn places(body: &Value, place: &str, found: &mut Vec<String>) {
    match body {
        Value::Object(members) => {
            for (name, value) in members.iter().filter(|(name, _)| *name != "claims") {
                places(value, &format!("{place}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{place}/{index}"), found);
            }
        }
        _ => found.push(place.to_owned()),
    }
}

/// Collects the greatest lengths of strings in a schema.
fn bounds(document: &Document, schema: &Value, found: &mut BTreeSet<usize>) {
    let inner = schema
        .as_object()
        .into_iter()
        .flat_map(|members| members.values());
    inner
        .chain(schema.as_array().into_iter().flatten())
        .for_each(|inner| bounds(document, inner, found));
    if let Some(pointer) = schema["$ref"]
        .as_str()
        .and_then(|reference| reference.strip_prefix('#'))
    {
        bounds(document, document.0.pointer(pointer).unwrap(), found);
    }
    found.extend(
        schema["maxLength"]
            .as_u64()
            .map(|length| usize::try_from(length).unwrap()),
    );
}

/// Returns an example with all strings and booleans of its schema. An optional member that the
/// example lacks is `null`.
fn whole(document: &Document, example: &Value, schema: &Value) -> Value {
    // The provider must be configured, or it would be the error.
    let mut body: Value =
        serde_json::from_str(&example.to_string().replace("google", "idp")).unwrap();
    let pointer = schema["$ref"]
        .as_str()
        .and_then(|reference| reference.strip_prefix('#'))
        .expect("a component");
    for (name, member) in document.0.pointer(pointer).unwrap()["properties"]
        .as_object()
        .unwrap()
    {
        let optional =
            [json!(["string", "null"]), json!(["boolean", "null"])].contains(&member["type"]);
        if optional && body.get(name).is_none() {
            body[name] = Value::Null;
        }
    }
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn request_members_are_refused_exactly_when_the_schema_forbids_them() {
    let mut sender = Sender::start().await;
    let document = Document::new();
    let mut usual = vec![json!(7), json!(["x"]), json!(true), Value::Null];
    usual.extend(["", " ", "true", "x\n", "ä", "https://x.example"].map(Value::from));
    // Rules that a schema cannot express.
    let beyond = [
        "512 bytes",
        "a JWT",
        "a configured provider",
        "exactly one e-mail address",
        "without an `email`",
    ];
    let mut sound = 0;
    let mut malformed = 0;
    for operation in document.operations() {
        let (examples, schema) = examples(&document, &operation);
        sender.token = sender
            .app
            .sign_in(&claims("ada", "ada@example.com"))
            .await
            .access_token();
        if operation.method == "delete" {
            // In a new session the deletion would succeed.
            sender.app.age(660.0).await;
        }
        for example in examples {
            let validator = document.validator(schema);
            let example = whole(&document, example, schema);
            let mut found = Vec::new();
            let mut longest = BTreeSet::new();
            let mut values = usual.clone();
            places(&example, "", &mut found);
            bounds(&document, schema, &mut longest);
            for length in longest.iter().flat_map(|length| [*length, length + 1]) {
                values.extend(["x", "ä"].map(|character| Value::from(character.repeat(length))));
            }
            for (place, value) in found
                .iter()
                .flat_map(|place| values.iter().map(move |value| (place, value)))
            {
                let mut body = example.clone();
                body.pointer_mut(place).unwrap().clone_from(value);
                let answer = sender.send(&operation, &body).await.json();
                let detail = answer["detail"].as_str().unwrap_or_default();
                let name = format!("{}`", place.rsplit('/').next().unwrap());
                let refused = answer["status"] == 400 && detail.contains(&name);
                let valid = validator.is_valid(&body);
                let may_differ = refused && beyond.iter().any(|rule| detail.contains(rule));
                assert!(
                    valid != refused || may_differ,
                    "{} {place} {value:.40} {answer}",
                    operation.name()
                );
                assert!(!detail.contains("xx"), "{detail}");
                *if valid { &mut sound } else { &mut malformed } += 1;
            }
        }
    }
    assert!(sound > 100 && malformed > 300, "{sound} {malformed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_scope_that_is_described_can_be_signed_out_of() {
    let app = App::start().await;
    let document = Document::new();
    let operation = document.operation("logout");
    let parameter = &operation.body["parameters"][0];
    let validator = document.validator(&parameter["schema"]);
    for scope in ["local", "others", "global", "", "Local", "all"] {
        let token = app
            .sign_in(&claims("ada", "ada@example.com"))
            .await
            .access_token();
        let answer = app.sign_out(&token, scope).await;
        assert_eq!(
            validator.is_valid(&json!(scope)),
            answer.status == 204,
            "{scope} {}",
            answer.text
        );
    }
    assert!(
        !operation.body["requestBody"]["required"]
            .as_bool()
            .unwrap_or_default(),
        "it can be left out"
    );
}

/// A misspelt member would be lost silently. At a sign-in and a refresh that is harmless.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_changes_or_ends_something_has_no_unknown_member() {
    let sender = Sender::start().await;
    let document = Document::new();
    let app = &sender.app;
    let token = &sender.token;
    let before = app.database.rows().await;
    let mut tried = 0;
    let public = ["signIn", "refresh"].map(Some);
    for operation in document
        .operations()
        .filter(|one| !public.contains(&one.body["operationId"].as_str()))
    {
        let (examples, schema) = examples(&document, &operation);
        for example in examples {
            let nested = example
                .as_object()
                .unwrap()
                .iter()
                .filter(|(_, value)| value.is_object());
            let places = nested
                .map(|(name, _)| format!("/{name}"))
                .filter(|place| place != "/claims");
            for place in places.chain([String::new()]) {
                let mut body = example.clone();
                body.pointer_mut(&place).unwrap()["dry_Run"] = true.into();
                let answer = sender.send(&operation, &body).await;
                assert!(
                    !document.validator(schema).is_valid(&body),
                    "{} {body}",
                    operation.name()
                );
                assert_problem(&answer, 400, "invalid_request");
                assert!(
                    answer.text.contains("unknown member, `dry_Run`"),
                    "{body} {}",
                    answer.text
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 20, "{tried}");
    // Misspelt members are refused without a media type, too, and so is a `null` for a change that
    // cannot be undone.
    let untyped = app
        .send(
            Method::POST,
            "/api/v1/auth/logout",
            None,
            r#"{"refresh_tokn":""}"#.to_owned(),
        )
        .await;
    assert_problem(&untyped, 415, "unsupported_media_type");
    let id_token = app.token(&claims("grace", "grace@example.com"));
    let unclear = json!({ "provider": "idp", "id_token": id_token, "dry_run": null });
    let unclear = app
        .as_user(token, Method::POST, "/api/v1/me/merge", Some(&unclear))
        .await;
    assert_problem(&unclear, 400, "invalid_request");
    assert_eq!(app.database.rows().await, before);
}
