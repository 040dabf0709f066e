//! The requests' schemas, which no parser is made from, against what the guards take.

use reqwest::Method;
use serde_json::{Value, json};
use vestibule::domain::api_key::KeyRole;

use super::document::Document;
use crate::support::app::App;
use crate::support::problem::assert_problem;
use crate::support::token::{claims, encode, with};

/// A token of that length which is a JWT by its form.
fn token(length: usize) -> String {
    let short = encode(r#"{"alg":"RS256"}"#, &json!({ "jti": "" }).to_string());
    // The signature is what may be of any length; four characters at a time are always base64url.
    format!("{short}{}", "A".repeat(length - short.len()))
}

/// Bodies of a sign-in, each with one thing about it. A sound token is put in where there is none.
fn bodies() -> Vec<Value> {
    let mut bodies = vec![json!({ "id_token": null }), json!({ "id_token": 7 }), json!({ "id_token": "" })];
    bodies.push(json!({ "id_token": token(8192) }));
    bodies.push(json!({ "id_token": token(8196) }));
    bodies.push(json!({ "id_token": format!("{} ", token(400)) }));
    let texts = [
        json!(""),
        json!("n"),
        json!("n".repeat(512)),
        json!("n".repeat(513)),
        json!(7),
        json!(["n"]),
        Value::Null,
    ];
    bodies.extend(texts.into_iter().map(|nonce| json!({ "nonce": nonce })));
    let flags = [json!(true), json!(false), json!("true"), json!(0), Value::Null];
    bodies.extend(flags.into_iter().map(|create| json!({ "create": create })));
    let devices = [json!({}), json!("phone"), json!([]), Value::Null, json!({ "model": 7 })];
    bodies.extend(devices.into_iter().map(|device| json!({ "device": device })));
    for member in ["name", "platform"] {
        let texts = [json!(""), json!("ä".repeat(100)), json!("ä".repeat(101)), json!(7), Value::Null];
        bodies.extend(texts.into_iter().map(|text| json!({ "device": { member: text } })));
    }
    bodies.extend(names().into_iter().map(|name| json!({ "name": name })));
    for member in ["authorization_code", "redirect_uri"] {
        let texts =
            ["c", "c".repeat(2048).as_str(), "", "c".repeat(2049).as_str(), "c d", "ä"].map(Value::from);
        let others = [json!(7), json!(["c"]), Value::Null];
        bodies.extend(texts.into_iter().chain(others).map(|text| json!({ member: text })));
    }
    bodies.push(json!({ "anything": { "else": [] } }));
    bodies
}

/// Names of a person.
fn names() -> [Value; 6] {
    [json!(""), json!(" \n"), json!("ä".repeat(200)), json!("ä".repeat(201)), json!(7), Value::Null]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_to_be_shown_is_malformed_exactly_when_the_schema_says_so() {
    let (app, document) = (App::start().await, Document::new());
    let validator = document.of_body("updateMe");
    let token = app.sign_in(&claims("ada", "ada@example.com")).await.access_token();
    for body in
        names().into_iter().map(|name| json!({ "name": name })).chain([json!({}), json!({ "nmae": "A" })])
    {
        let answer = app.as_user(&token, Method::PATCH, "/api/v1/me", Some(&body)).await;
        assert_eq!(validator.is_valid(&body), answer.status == 200, "{body:.300} {}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_is_malformed_exactly_when_the_schema_says_so() {
    let (app, document) = (App::start().await, Document::new());
    let validator = document.of_body("signIn");
    let (mut sound, mut malformed) = (0, 0);
    for mut body in bodies() {
        if body.get("id_token").is_none() {
            let nonce = json!({ "nonce": body.get("nonce").cloned().unwrap_or_default() });
            body["id_token"] = app.token(&with(claims("ada", "ada@example.com"), &nonce)).into();
        }
        let answer = app.post("idp", &body).await;
        let valid = validator.is_valid(&body);
        assert_eq!(valid, answer.error() != "invalid_request", "{body:.300} {}", answer.text);
        *if valid { &mut sound } else { &mut malformed } += 1;
    }
    assert!(sound > 10 && malformed > 10, "{sound} {malformed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_token_is_malformed_exactly_when_the_schema_says_so() {
    let (app, document) = (App::start().await, Document::new());
    for (id, path) in [("refresh", "/api/v1/auth/refresh"), ("logout", "/api/v1/auth/logout")] {
        let validator = document.of_body(id);
        for token in [json!("unknown"), json!(""), json!(7), Value::Null, json!(["unknown"])] {
            let body = json!({ "refresh_token": token });
            let answer = app.post_to(path, &body).await;
            assert_eq!(validator.is_valid(&body), answer.error() != "invalid_request", "{id} {body}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_scope_that_is_described_can_be_signed_out_of() {
    let (app, document) = (App::start().await, Document::new());
    let operation = document.operation("logout");
    let parameter = &operation.body["parameters"][0];
    let validator = document.validator(&parameter["schema"]);
    for scope in ["local", "others", "global", "", "Local", "all"] {
        let token = app.sign_in(&claims("ada", "ada@example.com")).await.access_token();
        let answer = app.sign_out(&token, scope).await;
        assert_eq!(validator.is_valid(&json!(scope)), answer.status == 204, "{scope} {}", answer.text);
    }
    assert!(!operation.body["requestBody"]["required"].as_bool().unwrap_or_default(), "it can be left out");
}

/// A user to create is refused when the schema says so. What a schema cannot say, the description says.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_to_create_is_as_the_schema_says() {
    let (app, document) = (App::start().await, Document::new());
    let key = app.api_key("admin", KeyRole::Admin).await;
    let validator = document.of_body("createUser");
    let texts = || [json!(""), json!(7), Value::Null, json!([]), json!("x".repeat(300))];
    let flags = || [json!(true), json!(false), Value::Null, json!("true"), json!(1)];
    let mut bodies = vec![json!({}), json!({ "id": "0199a6c2-f0c4-7d51-b3c5-9c8d2f6a7e11" })];
    for name in ["email", "name", "picture", "claims", "identities"] {
        bodies.extend(texts().into_iter().map(|text| json!({ name: text })));
    }
    bodies.extend(flags().into_iter().map(|flag| json!({ "email_verified": flag })));
    bodies.push(json!({ "name": "ä".repeat(200) }));
    bodies.push(json!({ "picture": "https://pictures.example/ada" }));
    bodies.push(json!({ "claims": { "roles": [] } }));
    let identity = json!({ "provider": "second", "subject": "ada" });
    for name in ["provider", "subject", "email"] {
        bodies.extend(
            texts()
                .into_iter()
                .map(|text| json!({ "identities": [with(identity.clone(), &json!({ name: text }))] })),
        );
    }
    bodies.extend(flags().into_iter().map(|flag| {
        json!({ "identities": [with(identity.clone(), &json!({ "email": "a@example.com", "email_verified": flag }))] })
    }));
    bodies.push(json!({ "identities": [with(identity.clone(), &json!({ "sub": "ada" }))] }));
    bodies.push(json!({ "identities": vec![identity; 21] }));
    let (mut sound, mut malformed) = (0, 0);
    for (number, mut body) in bodies.into_iter().enumerate() {
        if body.get("email").is_none() {
            body["email"] = format!("ada-{number}@example.com").into();
        }
        // Each is a user of their own.
        if let Some(subject) = body.pointer_mut("/identities/0/subject").filter(|subject| *subject == "ada") {
            *subject = format!("ada-{number}").into();
        }
        let answer = app.as_user(&key, Method::POST, "/api/v1/admin/users", Some(&body)).await;
        let refused = answer.error() == "invalid_request";
        assert!(refused || answer.status == 201, "{body:.300} {}", answer.text);
        assert!(refused || validator.is_valid(&body), "{body:.300}");
        // An empty address, a provider that there is not, and a user whom nobody finds.
        let beyond = ["exactly one e-mail address", "a configured provider", "needs an `email`"];
        let detail = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
        let beyond = beyond.iter().any(|rule| detail.contains(rule));
        assert!(!refused || beyond || !validator.is_valid(&body), "{body:.300} {}", answer.text);
        *if refused { &mut malformed } else { &mut sound } += 1;
    }
    assert!(sound > 10 && malformed > 10, "{sound} {malformed}");
}

/// What a misspelt member asks for would be lost. Only a sign-in and a refresh do no harm by it.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_changes_or_ends_something_has_no_unknown_member() {
    let (app, document) = (App::start().await, Document::new());
    let token = app.sign_in(&claims("ada", "ada@example.com")).await.access_token();
    let key = app.api_key("admin", KeyRole::Admin).await;
    let before = app.database.rows().await;
    let mut tried = 0;
    let public = ["signIn", "refresh"].map(Some);
    for operation in document.operations().filter(|one| !public.contains(&one.body["operationId"].as_str())) {
        let content = &operation.body["requestBody"]["content"]["application/json"];
        if content.is_null() {
            continue;
        }
        let validator = document.validator(&content["schema"]);
        let several = content["examples"].as_object().into_iter().flat_map(|examples| examples.values());
        let examples = several.map(|example| document.example(example)).chain(content.get("example"));
        for example in examples {
            let nested = example.as_object().unwrap().iter().filter(|(_, value)| value.is_object());
            let places = nested.map(|(name, _)| format!("/{name}")).filter(|place| place != "/claims");
            for place in places.chain([String::new()]) {
                let mut body = example.clone();
                body.pointer_mut(&place).unwrap()["dry_Run"] = true.into();
                let credential = if operation.path.contains("/admin/") { &key } else { &token };
                let method = Method::from_bytes(operation.method.to_uppercase().as_bytes()).unwrap();
                let path = operation.path.replace("{identity}", "idp").replace("{id}", &"0".repeat(32));
                let answer = app.as_user(credential, method, &path, Some(&body)).await;
                assert!(!validator.is_valid(&body), "{} {body}", operation.name());
                assert_problem(&answer, 400, "invalid_request");
                assert!(answer.text.contains("unknown member, `dry_Run`"), "{body} {}", answer.text);
                tried += 1;
            }
        }
    }
    assert!(tried > 20, "{tried}");
    // Nor is one ignored whose type is not named, or a `null` where something cannot be undone.
    let untyped =
        app.send(Method::POST, "/api/v1/auth/logout", None, r#"{"refresh_tokn":""}"#.to_owned()).await;
    assert_problem(&untyped, 415, "unsupported_media_type");
    let id_token = app.token(&claims("grace", "grace@example.com"));
    let unclear = json!({ "provider": "idp", "id_token": id_token, "dry_run": null });
    let unclear = app.as_user(&token, Method::POST, "/api/v1/me/merge", Some(&unclear)).await;
    assert_problem(&unclear, 400, "invalid_request");
    assert_eq!(app.database.rows().await, before);
}
