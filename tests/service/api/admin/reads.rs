//! Reads of the admin API: users, their sessions and their events.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;
use vestibule::domain::api_key::KeyRole;

use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::token::{claims, with};

async fn sign_in(app: &App, provider: &str, subject: &str, changes: Value) -> Answer {
    let issuer = if provider == "idp" {
        json!({})
    } else {
        json!({ "iss": format!("https://{provider}.example") })
    };
    let claims = with(
        with(claims(subject, &format!("{subject}@example.com")), &issuer),
        &changes,
    );
    let answer = app.sign_in_at(provider, &claims).await;
    assert!(answer.status.is_success(), "{}", answer.text);
    answer
}

async fn found(app: &App, key: &str, query: &str) -> Value {
    let answer = app.get(key, &format!("/api/v1/admin/users{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text);
    assert_eq!(answer.header("Cache-Control"), Some("no-store"));
    answer.json()
}

fn ids(page: &Value) -> Vec<String> {
    let users = page["users"].as_array().unwrap().iter();
    users
        .map(|user| user["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_finds_users_as_staff_do() {
    let app = App::start().await;
    let key = app.api_key("reader", KeyRole::Reader).await;
    let today = async || {
        app.database
            .value::<String>("SELECT current_date::text")
            .await
    };
    let begun = today().await;
    let ada = sign_in(&app, "idp", "ada", json!({ "name": "Ada Lovelace" }))
        .await
        .user_id();
    let grace = sign_in(&app, "second", "grace", json!({ "name": "Grace Hopper" }))
        .await
        .user_id();
    let no_address = json!({ "email": null, "email_verified": null, "name": "Zoë" });
    let zoe = sign_in(&app, "idp", "zoe", no_address).await.user_id();
    app.database
        .run("UPDATE users SET disabled_at = now() WHERE email = 'grace@example.com'")
        .await;
    let today = today().await;
    for (query, expected) in [
        (String::new(), vec![&zoe, &grace, &ada]),
        ("?sort=oldest".into(), vec![&ada, &grace, &zoe]),
        ("?sort=email".into(), vec![&ada, &grace, &zoe]),
        ("?sort=name&limit=2".into(), vec![&ada, &grace]),
        ("?q=lovelace".into(), vec![&ada]),
        ("?q=ZOE".into(), vec![&zoe]),
        (format!("?q={grace}"), vec![&grace]),
        ("?q=grace%40example.com&status=active".into(), vec![]),
        ("?q=%20".into(), vec![&zoe, &grace, &ada]),
        ("?status=disabled".into(), vec![&grace]),
        ("?provider=second".into(), vec![&grace]),
        ("?provider=unknown".into(), vec![]),
        (
            format!("?created_from={begun}&created_to={today}&seen_from={begun}"),
            vec![&zoe, &grace, &ada],
        ),
        ("?created_to=2020-01-31".into(), vec![]),
        ("?seen_to=2020-01-31".into(), vec![]),
        ("?email=Ada%40Example.com".into(), vec![&ada]),
        ("?email=nobody%40example.com".into(), vec![]),
        ("?provider=idp&subject=zoe".into(), vec![&zoe]),
        ("?provider=second&subject=zoe&limit=1".into(), vec![]),
    ] {
        assert_eq!(
            ids(&found(&app, &key, &query).await)
                .iter()
                .collect::<Vec<_>>(),
            expected,
            "{query}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_reads_every_user_once_page_by_page() {
    let app = App::start().await;
    let key = app.api_key("reader", KeyRole::Reader).await;
    let sql = "INSERT INTO users (id, email, name)
               SELECT gen_random_uuid(), CASE WHEN n % 3 > 0 THEN 'ada-' || n || '@example.com' END,
                      CASE WHEN n % 2 > 0 THEN 'Ada ' || n % 7 END
               FROM generate_series(1, 60) AS n";
    sqlx::query(sql).execute(&app.database.pool).await.unwrap();
    for (search, count) in [
        ("sort=newest", 60),
        ("sort=email", 60),
        ("sort=name", 60),
        ("q=ada", 50),
    ] {
        let mut seen = BTreeSet::new();
        let mut cursor = String::new();
        loop {
            let page = found(&app, &key, &format!("?{search}&limit=7{cursor}")).await;
            let ids = ids(&page);
            assert!(ids.len() == 7 || page["next"].is_null(), "{page}");
            for id in ids {
                assert!(seen.insert(id), "{search}: a user comes twice");
            }
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(seen.len(), count, "{search}");
    }
    let whole = found(&app, &key, "?limit=100").await;
    assert_eq!((ids(&whole).len(), &whole["next"]), (60, &Value::Null));
    assert_eq!(ids(&found(&app, &key, "").await).len(), 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistake_in_the_query_is_named_and_never_ignored() {
    let app = App::start().await;
    let key = app.api_key("reader", KeyRole::Reader).await;
    let ada = sign_in(&app, "idp", "ada", json!({})).await.user_id();
    sign_in(&app, "idp", "grace", json!({})).await;
    let next = found(&app, &key, "?limit=1").await["next"]
        .as_str()
        .unwrap()
        .to_owned();
    let long = "x".repeat(255);
    let users = [
        (
            "limit=0".to_owned(),
            "`limit` must be a number from 1 to 100",
        ),
        ("limit=101".into(), "`limit` must be a number from 1 to 100"),
        ("limit=ten".into(), "`limit` must be a number from 1 to 100"),
        ("limit=1&limit=2".into(), "`limit` is there twice"),
        (
            "emial=ada%40example.com".into(),
            "the query has an unknown parameter, `emial`",
        ),
        (
            "cursor=x".into(),
            "`cursor` must be the `next` of the page before",
        ),
        (
            format!("cursor={next}&sort=email"),
            "`cursor` must be the `next` of the page before",
        ),
        (
            format!("cursor={next}&q=ada"),
            "`cursor` must be the `next` of the page before",
        ),
        (
            "created_from=yesterday".into(),
            "`created_from` must be a day such as 2026-01-31",
        ),
        ("created_to=2026-02-30".into(), "`created_to` must be a day"),
        ("seen_from=".into(), "`seen_from` must be a day"),
        (
            "seen_to=2026-01-31T00:00:00Z".into(),
            "`seen_to` must be a day",
        ),
        (
            "status=gone".into(),
            "`status` must be one of active, disabled, suspended, unverified, held",
        ),
        (
            "sort=id".into(),
            "`sort` must be one of newest, oldest, last_seen, email,",
        ),
        ("q=ada&sort=email".into(), "leave `sort` out"),
        (format!("q={long}"), "`q` must have at most 254 characters"),
        (
            "q=a%00b".into(),
            "`q` must have at most 254 characters, and none that control a terminal",
        ),
        (
            "provider=%00".into(),
            "`provider` must have at most 254 characters",
        ),
        (
            "email=ada".into(),
            "`email` must be exactly one e-mail address",
        ),
        (
            "email=".into(),
            "`email` must be exactly one e-mail address",
        ),
        (
            "email=ada%40example.com&status=active".into(),
            "leave the other parameters out",
        ),
        (
            "subject=ada".into(),
            "`subject` finds one user together with `provider`",
        ),
        (
            "provider=idp&subject=ada&q=ada".into(),
            "`subject` finds one user together with `provider`",
        ),
        (
            "provider=idp&subject=%C3%A4".into(),
            "`subject` must be 1 to 255 ASCII characters, at least one of them visible and none a control character",
        ),
    ];
    let events = [
        ("cursor=1", "`cursor` must be the `next` of the page before"),
        ("limit=1001", "`limit` must be a number from 1 to 1000"),
        ("after=1", "unknown parameter"),
    ];
    let feed = [
        (
            "after=1",
            "`after` must be the `next` of the previous answer",
        ),
        ("since=2026-01-31", "`since` must be a time such as"),
        ("limit=-1", "`limit` must be a number from 1 to 1000"),
        (
            "since=2026-01-31T00:00:00Z&after=00000000-0000-0000-0000-000000000000",
            "send one",
        ),
        ("cursor=1", "unknown parameter"),
    ];
    let users = users
        .iter()
        .map(|(query, detail)| (format!("users?{query}"), *detail));
    let events = events.map(|(query, detail)| (format!("users/{ada}/events?{query}"), detail));
    let feed = feed.map(|(query, detail)| (format!("events?{query}"), detail));
    for (path, detail) in users.chain(events).chain(feed) {
        let answer = app.get(&key, &format!("/api/v1/admin/{path}")).await;
        assert_problem(&answer, 400, "invalid_request");
        assert!(
            answer.json()["detail"].as_str().unwrap().contains(detail),
            "{path}: {}",
            answer.text
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_told_whole_with_identities_and_claims() {
    let app = App::start().await;
    let key = app.api_key("reader", KeyRole::Reader).await;
    let created = sign_in(&app, "idp", "ada", json!({})).await;
    sign_in(&app, "second", "ada", json!({})).await;
    app.database
        .run(r#"UPDATE users SET claims = '{"roles": ["editor"], "since": 2026}'"#)
        .await;
    let path = format!("/api/v1/admin/users/{}", created.user_id());
    let user = app.get(&key, &path).await;
    assert_eq!(user.status, 200, "{}", user.text);
    let user = user.json();
    let of_sign_in = created.json()["user"].clone();
    for member in [
        "id",
        "email",
        "email_verified",
        "name",
        "picture",
        "created_at",
    ] {
        assert_eq!(user[member], of_sign_in[member], "{member}");
    }
    assert_eq!(
        user["claims"],
        json!({ "roles": ["editor"], "since": 2026 })
    );
    assert_eq!(
        (
            &user["disabled_at"],
            user["last_seen_on"].as_str().unwrap().len()
        ),
        (&Value::Null, 10)
    );
    let identities = user["identities"].as_array().unwrap();
    let named: Vec<_> = identities
        .iter()
        .map(|one| (&one["provider"], &one["subject"]))
        .collect();
    assert_eq!(
        named,
        [
            (&json!("idp"), &json!("ada")),
            (&json!("second"), &json!("ada"))
        ]
    );
    assert_eq!(identities[0]["id"], created.json()["identity"]["id"]);
    assert_eq!(
        found(&app, &key, "?email=ada%40example.com").await["users"],
        json!([user]),
        "as in a list"
    );
    for id in [Uuid::now_v7().to_string(), "me".into()] {
        for part in ["", "/sessions", "/events"] {
            let answer = app
                .get(&key, &format!("/api/v1/admin/users/{id}{part}"))
                .await;
            assert_problem(&answer, 404, "user_not_found");
            assert!(
                answer.json().get("merged_into").is_none(),
                "{}",
                answer.text
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_merged_leads_to_the_one_who_remains() {
    let app = App::start().await;
    let key = app.api_key("reader", KeyRole::Reader).await;
    let [first, second, third] = [Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7()];
    sqlx::query("INSERT INTO users (id) VALUES ($1)")
        .bind(third)
        .execute(&app.database.pool)
        .await
        .unwrap();
    for (from, into) in [(first, second), (second, third)] {
        let sql = "INSERT INTO events (kind, reason, user_id, detail)
                   VALUES ('users_merged', 'to_another', $1, jsonb_build_object('into', $2::uuid))";
        run!(&app.database.pool, sql, from, into);
    }
    for gone in [first, second] {
        for part in ["", "/sessions"] {
            let answer = app
                .get(&key, &format!("/api/v1/admin/users/{gone}{part}"))
                .await;
            assert_problem(&answer, 404, "user_not_found");
            assert_eq!(answer.json()["merged_into"], third.to_string());
        }
        let events = app
            .get(&key, &format!("/api/v1/admin/users/{gone}/events"))
            .await;
        assert_eq!(
            events.json()["events"][0]["kind"],
            "users_merged",
            "events outlive the user"
        );
        assert_eq!(
            ids(&found(&app, &key, &format!("?q={gone}")).await),
            [third.to_string()]
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_reads_a_users_sessions_and_events() {
    let app = App::start().await;
    let key = app.api_key("reader", KeyRole::Reader).await;
    let device = json!({ "name": "Ada's phone", "platform": "Android 17" });
    let body =
        json!({ "id_token": app.token(&claims("ada", "ada@example.com")), "device": device });
    let ada = app.post("idp", &body).await;
    sign_in(&app, "idp", "ada", json!({})).await;
    let path = format!("/api/v1/admin/users/{}", ada.user_id());
    let sessions = app.get(&key, &format!("{path}/sessions")).await.json();
    let sessions = sessions["sessions"].as_array().unwrap();
    assert_eq!(
        (sessions.len(), &sessions[1]["device_name"]),
        (2, &device["name"])
    );
    let own = app
        .get(&ada.access_token(), "/api/v1/me/sessions")
        .await
        .json();
    assert_eq!(
        sessions[1]["id"], own["sessions"][1]["id"],
        "as the user sees them"
    );

    let signed_out = app
        .as_user(
            &ada.access_token(),
            Method::POST,
            "/api/v1/auth/logout",
            None,
        )
        .await;
    assert_eq!(signed_out.status, 204);
    let mut kinds = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = app
            .get(&key, &format!("{path}/events?limit=1{cursor}"))
            .await
            .json();
        kinds.extend(
            page["events"]
                .as_array()
                .unwrap()
                .iter()
                .map(|event| event["kind"].clone()),
        );
        assert_eq!(page["events"][0]["user_id"], ada.user_id());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(kinds, ["signed_out", "signed_in", "user_created"]);
    let whole = app.get(&key, &format!("{path}/events")).await.json();
    assert_eq!(
        (whole["events"].as_array().unwrap().len(), &whole["next"]),
        (3, &Value::Null)
    );
    assert_eq!(
        whole["events"][2]["id"], sessions[1]["id"],
        "a sign-in's event has the session's id"
    );
    assert_eq!(whole["events"][2]["provider"], "idp");

    let again = sign_in(&app, "idp", "ada", json!({})).await;
    assert_eq!(
        app.delete(&again.access_token(), "/api/v1/me").await.status,
        204
    );
    assert_problem(&app.get(&key, &path).await, 404, "user_not_found");
    assert_problem(
        &app.get(&key, &format!("{path}/sessions")).await,
        404,
        "user_not_found",
    );
    let rest = app
        .get(&key, &format!("{path}/events?limit=1"))
        .await
        .json();
    assert_eq!(
        rest["events"][0]["kind"], "user_deleted",
        "events outlive the user"
    );
}
