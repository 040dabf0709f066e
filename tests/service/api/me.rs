//! `/api/v1/me` and the routes below it.

use std::sync::Arc;

use reqwest::Method;
use serde_json::json;
use uuid::Uuid;
use vestibule::admin::changes::{Change, Outcome};
use vestibule::prune::{Pruned, prune};

use crate::support::app::{Answer, App, LIMITS};
use crate::support::problem::assert_problem;
use crate::support::token::{at, claims, now, with};

async fn events(app: &App, kind: &str) -> i64 {
    value!(
        &app.database.pool,
        "SELECT count(*) FROM events WHERE kind = $1",
        kind
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn me_is_the_user_with_identities() {
    let app = App::start().await;
    let signed_in = app.sign_in(&claims("subject", "Ada@example.com")).await;
    let me = app.get(&signed_in.access_token(), "/api/v1/me").await;
    assert_eq!(me.status, 200);
    assert_eq!(me.header("cache-control"), Some("no-store"));
    let mut expected = signed_in.json()["user"].clone();
    let identities = app
        .get(&signed_in.access_token(), "/api/v1/me/identities")
        .await
        .json()["identities"]
        .clone();
    assert_eq!(identities[0]["subject"], "subject");
    assert_eq!(identities[0]["id"], signed_in.json()["identity"]["id"]);
    expected["identities"] = identities;
    assert_eq!(me.json(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn current_marks_the_identity_that_opened_the_session() {
    let app = App::start().await;
    let opened = app.sign_in(&claims("ada", "ada@example.com")).await;
    let linked = app
        .link(&opened.access_token(), "second", &at("second", "ada-2", ""))
        .await;
    assert_eq!(
        (linked.status.as_u16(), &linked.json()["current"]),
        (201, &json!(false))
    );
    let again = app
        .link(
            &opened.access_token(),
            "idp",
            &claims("ada", "ada@example.com"),
        )
        .await;
    assert_eq!(
        (again.status.as_u16(), &again.json()["current"]),
        (200, &json!(true))
    );
    let other = app.sign_in_at("second", &at("second", "ada-2", "")).await;
    for (session, current) in [(&opened, "ada"), (&other, "ada-2")] {
        for path in ["/api/v1/me", "/api/v1/me/identities"] {
            let identities =
                app.get(&session.access_token(), path).await.json()["identities"].clone();
            let identities = identities.as_array().unwrap();
            assert_eq!(identities.len(), 2);
            for identity in identities {
                assert_eq!(
                    identity["current"],
                    json!(identity["subject"] == current),
                    "{path} {identity}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bearer_route_refuses_as_rfc_6750_says() {
    let app = App::start().await;
    let token = app
        .sign_in(&claims("subject", "ada@example.com"))
        .await
        .access_token();
    let id = "00000000-0000-7000-8000-000000000000";
    let routes = [
        (Method::GET, "/api/v1/me".to_owned()),
        (Method::PATCH, "/api/v1/me".into()),
        (Method::POST, "/api/v1/me/merge".into()),
        (Method::DELETE, "/api/v1/me".into()),
        (Method::GET, "/api/v1/me/identities".into()),
        (Method::POST, "/api/v1/me/identities/idp".into()),
        (Method::DELETE, format!("/api/v1/me/identities/{id}")),
        (Method::GET, "/api/v1/me/sessions".into()),
        (Method::DELETE, format!("/api/v1/me/sessions/{id}")),
        (Method::POST, "/api/v1/auth/logout".into()),
    ];
    let bare = r#"Bearer realm="vestibule""#;
    let invalid = r#"Bearer realm="vestibule", error="invalid_token""#;
    let malformed = r#"Bearer realm="vestibule", error="invalid_request""#;
    let query = format!("?access_token={token}");
    let bearer = format!("Bearer {token}");
    for (method, path) in routes {
        for (what, query, credentials, status, error, challenge) in [
            ("absent", "", &[][..], 401, "invalid_access_token", bare),
            (
                "in the query",
                &query,
                &[],
                401,
                "invalid_access_token",
                bare,
            ),
            (
                "another scheme",
                "",
                &["Basic YTpi"],
                401,
                "invalid_access_token",
                bare,
            ),
            (
                "empty",
                "",
                &["Bearer"],
                401,
                "invalid_access_token",
                invalid,
            ),
            (
                "malformed",
                "",
                &["Bearer x.y.z"],
                401,
                "invalid_access_token",
                invalid,
            ),
            (
                "twice",
                "",
                &[&*bearer, &bearer],
                400,
                "invalid_request",
                malformed,
            ),
        ] {
            let headers: Vec<_> = credentials
                .iter()
                .map(|its| ("Authorization", *its))
                .collect();
            let answer = app
                .send_with(method.clone(), &format!("{path}{query}"), &headers, "")
                .await;
            assert_eq!(answer.error(), error, "{method} {path}: {what}");
            assert_problem(&answer, status, error);
            assert_eq!(
                answer.header("www-authenticate"),
                Some(challenge),
                "{method} {path}: {what}"
            );
        }
    }
    assert_eq!(
        app.get(&token, "/api/v1/me").await.status,
        200,
        "none of it did anything"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn any_identity_can_be_linked_unless_another_user_has_it() {
    let app = App::start().await;
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    let grace = app.sign_in(&claims("grace", "grace@example.com")).await;
    let unverified = with(
        at("second", "ada-2", "grace@example.com"),
        &json!({ "email_verified": false }),
    );
    let linked = app.link(&ada.access_token(), "second", &unverified).await;
    assert_eq!(linked.status, 201, "{}", linked.text);
    assert_eq!(linked.json()["provider"], "second");
    let again = app.link(&ada.access_token(), "second", &unverified).await;
    assert_eq!(
        (again.status.as_u16(), &again.json()["id"]),
        (200, &linked.json()["id"])
    );

    let taken = app.link(&grace.access_token(), "second", &unverified).await;
    assert_problem(&taken, 409, "identity_already_linked");
    assert_eq!(events(&app, "link_refused").await, 1);
    let signed_in = app.sign_in_at("second", &unverified).await;
    assert_eq!(
        (signed_in.outcome().as_str(), signed_in.user_id()),
        ("signed_in", ada.user_id())
    );
    assert_eq!(signed_in.json()["user"]["email"], "ada@example.com");
    assert_eq!(events(&app, "identity_linked").await, 1);

    let refused = app
        .link(&ada.access_token(), "second", &claims("x", "x@example.com"))
        .await;
    assert_problem(&refused, 422, "issuer_mismatch");
    let body =
        json!({ "id_token": app.token(&at("second", "new", "")), "user_id": grace.user_id() });
    let mine = app
        .as_user(
            &ada.access_token(),
            Method::POST,
            "/api/v1/me/identities/second",
            Some(&body),
        )
        .await;
    assert_problem(&mine, 400, "invalid_request");
    let count = app
        .get(&ada.access_token(), "/api/v1/me/identities")
        .await
        .json()["identities"]
        .clone();
    assert_eq!(
        count.as_array().unwrap().len(),
        2,
        "the body does not say whose it becomes"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_while_the_provider_is_asked_changes_nothing() {
    let app = Arc::new(App::start().await);
    for (round, (what, disables)) in [
        ("linking", false),
        ("merging", false),
        ("user removed", false),
        ("user removed", true),
        ("identity removed", false),
        ("identity removed", true),
    ]
    .into_iter()
    .enumerate()
    {
        let ada = claims(&format!("ada-{round}"), &format!("ada-{round}@example.com"));
        let user = app.sign_in(&ada).await;
        let mine = at("second", &format!("ada-{round}"), "");
        let linked = app.link(&user.access_token(), "second", &mine).await;
        assert_eq!(linked.status, 201, "{}", linked.text);
        let other = at("second", &format!("other-{round}"), "");
        if what == "merging" {
            app.sign_in_at("second", &other).await;
        }
        let removal =
            json!({ "reauthentication": { "provider": "idp", "id_token": app.token(&ada) } });
        let (method, path, body) = match what {
            "linking" => {
                let path = "/api/v1/me/identities/second".to_owned();
                (Method::POST, path, json!({ "id_token": app.token(&other) }))
            }
            "merging" => {
                let body = json!({ "provider": "second", "id_token": app.token(&other) });
                (Method::POST, "/api/v1/me/merge".to_owned(), body)
            }
            "user removed" => (Method::DELETE, "/api/v1/me".to_owned(), removal),
            _ => {
                let id = linked.json()["id"].as_str().unwrap().to_owned();
                (
                    Method::DELETE,
                    format!("/api/v1/me/identities/{id}"),
                    removal,
                )
            }
        };
        if what.ends_with("removed") {
            app.age(3600.0).await;
        }
        let gate = app.provider.hold();
        let asked = tokio::spawn({
            let app = app.clone();
            let token = user.access_token();
            async move { app.as_user(&token, method, &path, Some(&body)).await }
        });
        gate.arrived(1).await;
        if disables {
            assert_eq!(
                app.by_staff(Change::Disable { user: user.user() }).await,
                Some(Outcome::Done)
            );
        } else {
            app.sign_out(&user.access_token(), "local").await;
        }
        let before = app.database.everything(&[]).await;
        gate.release();
        let refused = asked.await.unwrap();
        assert_problem(&refused, 401, "invalid_access_token");
        assert!(
            refused
                .header("www-authenticate")
                .unwrap()
                .contains("invalid_token"),
            "{what}"
        );
        let reason = if disables {
            "user_disabled"
        } else {
            "session_ended"
        };
        assert_eq!(refused.json()["reason"], reason, "{what}");
        assert_eq!(
            app.database.everything(&[]).await,
            before,
            "{what}, {reason}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unlinking_ends_the_identitys_sessions_and_never_takes_the_last() {
    let app = App::start().await;
    let first = app.sign_in(&claims("ada", "ada@example.com")).await;
    let second = app
        .sign_in_at("second", &at("second", "ada-2", "ada@example.com"))
        .await;
    let stranger = app.sign_in(&claims("grace", "grace@example.com")).await;
    let path = |answer: &Answer| format!("/api/v1/me/identities/{}", answer.identity_id());

    for other in [
        path(&stranger),
        "/api/v1/me/identities/x".into(),
        "/api/v1/me/identities/%00".into(),
    ] {
        assert_problem(
            &app.delete(&first.access_token(), &other).await,
            404,
            "not_found",
        );
    }
    assert_eq!(
        app.delete(&first.access_token(), &path(&second))
            .await
            .status,
        204
    );
    assert_eq!(app.refresh(&second.refresh_token()).await.status, 401);
    assert_eq!(
        app.get(&second.access_token(), "/api/v1/me").await.status,
        401
    );
    assert_problem(
        &app.delete(&first.access_token(), &path(&first)).await,
        409,
        "last_identity",
    );
    assert_eq!(app.refresh(&first.refresh_token()).await.status, 200);
    assert_eq!(events(&app, "identity_unlinked").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_listed_with_their_devices_and_ended_one_by_one() {
    let app = App::start().await;
    let body = json!({ "id_token": app.token(&claims("ada", "ada@example.com")),
                       "device": { "name": "Ada's phone", "platform": "Android 17" } });
    let phone = app.post("idp", &body).await;
    let tablet = app.sign_in(&claims("ada", "ada@example.com")).await;
    let stranger = app.sign_in(&claims("grace", "grace@example.com")).await;
    let list = |token: String| async {
        app.get(&{ token }, "/api/v1/me/sessions").await.json()["sessions"].clone()
    };

    let sessions = list(phone.access_token()).await;
    let sessions = sessions.as_array().unwrap();
    assert_eq!(sessions.len(), 2);
    let current: Vec<_> = sessions
        .iter()
        .filter(|session| session["current"] == true)
        .collect();
    assert_eq!(current.len(), 1);
    assert_eq!(
        current[0]["device"],
        json!({ "name": "Ada's phone", "platform": "Android 17" })
    );
    assert_eq!(
        (&current[0]["ip"], &current[0]["provider"]),
        (&json!("127.0.0.1"), &json!("idp"))
    );

    let other = sessions
        .iter()
        .find(|session| session["current"] == false)
        .unwrap();
    let path = format!("/api/v1/me/sessions/{}", other["id"].as_str().unwrap());
    assert_problem(
        &app.delete(&stranger.access_token(), &path).await,
        404,
        "not_found",
    );
    assert_eq!(
        app.get(&tablet.access_token(), "/api/v1/me").await.status,
        200,
        "a stranger ends nothing"
    );
    assert_eq!(app.delete(&phone.access_token(), &path).await.status, 204);
    assert_problem(
        &app.delete(&phone.access_token(), &path).await,
        404,
        "not_found",
    );
    assert_eq!(app.refresh(&tablet.refresh_token()).await.status, 401);
    assert_eq!(
        list(phone.access_token()).await.as_array().unwrap().len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_session_list_does_not_reveal_recent_refreshes() {
    let app = App::start().await;
    app.database.within_an_hour().await;
    let phone = app.sign_in(&claims("ada", "ada@example.com")).await;
    let tablet = app.sign_in(&claims("ada", "ada@example.com")).await;
    app.database
        .run(
            "UPDATE sessions SET created_at = now() - interval '1 day',
                                 rotated_at = date_trunc('hour', now()) + interval '1 second'",
        )
        .await;
    let list = async || {
        app.get(&phone.access_token(), "/api/v1/me/sessions")
            .await
            .json()
    };
    let before = list().await;
    for session in before["sessions"].as_array().unwrap() {
        assert!(
            session["last_used_at"]
                .as_str()
                .unwrap()
                .ends_with(":00:00Z"),
            "{session}"
        );
    }
    for session in [&phone, &tablet] {
        assert_eq!(app.refresh(&session.refresh_token()).await.status, 200);
        assert_eq!(
            list().await,
            before,
            "neither a time nor the order has changed"
        );
    }
    let opened = app.sign_in(&claims("ada", "ada@example.com")).await;
    let sessions = app
        .get(&opened.access_token(), "/api/v1/me/sessions")
        .await
        .json()["sessions"]
        .clone();
    assert_eq!(
        sessions[0]["last_used_at"], sessions[0]["created_at"],
        "none was used before it was opened"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_has_three_scopes_and_can_be_repeated() {
    let app = App::start().await;
    for (scope, survivors) in [
        ("", [false, true, true]),
        ("?scope=local", [false, true, true]),
        ("?scope=others", [true, false, false]),
        ("?scope=global", [false, false, false]),
    ] {
        for by_body in [false, true] {
            let mut answers = Vec::new();
            for _ in 0..3 {
                answers.push(app.sign_in(&claims("ada", "ada@example.com")).await);
            }
            let path = format!("/api/v1/auth/logout{scope}");
            for attempt in 0..2 {
                let answer = if by_body {
                    app.post_to(
                        &path,
                        &json!({ "refresh_token": answers[0].refresh_token() }),
                    )
                    .await
                } else {
                    app.as_user(&answers[0].access_token(), Method::POST, &path, None)
                        .await
                };
                assert_eq!(
                    (answer.status.as_u16(), answer.text.as_str()),
                    (204, ""),
                    "{scope} {attempt}"
                );
            }
            for (answer, survives) in answers.iter().zip(survivors) {
                let expected = if survives { 200 } else { 401 };
                assert_eq!(
                    app.refresh(&answer.refresh_token()).await.status,
                    expected,
                    "{scope}"
                );
            }
            app.sign_out(&answers[0].access_token(), "global").await;
        }
    }
    let garbage = json!({ "refresh_token": "garbage" });
    assert_eq!(
        app.post_to("/api/v1/auth/logout", &garbage).await.status,
        204
    );
    let token = app
        .sign_in(&claims("ada", "ada@example.com"))
        .await
        .access_token();
    for body in [
        json!({ "refresh_token": [] }),
        json!({ "refresh_token": 1 }),
        json!({ "scope": "global" }),
    ] {
        let answer = app
            .as_user(&token, Method::POST, "/api/v1/auth/logout", Some(&body))
            .await;
        assert_problem(&answer, 400, "invalid_request");
    }
    for body in [json!({}), json!({ "refresh_token": null })] {
        let token = app
            .sign_in(&claims("ada", "ada@example.com"))
            .await
            .access_token();
        let answer = app
            .as_user(&token, Method::POST, "/api/v1/auth/logout", Some(&body))
            .await;
        assert_eq!(answer.status, 204);
    }
    for scope in ["all", "", "local&scope=global", "null&scope=null"] {
        assert_problem(&app.sign_out(&token, scope).await, 400, "invalid_request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_refresh_token_cannot_sign_out_other_sessions() {
    let app = App::start().await;
    for used_up in [true, false] {
        let other = app.sign_in(&claims("ada", "ada@example.com")).await;
        let first = app.sign_in(&claims("ada", "ada@example.com")).await;
        let second = app.refresh(&first.refresh_token()).await;
        if used_up {
            app.refresh(&second.refresh_token()).await;
        } else {
            app.half_a_minute_later().await;
        }
        let body = json!({ "refresh_token": first.refresh_token() });
        assert_eq!(
            app.post_to("/api/v1/auth/logout?scope=global", &body)
                .await
                .status,
            204
        );
        assert_eq!(
            app.refresh(&other.refresh_token()).await.status,
            200,
            "{used_up}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_has_ended_signs_nobody_else_out() {
    let app = App::start().await;
    let stolen = app.sign_in(&claims("ada", "ada@example.com")).await;
    let mine = app.sign_in(&claims("ada", "ada@example.com")).await;
    app.sign_out(&mine.access_token(), "others").await;
    for scope in ["others", "global"] {
        assert_eq!(
            app.sign_out(&stolen.access_token(), scope).await.status,
            204,
            "{scope}"
        );
        let path = format!("/api/v1/auth/logout?scope={scope}");
        let body = json!({ "refresh_token": stolen.refresh_token() });
        assert_eq!(app.post_to(&path, &body).await.status, 204, "{scope}");
        assert_eq!(
            app.get(&mine.access_token(), "/api/v1/me").await.status,
            200,
            "{scope}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_removes_the_person_and_keeps_events_without_personal_data() {
    let app = App::start().await;
    let answer = app.sign_in(&claims("ada", "ada@example.com")).await;
    app.sign_in(&with(
        claims("stranger", "ada@example.com"),
        &json!({ "email_verified": false }),
    ))
    .await;
    app.link(
        &answer.access_token(),
        "second",
        &at("second", "ada", "Ada@home.example"),
    )
    .await;
    let refused = "INSERT INTO events (id, kind, email, ip)
                   VALUES (gen_random_uuid(), 'sign_in_refused', 'ada@home.example', '::1')";
    app.database.run(refused).await;
    let before = app.database.count("SELECT count(*) FROM events").await;
    assert_eq!(
        app.delete(&answer.access_token(), "/api/v1/me")
            .await
            .status,
        204
    );
    assert_eq!(app.database.rows().await, [0, 0, 0]);
    assert_eq!(
        app.database.count("SELECT count(*) FROM events").await,
        before + 1
    );
    let personal = "SELECT count(*) FROM events
                    WHERE email IS NOT NULL OR ip IS NOT NULL OR user_agent IS NOT NULL
                          OR detail - 'identity_count' - 'session_count' <> '{}'";
    assert_eq!(app.database.count(personal).await, 0);
    assert_eq!(
        app.get(&answer.access_token(), "/api/v1/me").await.status,
        401
    );
    assert_eq!(app.refresh(&answer.refresh_token()).await.status, 401);
    let again = app.sign_in(&claims("ada", "ada@example.com")).await;
    assert_eq!(again.outcome(), "created");
    assert_ne!(again.user_id(), answer.user_id());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_issued_before_a_deletion_cannot_recreate_the_user() {
    let app = App::start().await;
    let pool = &app.database.pool;
    let grace = app.sign_in(&claims("grace", "grace@example.com")).await;
    for by_staff in [false, true] {
        let ada = claims("ada", "ada@example.com");
        let also = at("second", "ada-2", "ada@home.example");
        let [early, also_early] =
            [&ada, &also].map(|token| with(token.clone(), &json!({ "iat": now() - 1 })));
        let ada = app.sign_in(&ada).await;
        assert_eq!(ada.outcome(), "created", "{by_staff}");
        assert_eq!(
            app.link(&ada.access_token(), "second", &also).await.status,
            201
        );
        if by_staff {
            assert_eq!(
                app.by_staff(Change::Delete { user: ada.user() }).await,
                Some(Outcome::Done)
            );
        } else {
            assert_eq!(
                app.delete(&ada.access_token(), "/api/v1/me").await.status,
                204
            );
        }
        let rows = app.database.rows().await;
        let without_email = with(early.clone(), &json!({ "email": null }));
        for (provider, replayed) in [
            ("idp", &early),
            ("idp", &without_email),
            ("second", &also_early),
        ] {
            assert_problem(
                &app.sign_in_at(provider, replayed).await,
                401,
                "token_expired",
            );
            let linked = app.link(&grace.access_token(), provider, replayed).await;
            assert_problem(&linked, 422, "token_expired");
        }
        assert_eq!(app.database.rows().await, rows, "{by_staff}");
        // The same subject at another provider is a different person.
        let third = with(
            at("third", "ada", ""),
            &json!({ "iat": now() - 1, "email": null }),
        );
        assert!(app.sign_in_at("third", &third).await.status.is_success());
    }
    // Only the hashes remain, for as long as an old token could be accepted.
    let kept = "SELECT count(*) FROM deleted_identities WHERE length(hash) = 32";
    assert_eq!(app.database.count(kept).await, 2);
    for (hours, deleted_identities) in [(24, 0), (1, 2)] {
        let age = "UPDATE deleted_identities SET deleted_at = deleted_at - $1 * interval '1 hour'";
        run!(pool, age, f64::from(hours));
        assert_eq!(
            prune(&app.database.service, LIMITS).await.unwrap(),
            Pruned {
                deleted_identities,
                ..Pruned::default()
            }
        );
    }
    assert_eq!(app.database.count(kept).await, 0);
    assert_eq!(
        app.sign_in(&claims("ada", "ada@example.com"))
            .await
            .outcome(),
        "created"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_that_only_changes_its_user_is_not_deleted() {
    let app = App::start().await;
    let early = |name: &str| {
        with(
            claims(name, &format!("{name}@example.com")),
            &json!({ "iat": now() - 1 }),
        )
    };
    let [ada, grace, linus] = [early("ada"), early("grace"), early("linus")];
    let mut users = Vec::new();
    for claims in [&ada, &grace, &linus] {
        users.push(app.sign_in(claims).await.user());
    }
    let identity: Uuid = app
        .database
        .value("SELECT id FROM identities WHERE subject = 'ada'")
        .await;
    for change in [
        Change::Move {
            identity,
            from: users[0],
            to: users[1],
        },
        Change::Merge {
            from: users[1],
            into: users[2],
        },
        Change::Delete { user: users[0] },
    ] {
        assert_eq!(
            app.by_staff(change).await,
            Some(Outcome::Done),
            "{change:?}"
        );
    }
    for claims in [&ada, &grace, &linus] {
        let back = app.sign_in(claims).await;
        assert_eq!(
            (back.outcome(), back.user_id()),
            ("signed_in".into(), users[2].to_string())
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_is_in_the_list_once_its_hour_is_over() {
    let app = App::start().await;
    app.database.within_an_hour().await;
    let phone = app.sign_in(&claims("ada", "ada@example.com")).await;
    let tablet = app.sign_in(&claims("ada", "ada@example.com")).await;
    app.database
        .run(
            "UPDATE sessions SET created_at = now() - interval '1 day',
                                 rotated_at = date_trunc('hour', now()) - interval '4 hours 1 second'",
        )
        .await;
    let list = async || {
        app.get(&phone.access_token(), "/api/v1/me/sessions")
            .await
            .json()
    };
    let before = list().await;
    let mut token = tablet.refresh_token();
    for _ in 0..3 {
        let refreshed = app.refresh(&token).await;
        assert_eq!(refreshed.status, 200);
        token = refreshed.refresh_token();
        assert_eq!(
            list().await,
            before,
            "the first refresh of an hour is not told from none"
        );
    }
    app.database
        .run("UPDATE sessions SET rotated_at = rotated_at - interval '1 hour'")
        .await;
    let hours: Vec<String> = app
        .database
        .values(
            "SELECT to_char(date_trunc('hour', rotated_at AT TIME ZONE 'UTC'), 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')
             FROM sessions ORDER BY rotated_at DESC",
        )
        .await;
    let sessions = list().await["sessions"].clone();
    let shown: Vec<_> = sessions
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["last_used_at"].as_str().unwrap())
        .collect();
    assert_eq!(shown, hours);
}
