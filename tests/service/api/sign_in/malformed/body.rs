//! Bodies that are not one JSON object with the right members.

use reqwest::Method;
use serde_json::{Value, json};

use super::assert_malformed;
use crate::support::app::App;
use crate::support::problem::assert_problem;
use crate::support::token::{claims, encode, opaque};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_the_member_is_said() {
    let app = App::start().await;
    let detail = async |body: Value| {
        let answer = app.post("idp", &body).await;
        assert_eq!(answer.error(), "invalid_request", "{}", answer.text);
        answer.json()["detail"].as_str().unwrap().to_owned()
    };
    let misspelt =
        "`id_token` is missing (did you misspell it? another member has almost this name)";
    for name in ["idToken", "IDToken", "idtoken", "id-token", "ID_TOKEN"] {
        assert_eq!(detail(json!({ name: opaque() })).await, misspelt);
        assert_eq!(
            detail(json!({ name: opaque(), "id_token": null })).await,
            misspelt
        );
    }
    assert_eq!(
        detail(json!({ "token": opaque() })).await,
        "`id_token` is missing"
    );
    assert_eq!(
        detail(json!({ "id_token": null })).await,
        "`id_token` is missing"
    );
    for token in [
        json!([]),
        json!(1),
        json!({}),
        json!(true),
        json!([opaque()]),
    ] {
        let body = json!({ "id_token": token, "idToken": opaque() });
        assert_eq!(detail(body).await, "`id_token` must be a string");
    }
    for end in ["\n", "\r\n"] {
        let token = format!("{}{end}", opaque());
        assert_eq!(
            detail(json!({ "id_token": token })).await,
            "`id_token` ends with a line break"
        );
    }
    let body = json!({ "refreshToken": "x" }).to_string();
    let path = "/api/v1/auth/refresh";
    let refresh = app
        .send(reqwest::Method::POST, path, Some("application/json"), body)
        .await;
    assert_eq!(
        refresh.json()["detail"],
        misspelt.replace("id_token", "refresh_token")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_token_that_is_not_three_base64url_parts_is_malformed() {
    let app = App::start().await;
    for token in [
        "a",
        "a.b",
        "e30.e30",
        "e30.e30.e30.e30",
        "....",
        "{\"alg\":\"RS256\"}.e30.e30",
        "\"e30\".e30.e30",
        "e30=.e30.e30",
        "e30.e3+/.e30",
        "e30.e30.e30!",
        "e.e30.e30",
    ] {
        assert_malformed(&app, json!({ "id_token": token }).to_string()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_one_json_object_is_malformed() {
    let app = App::start().await;
    let token = app.token(&claims("subject-1", "ada@example.com"));
    let sound = json!({ "id_token": token }).to_string();
    let utf16: Vec<u8> = sound.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for body in [
        &b""[..],
        b" ",
        b"null",
        b"[]",
        b"1",
        format!("\"{token}\"").as_bytes(),
        format!("[{sound}]").as_bytes(),
        &sound.as_bytes()[..sound.len() - 1],
        &sound.as_bytes()[..sound.len() / 2],
        format!("{sound}{sound}").as_bytes(),
        format!("{sound},").as_bytes(),
        format!("{sound}\0").as_bytes(),
        format!("\u{feff}{sound}").as_bytes(),
        &utf16,
        &[sound.as_bytes(), b"\xff"].concat(),
        &[
            br#"{"name":"#,
            &b"\"\xff\xfe\","[..],
            &sound.as_bytes()[1..],
        ]
        .concat(),
        format!(r#"{{"name":"\ud800",{}"#, &sound[1..]).as_bytes(),
        format!(r#"{{"name":NaN,{}"#, &sound[1..]).as_bytes(),
        format!("{{'name':1,{}", &sound[1..]).as_bytes(),
        format!("// a comment\n{sound}").as_bytes(),
    ] {
        assert_malformed(&app, body).await;
    }
    // The token that the malformed bodies contained is valid.
    let answer = app.post("idp", &json!({ "id_token": token })).await;
    assert_eq!(answer.outcome(), "created", "{}", answer.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_occurs_twice_is_malformed_at_any_depth() {
    let app = App::start().await;
    let first = app.token(&claims("subject-1", ""));
    let second = app.token(&claims("subject-2", ""));
    for body in [
        format!(r#"{{"id_token":"{first}","id_token":"{second}"}}"#),
        format!(r#"{{"id_token":"{first}","id_token":"{first}"}}"#),
        format!(r#"{{"id_token":null,"id_token":"{first}"}}"#),
        format!(r#"{{"id_token":"{first}","id\u005ftoken":"{second}"}}"#),
        format!(r#"{{"id_token":"{first}","create":true,"create":false}}"#),
        format!(r#"{{"id_token":"{first}","device":{{"name":"a","name":"b"}}}}"#),
        format!(r#"{{"id_token":"{first}","unknown":[{{"a":1,"a":1}}]}}"#),
    ] {
        assert_malformed(&app, body).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn json_of_too_many_values_is_malformed_at_every_door() {
    let app = App::start().await;
    let pads = |count: usize| {
        [
            vec!["0"; count].join(","),
            vec![r#"{"":0}"#; count / 2].join(","),
        ]
    };
    for path in [
        "/api/v1/auth/oauth/idp",
        "/api/v1/auth/refresh",
        "/api/v1/auth/logout",
    ] {
        for pad in pads(600).into_iter().chain(pads(18_000)) {
            let body = format!(
                r#"{{"id_token":"{}","refresh_token":"a","pad":[{pad}]}}"#,
                opaque()
            );
            let answer = app
                .send(Method::POST, path, Some("application/json"), body)
                .await;
            assert_problem(&answer, 400, "invalid_request");
            assert_eq!(
                answer.json()["detail"],
                "the body has more than 400 values",
                "{path}"
            );
        }
    }
    assert_eq!(app.provider.calls(), 0);
    // The values of a token have a limit of their own.
    for values in pads(600) {
        let token = encode(r#"{"alg":"RS256"}"#, &format!(r#"{{"groups":[{values}]}}"#));
        let answer = app.post("idp", &json!({ "id_token": token })).await;
        assert_problem(&answer, 400, "invalid_request");
        let detail = answer.json()["detail"].to_string();
        assert!(
            detail.contains("more than 400 values in its header or payload"),
            "{detail}"
        );
    }
    assert_eq!(app.provider.calls(), 0);
    let body = json!({ "id_token": app.token(&claims("subject-1", "")), "pad": vec![0; 390] });
    assert_eq!(app.post("idp", &body).await.outcome(), "created");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_nested_without_end_is_malformed_and_harms_nothing() {
    let app = App::start().await;
    let depth = 10_000;
    for open in ["[", "{\"a\":", "[{\"a\":"] {
        assert_malformed(&app, open.repeat(depth)).await;
        let token = opaque();
        assert_malformed(
            &app,
            format!(r#"{{"id_token":"{token}","a":{}"#, open.repeat(depth)),
        )
        .await;
    }
    assert_eq!(
        app.sign_in(&claims("subject-1", "ada@example.com"))
            .await
            .outcome(),
        "created"
    );
}
