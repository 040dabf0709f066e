//! Every sign-in and every refusal is one event, with the data that staff need and no more.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::app::{Answer, App};
use crate::support::process::eventually;
use crate::support::provider::Behaviour;
use crate::support::token::{at, claims, encode, now, opaque, unverified, with};

type Event = (
    String,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    String,
    Option<Value>,
);

/// Returns the events once there are `count`: the service writes refusals in the background.
async fn events(app: &App, count: usize) -> Vec<Event> {
    eventually(&format!("there are {count} events"), async || {
        let events: Vec<Event> = app.database.all("SELECT kind, reason, provider, email, host(ip), request_id, detail FROM events ORDER BY created_at, id").await;
        (events.len() >= count).then_some(events)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_is_remembered_with_what_it_claimed_and_why() {
    let app = App::start().await;
    let claimed = json!({ "iss": "https://other.example", "aud": "another-app", "email": "Ada@Example.com", "exp": now() + 60 });
    let foreign = encode(r#"{"alg":"RS256"}"#, &claimed.to_string());
    let refused = app.post("idp", &json!({ "id_token": foreign })).await;
    app.provider.behave(Behaviour::status(503));
    app.sign_in(&claims("ada", "ada@example.com")).await;

    let events = events(&app, 2).await;
    let ip = Some("127.0.0.1".to_owned());
    let kind = "sign_in_refused".to_owned();
    let idp = Some("idp".to_owned());
    let request_id = refused.json()["request_id"].as_str().unwrap().to_owned();
    let detail =
        json!({ "claimed_issuer": "https://other.example", "claimed_audience": "another-app" });
    let email = Some("ada@example.com".to_owned());
    let expected = (
        kind.clone(),
        Some("issuer_mismatch".into()),
        idp.clone(),
        email,
        ip,
        request_id,
        Some(detail),
    );
    assert_eq!(events[0], expected);
    let (refused, reason, provider, ..) = &events[1];
    assert_eq!(
        (refused, reason.as_deref(), provider),
        (&kind, Some("provider_unavailable"), &idp)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_event_holds_a_token() {
    let app = App::start().await;
    let token = app.token(&claims("ada", "ada@example.com"));
    let answer = app.post("idp", &json!({ "id_token": token })).await;
    app.provider.revoke(&token);
    app.post("idp", &json!({ "id_token": token })).await;
    app.refresh(&answer.refresh_token()).await;
    let rows = events(&app, 2).await;
    for secret in [token, answer.refresh_token(), answer.access_token()] {
        assert!(!format!("{rows:?}").contains(&secret));
        let everything: String = app.database.value("SELECT (SELECT string_agg(s::text, '') FROM sessions s)
                 || (SELECT string_agg(u::text, '') FROM users u) || (SELECT string_agg(i::text, '') FROM identities i)").await;
        assert!(!everything.contains(&secret));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_refusals_are_written_before_the_service_ends() {
    const REFUSALS: i64 = 200;
    let mut app = App::start().await;
    let token = app.token(&with(
        claims("ada", "ada@example.com"),
        &json!({ "aud": "another-app" }),
    ));
    for _ in 0..REFUSALS {
        assert_eq!(
            app.post("idp", &json!({ "id_token": token })).await.error(),
            "audience_mismatch"
        );
    }
    app.stop().await;
    assert_eq!(
        app.database.count("SELECT count(*) FROM events").await,
        REFUSALS
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_tokens_neither_fill_the_audit_nor_hide_genuine_refusals() {
    let app = App::start_with(|figment| figment.merge(("trusted_proxies", ["127.0.0.1"]))).await;
    let client = reqwest::Client::new();
    let post = async |token: &str, address: &str| {
        let request = client
            .post(format!("{}/api/v1/auth/oauth/idp", app.url))
            .header("X-Forwarded-For", address);
        let request = request.header("Content-Type", "application/json");
        let body = json!({ "id_token": token }).to_string();
        App::answer(request.body(body).send().await.unwrap())
            .await
            .error()
    };
    // One token is unsigned, and the provider rejects the other.
    let invented = [
        encode(
            r#"{"alg":"none"}"#,
            &claims("ada", "ada@example.com").to_string(),
        ),
        opaque(),
    ];
    let networks = [
        "192.0.2.1",
        "198.51.100.1",
        "203.0.113.1",
        "2001:db8:1::1",
        "2001:db8:2::1",
    ];
    for address in networks {
        for number in 0..30 {
            assert_eq!(post(&invented[number % 2], address).await, "invalid_token");
        }
    }
    let genuine = app.token(&with(
        claims("ada", "ada@example.com"),
        &json!({ "aud": "another-app" }),
    ));
    for _ in 0..70 {
        assert_eq!(post(&genuine, networks[0]).await, "audience_mismatch");
    }
    let recorded =
        "SELECT reason, count(*), count(DISTINCT ip) FROM events GROUP BY reason ORDER BY reason";
    eventually("all that is to be recorded is", async || {
        let rows: Vec<(String, i64, i64)> = app.database.all(recorded).await;
        (rows
            == [
                ("audience_mismatch".into(), 70, 1),
                ("invalid_token".into(), 60, 3),
            ])
        .then_some(())
    })
    .await;
    let metrics = app.send(Method::GET, "/metrics", None, "").await.text;
    assert!(
        metrics.contains("vestibule_unrecorded_refusals_total 90\n"),
        "{metrics}"
    );
}

/// Returns a user's events in order: kinds, and details without other users' ids.
async fn history(app: &App, signed_in: &Answer) -> Vec<(String, Value)> {
    all!(
        &app.database.pool,
        "SELECT kind, coalesce(detail, 'null') FROM events WHERE user_id = $1::uuid AND kind <> 'signed_in'
         ORDER BY created_at, kind",
        signed_in.user_id()
    )
}

fn updated(fields: &[&str]) -> (String, Value) {
    ("user_updated".into(), json!({ "fields": fields }))
}

#[tokio::test(flavor = "multi_thread")]
async fn only_sign_ins_that_change_the_user_record_an_update() {
    let app = App::start().await;
    let bare = json!({ "name": null, "picture": null });
    let verified = with(claims("ada", "ada@example.com"), &bare);
    let known = unverified(verified.clone());
    let ada = app.sign_in(&known).await;
    app.sign_in(&claims("grace", "grace@example.com")).await;
    let mut expected = vec![("user_created".to_owned(), Value::Null)];
    let named = json!({ "name": "Ada", "picture": null });
    let pictured = json!({ "name": "Ada", "picture": "https://pictures.example/1" });
    let new = "new@example.com";
    let taken = "grace@example.com";
    let sign_ins = [
        (known.clone(), &[][..]),
        (verified.clone(), &["email_verified"]),
        (verified, &[]),
        (with(claims("ada", new), &bare), &["email"]),
        (with(claims("ada", new), &named), &["name"]),
        (
            with(claims("ada", "third@example.com"), &pictured),
            &["email", "picture"],
        ),
        (with(claims("ada", "third@example.com"), &pictured), &[]),
        // Only the identity's address changes. The user keeps theirs, which no identity proves any
        // more.
        (with(claims("ada", taken), &pictured), &["email_verified"]),
        (with(claims("ada", taken), &bare), &[]),
    ];
    for (claimed, fields) in sign_ins {
        app.database
            .run("UPDATE users SET seen_noted_on = current_date - 35")
            .await;
        let again = app.sign_in(&claimed).await;
        assert_eq!(
            (again.outcome().as_str(), again.user_id()),
            ("signed_in", ada.user_id())
        );
        expected.extend((!fields.is_empty()).then(|| updated(fields)));
        assert_eq!(history(&app, &ada).await, expected, "{claimed}");
    }
    let told: (String, Option<String>, bool) = app.database.row("SELECT DISTINCT e.provider, host(e.ip), bool_and(s.id IS NOT NULL AND e.request_id IS NOT NULL) OVER ()
         FROM events e LEFT JOIN sessions s ON s.id = e.session_id WHERE e.kind = 'user_updated' AND e.reason IS NULL").await;
    assert_eq!(told, ("idp".into(), Some("127.0.0.1".into()), true));
    let gone = app
        .delete(
            &app.sign_in(&claims("ada", taken)).await.access_token(),
            "/api/v1/me",
        )
        .await;
    assert_eq!(gone.status, 204);
    assert_eq!(
        history(&app, &ada)
            .await
            .iter()
            .filter(|(_, detail)| !detail.is_null())
            .count(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn link_and_unlink_events_name_the_identity_and_changed_fields() {
    let app = App::start().await;
    let at = |provider: &str, email: &str| at(provider, "ada", email);
    let bare = json!({ "email_verified": "false", "name": null, "picture": null });
    let ada = app
        .sign_in(&with(claims("ada", "typo@example.com"), &bare))
        .await;
    let mut expected = vec![("user_created".to_owned(), Value::Null)];
    let link = async |provider: &str, email: &str| {
        let linked = app
            .link(&ada.access_token(), provider, &at(provider, email))
            .await
            .json();
        (
            "identity_linked".to_owned(),
            json!({ "identity_id": linked["id"] }),
        )
    };
    expected.push(link("second", "ada@example.com").await);
    expected.push(updated(&["email", "email_verified"]));
    assert_eq!(history(&app, &ada).await, expected);

    // The user has this address by now.
    let linked = app
        .sign_in_at("third", &at("third", "ada@example.com"))
        .await;
    assert_eq!(
        (linked.outcome().as_str(), linked.user_id()),
        ("linked", ada.user_id())
    );
    let id = linked.json()["identity"]["id"].clone();
    expected.push(("identity_linked".into(), json!({ "identity_id": id })));
    expected.push(updated(&["name", "picture"]));
    assert_eq!(history(&app, &ada).await, expected);

    let path = format!("/api/v1/me/identities/{}", id.as_str().unwrap());
    assert_eq!(app.delete(&ada.access_token(), &path).await.status, 204);
    expected.push(("identity_unlinked".into(), json!({ "identity_id": id })));
    expected.push(link("third", "another@example.com").await);
    assert_eq!(
        history(&app, &ada).await,
        expected,
        "a link that changes no field of the user"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_out_names_its_session_and_how_far_it_goes() {
    let app = App::start().await;
    let mut ended = Vec::new();
    for scope in ["local", "others", "global"] {
        app.sign_in(&claims("ada", "ada@example.com")).await;
        let session = app.sign_in(&claims("ada", "ada@example.com")).await;
        assert_eq!(
            app.sign_out(&session.access_token(), scope).await.status,
            204
        );
        let id: String = app
            .database
            .value("SELECT id::text FROM sessions ORDER BY id DESC LIMIT 1")
            .await;
        ended.push((Some(scope.to_owned()), Some(id)));
    }
    let told: Vec<(Option<String>, Option<String>)> = app
        .database
        .all("SELECT reason, session_id::text FROM events WHERE kind = 'signed_out' ORDER BY id")
        .await;
    assert_eq!(told, ended);
}
