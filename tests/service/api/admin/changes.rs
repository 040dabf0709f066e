//! Changes by API key: their effects, dry runs and refusals.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;
use vestibule::domain::api_key::KeyRole;

use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::token::{claims, with};

/// A service, and the API key of its backend.
struct Backend {
    app: App,
    key: String,
}

impl Backend {
    async fn start() -> Self {
        let app = App::start().await;
        let key = app.api_key("shop-backend", KeyRole::Admin).await;
        Self { app, key }
    }

    async fn post(&self, user: &str, change: &str, body: &Value) -> Answer {
        let path = format!("/api/v1/admin/users/{user}/{change}");
        self.app
            .as_user(&self.key, Method::POST, &path, Some(body))
            .await
    }

    /// Makes a change with a reason.
    async fn make(&self, user: &str, change: &str, more: &Value) -> Answer {
        self.post(
            user,
            change,
            &with(json!({ "reason": "ticket 4711" }), more),
        )
        .await
    }

    /// Returns the response of a dry run, which must change nothing.
    async fn dry(&self, user: &str, change: &str, more: &Value) -> Value {
        let before = self.app.database.everything(&[]).await;
        let answer = self
            .make(user, change, &with(json!({ "dry_run": true }), more))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.json()["applied"], false);
        assert_eq!(
            self.app.database.everything(&[]).await,
            before,
            "a dry run of {change} writes nothing"
        );
        answer.json()
    }

    /// Runs a change dry, then makes it, and compares the two responses.
    async fn make_as_seen(&self, user: &str, change: &str, more: &Value) -> Value {
        let dry = self.dry(user, change, more).await;
        let made = self
            .make(
                user,
                change,
                &with(more.clone(), &json!({ "seen": dry["fingerprint"] })),
            )
            .await;
        assert_eq!(made.status, 200, "{}", made.text);
        assert_eq!(made.header("Cache-Control"), Some("no-store"));
        let mut expected = dry;
        expected["applied"] = true.into();
        assert_eq!(made.json(), expected);
        expected
    }

    /// Returns the kinds of the backend's events about a user; each has its reason.
    async fn kinds(&self, user: &str) -> Vec<String> {
        values!(&self.app.database.pool, "SELECT kind FROM events WHERE user_id = $1::uuid AND actor = 'key:shop-backend'
                    AND detail->>'reason' = 'ticket 4711' AND ip IS NOT NULL AND request_id IS NOT NULL ORDER BY id", Uuid::parse_str(user).unwrap())
    }

    async fn ada(&self) -> Answer {
        self.app.sign_in(&claims("ada", "ada@example.com")).await
    }

    async fn grace(&self) -> Answer {
        let grace = with(
            claims("grace", "grace@example.com"),
            &json!({ "iss": "https://second.example" }),
        );
        self.app.sign_in_at("second", &grace).await
    }
}

