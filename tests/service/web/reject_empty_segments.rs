//! A path and a method mean the same to the service and to the proxies in front of it.

use crate::support::app::App;
use crate::support::raw::Raw;
use crate::support::token::claims;

#[tokio::test(flavor = "multi_thread")]
async fn no_field_of_a_form_changes_its_method() {
    let app = App::start().await;
    let token = app
        .sign_in(&claims("ada", "ada@example.com"))
        .await
        .access_token();
    for (start, status) in [
        ("POST /api/v1/me", 405),
        ("PUT /api/v1/me", 405),
        ("POST /api/v1/auth/logout", 415),
        ("POST /livez", 405),
        ("POST /nothing", 404),
    ] {
        let methods = [
            "DELETE",
            "delete&x=y",
            "get",
            "HEAD",
            "head",
            "OPTIONS",
            "TRACE",
            "x",
        ];
        let bodies = methods.map(|method| format!("_method={method}"));
        for body in bodies
            .into_iter()
            .chain(["&&_method=delete".into(), "x=y&_method=HEAD".into()])
        {
            for media in [
                "application/x-www-form-urlencoded",
                "application/x-www-form-urlencoded; charset=utf-8",
            ] {
                let head = format!(
                    "{start} HTTP/1.1\r\nAuthorization: Bearer {token}\r\nContent-Type: {media}\r\n"
                );
                let answer = Raw::ask(&app, head, &body).await;
                assert_eq!(answer.status, status, "{start} {body}: {}", answer.text);
                assert!(!answer.text.is_empty(), "{start} {body}");
            }
        }
    }
    assert_eq!(
        app.get(&token, "/api/v1/me").await.status,
        200,
        "nobody was deleted or signed out"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_is_encoded_without_need_is_not_found() {
    let app = App::start().await;
    for path in [
        "/%61dmin/sign-in",
        "/admin/sign%2Din",
        "/admin/sign%2din",
        "/%61pi/v1/me",
        "/api/v1/%6De",
        "/%6Civez",
        "/problems/invalid%5Ftoken",
        "/%2Ewell-known/jwks.json",
        "/livez%",
        "/livez%2",
        "/livez%+5",
        "/livez%zz",
    ] {
        let answer = Raw::ask(&app, format!("GET {path} HTTP/1.1\r\n"), "").await;
        let refusals = [(404, "not_found"), (400, "invalid_request")];
        assert!(
            refusals.contains(&(answer.status.as_u16(), &answer.error())),
            "{path}: {}",
            answer.text
        );
    }
    for path in [
        "/livez",
        "/admin/sign-in",
        "/.well-known/jwks.json",
        "/problems/invalid_token?%61=%62",
    ] {
        assert_eq!(
            Raw::ask(&app, format!("GET {path} HTTP/1.1\r\n"), "")
                .await
                .status,
            200,
            "{path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_or_two_types_in_one_request_are_refused() {
    let app = App::start().await;
    for (path, more, refused) in [
        ("/livez", "Host: vestibule\r\n", true),
        ("/admin/sign-in", "host: evil.example\r\n", true),
        ("/api/v1/me", "X-Host: evil.example\r\n", false),
        (
            "/api/v1/me",
            "Content-Type: application/json\r\nContent-Type: text/plain\r\n",
            true,
        ),
    ] {
        let answer = Raw::ask(&app, format!("GET {path} HTTP/1.1\r\n{more}"), "").await;
        assert_eq!(
            answer.text.contains("there must be exactly one `"),
            refused,
            "{path} {}",
            answer.text
        );
        assert_eq!(answer.status == 400, refused, "{path}");
    }
}
