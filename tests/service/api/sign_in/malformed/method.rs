//! Methods and paths that have no route.

use reqwest::Method;

use super::PATH;
use crate::support::app::App;
use crate::support::problem::assert_problem;
use crate::support::raw::Raw;

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_by_another_method_is_not_allowed() {
    const ECHO: &str = "do-not-echo-this";
    let app = App::start().await;
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let answer = Raw::ask(
            &app,
            format!("{method} {PATH} HTTP/1.1\r\nX-Secret: {ECHO}\r\n"),
            "",
        )
        .await;
        assert_problem(&answer, 405, "method_not_allowed");
        assert_eq!(answer.header("Allow"), Some("POST"), "{method}");
        assert!(!answer.text.contains(ECHO), "{method}");
    }
    assert_eq!(app.provider.calls(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_request_gets_the_status_and_no_body() {
    let app = App::start().await;
    let answer = app.send(Method::HEAD, PATH, None, "").await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (405, ""));
    assert_eq!(answer.header("Allow"), Some("POST"));
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_methods_and_targets_are_answered_with_problems() {
    let app = App::start().await;
    for (start, status, error) in [
        (&*format!("BREW {PATH}"), 405, "method_not_allowed"),
        (&*format!("post {PATH}"), 405, "method_not_allowed"),
        ("BREW /nothing", 400, "invalid_request"),
        ("CONNECT vestibule:80", 400, "invalid_request"),
    ] {
        let answer = Raw::ask(&app, format!("{start} HTTP/1.1\r\n"), "").await;
        assert_eq!(answer.error(), error, "{start}: {}", answer.text);
        assert_problem(&answer, status, error);
        assert_eq!(
            answer.header("Allow"),
            (status == 405).then_some("POST"),
            "{start}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_path_is_not_found_whatever_the_method() {
    let app = App::start().await;
    for path in [
        "/",
        "/api",
        "/api/v1",
        "/api/v1/",
        "/api/v1/auth",
        "/api/v1/nothing",
        "/nothing?a=b",
        "/%ff%00",
    ] {
        for method in [
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::DELETE,
            Method::OPTIONS,
        ] {
            let answer = app.send(method.clone(), path, None, "").await;
            assert_eq!(
                answer.error(),
                "not_found",
                "{method} {path}: {}",
                answer.text
            );
            assert_problem(&answer, 404, "not_found");
        }
    }
}
