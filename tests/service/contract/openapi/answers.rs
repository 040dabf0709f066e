//! Examples and real answers, held against the schemas.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use vestibule::domain::api_key::KeyRole;

use super::document::Document;
use crate::support::app::App;
use crate::support::token::{at, claims, opaque, with};

const FORM: Option<&str> = Some("application/x-www-form-urlencoded");

#[test]
fn every_body_has_an_example_and_every_example_fits_its_schema() {
    let document = Document::new();
    let mut seen = 0;
    for operation in document.operations() {
        let responses = operation.body["responses"].as_object().unwrap().values();
        for described in responses.chain([&operation.body["requestBody"]]) {
            for content in described["content"].as_object().into_iter().flat_map(|content| content.values()) {
                let several =
                    content["examples"].as_object().into_iter().flat_map(|examples| examples.values());
                let before = seen;
                for value in several.map(|example| document.example(example)).chain(content.get("example")) {
                    document.assert_fits(&operation.name(), &content["schema"], value);
                    seen += 1;
                }
                let itself =
                    operation.path == "/api/v1/openapi.json" && content["schema"]["type"] == "object";
                assert!(itself || seen > before, "{}", operation.name());
            }
        }
    }
    assert!(seen > 50, "{seen}");
    for (name, header) in document.0["components"]["headers"].as_object().unwrap() {
        document.assert_fits(name, &header["schema"], &header["example"]);
    }
}