fn identity(answer: &Answer) -> Value {
    answer.json()["identity"]["id"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_disables_enables_and_signs_out_in_its_own_name() {
    let backend = Backend::start().await;
    let ada = backend.ada().await;
    let id = ada.user_id();
    let disabled = backend.make_as_seen(&id, "disable", &json!({})).await;
    assert_eq!(
        (
            &disabled["ended_sessions"],
            &disabled["user"]["disabled_at"]
        ),
        (&json!(1), &Value::Null)
    );
    assert_eq!(backend.ada().await.error(), "user_disabled");
    assert_eq!(backend.app.refresh(&ada.refresh_token()).await.status, 401);
    backend.make_as_seen(&id, "enable", &json!({})).await;
    let one = backend.ada().await;
    let two = backend.ada().await;
    let three = backend.ada().await;
    let session: Value = {
        let listed = backend
            .app
            .get(&one.access_token(), "/api/v1/me/sessions")
            .await
            .json();
        let sessions = listed["sessions"].as_array().unwrap();
        sessions
            .iter()
            .find(|session| session["current"] == true)
            .unwrap()["id"]
            .clone()
    };
    let ended = backend
        .make_as_seen(&id, "end-session", &json!({ "session": session }))
        .await;
    assert_eq!(ended["ended_sessions"], 1);
    let alive = async |signed_in: &Answer| {
        backend
            .app
            .get(&signed_in.access_token(), "/api/v1/me")
            .await
            .status
            == 200
    };
    assert_eq!(
        (alive(&one).await, alive(&two).await, alive(&three).await),
        (false, true, true)
    );
    let ended = backend.make_as_seen(&id, "end-sessions", &json!({})).await;
    assert_eq!(ended["ended_sessions"], 2);
    assert_eq!((alive(&two).await, alive(&three).await), (false, false));
    let expected = [
        "user_disabled",
        "user_enabled",
        "session_ended",
        "sessions_ended",
    ];
    assert_eq!(backend.kinds(&id).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_changes_nothing_is_answered_and_not_recorded() {
    let backend = Backend::start().await;
    let id = backend.ada().await.user_id();
    for change in ["disable", "enable", "end-sessions"] {
        if change == "end-sessions" {
            backend.ada().await;
        }
        let before = backend.app.database.everything(&[]).await;
        assert_eq!(
            backend.make(&id, change, &json!({})).await.status,
            200,
            "{change}"
        );
        let after = backend.app.database.everything(&[]).await;
        assert_ne!(after, before, "{change}");
        assert_eq!(
            backend.make(&id, change, &json!({})).await.status,
            200,
            "{change}"
        );
        assert_eq!(
            backend.app.database.everything(&[]).await,
            after,
            "{change} again"
        );
    }
    assert_eq!(
        backend.kinds(&id).await,
        ["user_disabled", "user_enabled", "sessions_ended"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_refused_if_the_user_changes_after_the_check() {
    let backend = Backend::start().await;
    let id = backend.ada().await.user_id();
    let pool = &backend.app.database.pool;
    for change in ["disable", "enable", "end-sessions"] {
        backend.ada().await;
        let seen = backend.dry(&id, change, &json!({})).await["fingerprint"].clone();
        let mut meanwhile = pool.begin().await.unwrap();
        run!(
            &mut *meanwhile,
            "UPDATE users SET name = $2, updated_at = now() WHERE id = $1::uuid",
            Uuid::parse_str(&id).unwrap(),
            format!("Ada, {change}")
        );
        let before = backend.kinds(&id).await;
        let commit = async {
            backend.app.database.until_blocked().await;
            meanwhile.commit().await.unwrap();
        };
        let more = json!({ "seen": seen });
        let (answer, ()) = tokio::join!(backend.make(&id, change, &more), commit);
        assert_problem(&answer, 409, "user_changed");
        assert_eq!(backend.kinds(&id).await, before, "{change}");
        let live = "SELECT count(*) FROM sessions WHERE ended_at IS NULL";
        assert!(backend.app.database.count(live).await > 0, "{change}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_moves_unlinks_merges_and_deletes_as_previewed() {
    let backend = Backend::start().await;
    let ada = backend.ada().await;
    let grace = backend.grace().await;
    let ada_id = ada.user_id();
    let grace_id = grace.user_id();
    let moved = backend
        .make_as_seen(
            &grace_id,
            "move",
            &json!({ "identity": identity(&grace), "to": ada_id }),
        )
        .await;
    assert_eq!(
        (&moved["user"]["id"], &moved["other"]["id"]),
        (&json!(grace_id), &json!(ada_id))
    );
    assert_eq!(moved["user"]["identities"][0]["id"], identity(&grace));
    let again = backend.grace().await;
    assert_eq!(
        (again.user_id(), again.outcome().as_str()),
        (ada_id.clone(), "signed_in")
    );

    let unlinked = backend
        .make_as_seen(&ada_id, "unlink", &json!({ "identity": identity(&again) }))
        .await;
    assert_eq!(unlinked["ended_sessions"], 1);
    // Her identity took the proof of the address with it, so the sign-in creates a new user with
    // the address.
    let new = backend.grace().await;
    assert_eq!(new.outcome(), "created");
    let grace_id = new.user_id();

    let merged = backend
        .make_as_seen(&grace_id, "merge", &json!({ "into": ada_id }))
        .await;
    assert_eq!(
        (&merged["merged"]["id"], &merged["merged"]["email"]),
        (&json!(ada_id), &json!("ada@example.com"))
    );
    assert_eq!(backend.grace().await.user_id(), ada_id);
    // As after a lost response.
    let repeated = backend
        .make(&grace_id, "merge", &json!({ "into": ada_id }))
        .await;
    assert_problem(&repeated, 404, "user_not_found");
    assert_eq!(repeated.json()["merged_into"], json!(ada_id));

    backend.make_as_seen(&ada_id, "delete", &json!({})).await;
    let back = backend.ada().await;
    assert_eq!(back.outcome(), "created");
    let deleted =
        "SELECT count(*) FROM events WHERE kind = 'user_deleted' AND actor = 'key:shop-backend'
                   AND detail->>'reason' = 'ticket 4711'";
    assert_eq!(backend.app.database.count(deleted).await, 1);
    // The erasure keeps the actor of these events.
    let kept = "SELECT count(DISTINCT kind) FROM events WHERE actor = 'key:shop-backend'
                AND kind IN ('identity_moved', 'identity_unlinked', 'users_merged')";
    assert_eq!(backend.app.database.count(kept).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_refused_if_users_differ_from_the_dry_run() {
    let backend = Backend::start().await;
    let ada = backend.ada().await.user_id();
    let grace = backend.grace().await.user_id();
    let identity = identity(&backend.ada().await);
    backend
        .app
        .database
        .run("UPDATE users SET email_vouched = email_verified")
        .await;
    for (change, more) in [
        ("delete", json!({})),
        ("merge", json!({ "into": grace })),
        ("move", json!({ "identity": identity, "to": grace })),
        ("unlink", json!({ "identity": identity })),
        ("disable", json!({})),
    ] {
        let seen = backend.dry(&ada, change, &more).await["fingerprint"].clone();
        let renamed =
            "UPDATE users SET name = name || '!', updated_at = now() WHERE id = $1::text::uuid";
        sqlx::query(renamed)
            .bind(&ada)
            .execute(&backend.app.database.pool)
            .await
            .unwrap();
        let before = backend.app.database.everything(&[]).await;
        let answer = backend
            .make(&ada, change, &with(more, &json!({ "seen": seen })))
            .await;
        assert_problem(&answer, 409, "user_changed");
        assert_eq!(
            backend.app.database.everything(&[]).await,
            before,
            "{change}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_reports_the_same_refusal_as_the_change() {
    let backend = Backend::start().await;
    let unproven = with(
        claims("eve", "eve@example.com"),
        &json!({ "email_verified": false }),
    );
    let eve = backend.app.sign_in(&unproven).await;
    let more = json!({ "identity": identity(&eve) });
    let dry = backend.dry(&eve.user_id(), "unlink", &more).await;
    let refused = backend.make(&eve.user_id(), "unlink", &more).await;
    assert_problem(&refused, 409, "last_identity");
    assert_eq!(
        dry["refused"],
        json!({ "error": "last_identity", "detail": refused.json()["detail"] })
    );
    assert!(
        refused.json()["detail"]
            .as_str()
            .unwrap()
            .contains("neither a backend nor an import vouches")
    );
    assert_eq!(backend.kinds(&eve.user_id()).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_or_whatever_does_not_exist_is_named() {
    let backend = Backend::start().await;
    let ada = backend.ada().await;
    let grace = backend.grace().await;
    let ada_id = ada.user_id();
    let nobody = Uuid::now_v7().to_string();
    let session = json!({ "session": nobody });
    for (user, change, more, error, told) in [
        (
            &*nobody,
            "disable",
            json!({}),
            "user_not_found",
            "in the path",
        ),
        (
            "not-an-id",
            "disable",
            json!({}),
            "user_not_found",
            "in the path",
        ),
        (
            &nobody,
            "merge",
            json!({ "into": ada_id }),
            "user_not_found",
            "in the path",
        ),
        (
            &ada_id,
            "merge",
            json!({ "into": nobody }),
            "user_not_found",
            "in the body",
        ),
        (
            &ada_id,
            "move",
            json!({ "identity": identity(&ada), "to": nobody }),
            "user_not_found",
            "in the body",
        ),
        (
            &ada_id,
            "move",
            json!({ "identity": identity(&grace), "to": grace.user_id() }),
            "not_found",
            "identity",
        ),
        (
            &ada_id,
            "unlink",
            json!({ "identity": identity(&grace) }),
            "not_found",
            "identity",
        ),
        (&ada_id, "end-session", session, "not_found", "session"),
    ] {
        for dry_run in [true, false] {
            let answer = backend
                .make(
                    user,
                    change,
                    &with(more.clone(), &json!({ "dry_run": dry_run })),
                )
                .await;
            assert_problem(&answer, 404, error);
            assert!(
                answer.json()["detail"].as_str().unwrap().contains(told),
                "{}",
                answer.text
            );
        }
    }
    // A session id of another user is refused.
    let theirs = backend
        .app
        .get(&grace.access_token(), "/api/v1/me/sessions")
        .await
        .json();
    let more = json!({ "session": theirs["sessions"][0]["id"] });
    assert_problem(
        &backend.make(&ada_id, "end-session", &more).await,
        404,
        "not_found",
    );
    assert_eq!(
        backend
            .app
            .get(&grace.access_token(), "/api/v1/me")
            .await
            .status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_sound_changes_nothing() {
    let backend = Backend::start().await;
    let ada = backend.ada().await.user_id();
    let before = backend.app.database.everything(&[]).await;
    let reason = |reason: Value| json!({ "reason": reason });
    let with_reason = |more: Value| with(reason(json!("x")), &more);
    for (change, body, told) in [
        ("delete", json!({}), "`reason` is missing"),
        (
            "delete",
            reason(json!(" \u{7}\u{a0} ")),
            "`reason` must have 1 to 500",
        ),
        (
            "delete",
            reason(json!("\u{200b}\u{feff} \u{34f}")),
            "`reason` must have 1 to 500",
        ),
        (
            "delete",
            with_reason(json!({ "dry_run": "true" })),
            "`dry_run` must be true or false",
        ),
        (
            "delete",
            with_reason(json!({ "seen": 7 })),
            "`seen` must be a string",
        ),
        ("merge", with_reason(json!({})), "`into` is missing"),
        (
            "merge",
            with_reason(json!({ "into": "ada" })),
            "`into` must be a UUID",
        ),
        (
            "merge",
            with_reason(json!({ "into": ada })),
            "must not be the same",
        ),
        (
            "move",
            with_reason(json!({ "identity": ada })),
            "`to` is missing",
        ),
        (
            "delete",
            json!({ "reason": "x", "dry_run": null }),
            "`dry_run` must be true or false",
        ),
        (
            "delete",
            json!({ "reason": "x", "seen": null }),
            "`seen` must be a string",
        ),
        (
            "delete",
            with_reason(json!({ "into": ada })),
            "unknown member",
        ),
        (
            "end-session",
            with_reason(json!({ "session": null })),
            "`session` is missing",
        ),
    ] {
        let answer = backend.post(&ada, change, &body).await;
        assert_problem(&answer, 400, "invalid_request");
        assert!(
            answer.json()["detail"].as_str().unwrap().contains(told),
            "{change} {body}: {}",
            answer.text
        );
    }
    let path = format!("/api/v1/admin/users/{ada}/delete");
    let bearer = format!("Bearer {}", backend.key);
    for (body, kind, status) in [
        (
            "{\"reason\":\"a\",\"reason\":\"b\"}",
            "application/json",
            400,
        ),
        ("[]", "application/json", 400),
        ("reason=x", "application/x-www-form-urlencoded", 415),
    ] {
        let request = reqwest::Client::new().post(format!("{}{path}", backend.app.url));
        let request = request
            .header("Authorization", &bearer)
            .header("Content-Type", kind)
            .body(body);
        assert_eq!(
            App::answer(request.send().await.unwrap()).await.status,
            status,
            "{body}"
        );
    }
    assert_problem(
        &backend
            .app
            .as_user(&backend.key, Method::GET, &path, None)
            .await,
        405,
        "method_not_allowed",
    );
    assert_eq!(backend.app.database.everything(&[]).await, before);
    for (change, given, kept) in [
        ("disable", format!(" {} ", "ä".repeat(500)), "ä".repeat(500)),
        (
            "enable",
            " lost phone,\nticket 4711\u{7}\n".into(),
            "lost phone, ticket 4711".into(),
        ),
    ] {
        assert_eq!(
            backend
                .post(&ada, change, &reason(json!(given)))
                .await
                .status,
            200,
            "{given:?}"
        );
        let latest = "SELECT detail->>'reason' FROM events ORDER BY id DESC LIMIT 1";
        assert_eq!(backend.app.database.value::<String>(latest).await, kept);
    }
}