/// What the service serialises it always serialises whole: an app need not ask whether a member is there. Only a page's refresh
/// token is in its cookie.
#[test]
fn every_member_of_an_answer_is_promised() {
    let document = Document::new();
    let schemas = document.0["components"]["schemas"].as_object().unwrap();
    for (name, schema) in schemas.iter().filter(|(name, _)| !name.ends_with("Request")) {
        let parts = schema["allOf"].as_array().into_iter().flatten().chain([schema]);
        for part in parts {
            let properties = part["properties"].as_object().into_iter().flat_map(|members| members.keys());
            let in_cookie = |member: &&str| (name.as_str(), *member) == ("Credential", "refresh_token");
            let properties: BTreeSet<_> =
                properties.map(String::as_str).filter(|name| !in_cookie(name)).collect();
            let required = part["required"].as_array().into_iter().flatten();
            assert_eq!(required.filter_map(Value::as_str).collect::<BTreeSet<_>>(), properties, "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn real_answers_are_as_described() {
    let (app, document) = (App::start().await, Document::new());
    let created = app.sign_in(&claims("ada", "ada@example.com")).await;
    document.assert_answered("signIn", 201, &created);
    let body = json!({ "id_token": app.token(&claims("ada", "ada@example.com")),
                       "device": { "name": "Ada's phone", "platform": "Android 17" } });
    let known = app.post("idp", &body).await;
    assert_eq!(known.outcome(), "signed_in");
    document.assert_answered("signIn", 200, &known);
    let second = |subject| at("second", subject, "ada@example.com");
    let linked = app.sign_in_at("second", &second("ada-2")).await;
    assert_eq!(linked.outcome(), "linked");
    document.assert_answers("signIn", &linked);
    let nobody = with(claims("nobody", ""), &json!({ "email": null, "name": null, "picture": null }));
    let nobody = app.sign_in(&nobody).await;
    assert_eq!((nobody.status.as_u16(), &nobody.json()["user"]["email"]), (201, &Value::Null));
    document.assert_answers("signIn", &nobody);

    let refreshed = app.refresh(&created.refresh_token()).await;
    document.assert_answered("refresh", 200, &refreshed);
    let form = format!("grant_type=refresh_token&refresh_token={}", refreshed.refresh_token());
    for status in [200, 200, 400] {
        let form = if status == 200 { form.clone() } else { form.replace("refresh_token=", "token=") };
        let answer = app.send(Method::POST, "/api/v1/auth/token", FORM, form).await;
        document.assert_answered("token", status, &answer);
    }
    for (form, status) in [("token=unknown", 200), ("", 400)] {
        let answer = app.send(Method::POST, "/api/v1/auth/revoke", FORM, form).await;
        document.assert_answered("revoke", status, &answer);
    }
    let token = refreshed.access_token();
    for (path, id) in [("me", "getMe"), ("me/identities", "listIdentities"), ("me/sessions", "listSessions")]
    {
        for token in [&token, &nobody.access_token()] {
            let answer = app.get(token, &format!("/api/v1/{path}")).await;
            assert_eq!(answer.status, 200);
            document.assert_answers(id, &answer);
        }
    }
    let renamed = app.as_user(&token, Method::PATCH, "/api/v1/me", Some(&json!({ "name": "Ada" }))).await;
    assert_eq!((renamed.status.as_u16(), &renamed.json()["name"]), (200, &json!("Ada")));
    document.assert_answers("updateMe", &renamed);
    let twin = at("third", "twin", "twin@example.com");
    app.sign_in_at("third", &twin).await;
    for dry_run in [true, false] {
        let body = json!({ "provider": "third", "id_token": app.token(&twin), "dry_run": dry_run });
        let merge = app.as_user(&token, Method::POST, "/api/v1/me/merge", Some(&body)).await;
        assert_eq!(merge.json()["applied"], !dry_run, "{}", merge.text);
        document.assert_answered("mergeMe", 200, &merge);
    }
    for status in [201, 200] {
        let link = app.link(&token, "second", &second("ada-3")).await;
        document.assert_answered("linkIdentity", status, &link);
    }
    let identity = linked.identity_id();
    let sessions = app.get(&token, "/api/v1/me/sessions").await.json();
    let other =
        sessions["sessions"].as_array().unwrap().iter().find(|session| session["device"]["name"].is_string());
    let other = other.unwrap()["id"].as_str().unwrap();
    for (path, id) in [
        (format!("/api/v1/me/identities/{identity}"), "unlinkIdentity"),
        (format!("/api/v1/me/sessions/{other}"), "endSession"),
    ] {
        for status in [204, 404] {
            let answer = app.delete(&token, &path).await;
            document.assert_answered(id, status, &answer);
        }
    }
    let providers = app.send(Method::GET, "/api/v1/auth/providers", None, "").await;
    document.assert_answers("listProviders", &providers);
    let logout = app.sign_out(&nobody.access_token(), "local").await;
    document.assert_answered("logout", 204, &logout);
    let deleted = app.delete(&token, "/api/v1/me").await;
    document.assert_answered("deleteMe", 204, &deleted);
    let again = app.delete(&token, "/api/v1/me").await;
    assert_eq!(again.json()["reason"], "user_deleted");
    document.assert_answers("deleteMe", &again);
    let over = app.refresh(&nobody.refresh_token()).await;
    assert_eq!(over.json()["reason"], "session_ended");
    document.assert_answers("refresh", &over);
}

#[tokio::test(flavor = "multi_thread")]
async fn real_errors_are_as_described() {
    let (app, document) = (App::start().await, Document::new());
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    let changed = |changes| with(claims("ada", "ada@example.com"), &changes);
    for changes in [
        json!({ "iss": "https://elsewhere.example" }),
        json!({ "aud": "elsewhere", "azp": null }),
        json!({ "exp": "1" }),
        json!({ "nonce": "n" }),
        json!({ "sub": "another", "email_verified": false }),
    ] {
        let refused = app.sign_in(&changed(changes)).await;
        assert!(refused.status.is_client_error());
        document.assert_answers("signIn", &refused);
    }
    for (provider, body) in [
        ("idp", json!({})),
        ("idp", json!({ "id_token": opaque() })),
        ("unknown", json!({ "id_token": opaque() })),
        ("idp", json!({ "id_token": app.token(&claims("new", "new@example.com")), "create": false })),
    ] {
        let refused = app.post(provider, &body).await;
        assert!(refused.status.is_client_error());
        document.assert_answers("signIn", &refused);
    }
    let path = "/api/v1/auth/oauth/idp";
    document.assert_answers("signIn", &app.send(Method::POST, path, Some("text/plain"), "{}").await);
    // One byte too many: of much more, the rest might still be on its way when the service hangs up.
    let large = " ".repeat((1 << 20) + 1);
    document.assert_answers("signIn", &app.send(Method::POST, path, Some("application/json"), large).await);

    document.assert_answers("refresh", &app.refresh("unknown").await);
    let json = Some("application/json");
    document.assert_answers("refresh", &app.send(Method::POST, "/api/v1/auth/refresh", json, "[]").await);
    for path in ["/api/v1/auth/logout", "/api/v1/auth/logout?scope=all"] {
        document.assert_answers("logout", &app.send(Method::POST, path, None, "").await);
        document.assert_answers("logout", &app.send(Method::POST, path, json, "{}").await);
    }
    document.assert_answers("getMe", &app.send(Method::GET, "/api/v1/me", None, "").await);
    document.assert_answers("listSessions", &app.get("not a token", "/api/v1/me/sessions").await);
    let last = format!("/api/v1/me/identities/{}", ada.identity_id());
    let last = app.delete(&ada.access_token(), &last).await;
    document.assert_refused("unlinkIdentity", "last_identity", &last);
    let grace = app.sign_in(&claims("grace", "grace@example.com")).await;
    let token = grace.access_token();
    let anothers = app.link(&token, "idp", &claims("ada", "ada@example.com")).await;
    document.assert_refused("linkIdentity", "identity_already_linked", &anothers);
    let own = app.merge(&token, "idp", &claims("grace", "grace@example.com")).await;
    document.assert_refused("mergeMe", "identity_already_linked", &own);
    let merged = app.merge(&token, "idp", &claims("ada", "ada@example.com")).await;
    assert_eq!(merged.status, 200, "{}", merged.text);
    let over = app.get(&ada.access_token(), "/api/v1/me").await;
    assert_eq!(over.json()["merged_into"], grace.user_id());
    document.assert_answers("getMe", &over);
    let elsewhere = changed(json!({ "aud": "elsewhere", "azp": null }));
    let refused = app.link(&token, "idp", &elsewhere).await;
    assert_eq!((refused.status.as_u16(), refused.error().as_str()), (422, "audience_mismatch"));
    document.assert_answers("linkIdentity", &refused);
    app.age(660.0).await;
    let refused = app.link(&token, "idp", &elsewhere).await;
    document.assert_refused("linkIdentity", "reauthentication_required", &refused);
    document.assert_answers("deleteMe", &app.delete(&token, "/api/v1/me").await);
    let of = format!("/api/v1/me/identities/{}", grace.identity_id());
    document.assert_answers("unlinkIdentity", &app.delete(&token, &of).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_backend_is_answered_is_as_described() {
    let (app, document) = (App::start().await, Document::new());
    let (admin, reader) =
        (app.api_key("admin", KeyRole::Admin).await, app.api_key("reader", KeyRole::Reader).await);
    let users = "/api/v1/admin/users";
    let ada = json!({ "email": "ada@example.com", "identities": [{ "provider": "idp", "subject": "ada" }] });
    for (key, body, status) in
        [(&admin, &ada, 201), (&admin, &ada, 409), (&admin, &json!({}), 400), (&reader, &ada, 403)]
    {
        let answer = app.as_user(key, Method::POST, users, Some(body)).await;
        document.assert_answered("createUser", status, &answer);
    }
    let id = app.sign_in(&claims("ada", "ada@example.com")).await.user_id();
    let gone = app.sign_in(&claims("gone", "gone@example.com")).await;
    let body = json!({ "reason": "tested", "into": id });
    let merged =
        app.as_user(&admin, Method::POST, &format!("{users}/{}/merge", gone.user_id()), Some(&body)).await;
    assert_eq!(merged.status, 200, "{}", merged.text);
    for (path, operation, status) in [
        (users.to_owned(), "findUsers", 200),
        (format!("{users}?limit=1"), "findUsers", 200),
        (format!("{users}?limit=0"), "findUsers", 400),
        (format!("{users}/{id}"), "getUser", 200),
        (format!("{users}/{}", gone.user_id()), "getUser", 404),
        (format!("{users}/{id}/sessions"), "listUserSessions", 200),
        (format!("{users}/{}/sessions", gone.user_id()), "listUserSessions", 404),
        (format!("{users}/{id}/events"), "listUserEvents", 200),
        (format!("{users}/{id}/events?cursor=x"), "listUserEvents", 400),
        ("/api/v1/admin/events".into(), "followEvents", 200),
        ("/api/v1/admin/events?after=x".into(), "followEvents", 400),
    ] {
        let answer = app.get(&reader, &path).await;
        document.assert_answered(operation, status, &answer);
        assert_eq!(answer.json().get("merged_into"), (status == 404).then_some(&json!(id)), "{path}");
        document.assert_answers(operation, &app.get("vst_unknown", &path).await);
    }
    let age = "UPDATE events SET id = (lpad(to_hex((extract(epoch FROM now() - interval '1 hour') * 1000)::bigint), 12, '0')
               || right(id::text, 23))::uuid";
    app.database.run(age).await;
    let feed = app.get(&reader, "/api/v1/admin/events").await;
    assert!(feed.json()["events"].as_array().unwrap().len() > 3, "{}", feed.text);
    document.assert_answers("followEvents", &feed);
}
