//! The displayed name of a user: from a provider, from the app, or chosen by the user.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;
use vestibule::accounts::users::set_name;
use vestibule::domain::actor::Origin;

use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::token::{claims, with};

/// Returns a person's claims with or without a name.
fn called(subject: &str, name: Option<&str>) -> Value {
    with(
        claims(subject, &format!("{subject}@example.com")),
        &json!({ "name": name }),
    )
}

async fn told(app: &App, claims: &Value, name: &str) -> Answer {
    app.post(
        "idp",
        &json!({ "id_token": app.token(claims), "name": name }),
    )
    .await
}

async fn rename(app: &App, signed_in: &Answer, name: Value) -> Answer {
    app.as_user(
        &signed_in.access_token(),
        Method::PATCH,
        "/api/v1/me",
        Some(&json!({ "name": name })),
    )
    .await
}

/// Asserts the outcome of a sign-in and the name in its response.
#[track_caller]
fn assert_shown(signed_in: &Answer, outcome: &str, name: &str) {
    assert_eq!(signed_in.outcome(), outcome, "{}", signed_in.text);
    assert_eq!(signed_in.json()["user"]["name"], name);
}

/// Returns the user's name, and whether the user chose it.
async fn stored(app: &App, signed_in: &Answer) -> (Option<String>, bool) {
    let row =
        sqlx::query_as("SELECT name, own_name FROM users WHERE id = $1").bind(signed_in.user());
    row.fetch_one(&app.database.pool).await.unwrap()
}

fn own(name: &str) -> (Option<String>, bool) {
    (Some(name.to_owned()), true)
}

fn of_provider(name: &str) -> (Option<String>, bool) {
    (Some(name.to_owned()), false)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_user_keeps_the_apps_name_without_a_provider_name() {
    let app = App::start().await;
    let ada = told(&app, &called("ada", None), " Ada\0\u{7f} Lovelace\n").await;
    assert_shown(&ada, "created", "Ada Lovelace");
    assert_eq!(stored(&app, &ada).await, own("Ada Lovelace"));

    // The second statement of a sign-in also creates users: here for the owner of an address that
    // another user has without proof.
    let claimed = with(
        called("thief", None),
        &json!({ "email": "grace@example.com", "email_verified": false }),
    );
    assert_eq!(app.sign_in(&claimed).await.outcome(), "created");
    let grace = told(&app, &called("grace", None), "Grace").await;
    assert_shown(&grace, "created", "Grace");
    assert_eq!(stored(&app, &grace).await, own("Grace"));

    // A name from the provider takes precedence, now and later.
    let linus = told(&app, &called("linus", Some("Linus")), "Somebody").await;
    assert_eq!(stored(&app, &linus).await, of_provider("Linus"));
    let nobody = app.sign_in(&called("nobody", None)).await;
    assert_eq!(
        told(&app, &called("nobody", None), "Late").await.outcome(),
        "signed_in"
    );
    assert_eq!(
        stored(&app, &nobody).await,
        (None, false),
        "the user is not new"
    );
    let second = json!({ "iss": "https://second.example" });
    let id_token = app.token(&with(called("nobody", None), &second));
    let linked = app
        .post("second", &json!({ "id_token": id_token, "name": "Late" }))
        .await;
    assert_eq!(linked.outcome(), "linked");
    assert_eq!(stored(&app, &nobody).await, (None, false), "nor here");
    let blank = told(&app, &called("blank", None), " \n").await;
    assert_eq!(
        (blank.outcome(), stored(&app, &blank).await),
        ("created".into(), (None, false))
    );

    // Providers do not overwrite the name, whether the known identity changes or not.
    for name in [Some("Augusta"), Some("Augusta"), None] {
        assert_shown(
            &told(&app, &called("ada", name), "Another").await,
            "signed_in",
            "Ada Lovelace",
        );
    }
    assert_eq!(stored(&app, &ada).await, own("Ada Lovelace"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chosen_name_outlives_provider_updates_until_the_user_resets_it() {
    let app = App::start().await;
    let ada = app.sign_in(&called("ada", Some("Ada King"))).await;
    let renamed = rename(&app, &ada, json!(" Ada\u{0} ")).await;
    assert_eq!(
        (renamed.status.as_u16(), &renamed.json()["name"]),
        (200, &json!("Ada"))
    );
    assert_eq!(
        renamed.json(),
        app.get(&ada.access_token(), "/api/v1/me").await.json()
    );
    for (name, user_is) in [
        ("Ada King", "Ada"),
        ("Countess", "Ada"),
        ("Countess", "Ada"),
        ("Ada", "Ada"),
        ("New", "Ada"),
    ] {
        assert_shown(
            &app.sign_in(&called("ada", Some(name))).await,
            "signed_in",
            user_is,
        );
    }
    let back = rename(&app, &ada, Value::Null).await;
    assert_eq!(back.json()["name"], "New", "what the provider said last");
    assert_eq!(stored(&app, &ada).await, of_provider("New"));
    // The name follows the provider again.
    assert_shown(
        &app.sign_in(&called("ada", Some("Newer"))).await,
        "signed_in",
        "Newer",
    );

    // The user can choose the same name that the provider gives.
    assert_eq!(rename(&app, &ada, json!("Newer")).await.status, 200);
    app.sign_in(&called("ada", Some("Newest"))).await;
    assert_eq!(stored(&app, &ada).await, own("Newer"));

    // If no identity has a name, a reset leaves none.
    let nobody = told(&app, &called("nobody", None), "Somebody").await;
    assert_eq!(
        rename(&app, &nobody, json!("")).await.json()["name"],
        Value::Null
    );
    assert_eq!(stored(&app, &nobody).await, (None, false));
    // A name without visible characters is stored as none.
    for (name, shown) in [
        ("\u{200b} \u{ad}", Value::Null),
        ("\u{3164}", Value::Null),
        ("👩\u{200d}💻", json!("👩\u{200d}💻")),
    ] {
        assert_eq!(
            rename(&app, &nobody, json!(name)).await.json()["name"],
            shown,
            "{name:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_changes_is_recorded_and_told_to_webhooks_once() {
    let app = App::start().await;
    let pool = &app.database.pool;
    run!(
        pool,
        "INSERT INTO webhooks (name, events) VALUES ('other', '{user.updated}')"
    );
    let ada = app.sign_in(&called("ada", Some("Ada"))).await;
    app.database.run("UPDATE users SET name = 'Imported'").await;
    let back = rename(&app, &ada, Value::Null).await;
    assert_eq!(
        back.json()["name"],
        "Imported",
        "it was no word of the user's"
    );
    for name in [json!("A"), json!("A"), json!("B"), Value::Null, Value::Null] {
        assert_eq!(rename(&app, &ada, name).await.status, 200);
    }
    let told: Vec<(Value, String)> = all!(
        pool,
        "SELECT e.detail, m.facts->'user'->>'name'
         FROM events e JOIN webhook_messages m ON m.message_id = e.id
         WHERE e.kind = 'user_updated' AND m.type = 'user.updated' AND e.provider IS NULL AND e.actor IS NULL
               AND e.session_id IS NOT NULL AND e.ip IS NOT NULL AND e.request_id IS NOT NULL
         ORDER BY m.id"
    );
    let fields = json!({ "fields": ["name"] });
    assert_eq!(
        told,
        ["A", "B", "Ada"].map(|name| (fields.clone(), name.to_owned()))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_named_by_a_session_that_is_over() {
    let app = App::start().await;
    let ada = app.sign_in(&called("ada", Some("Ada"))).await;
    let other = app.sign_in(&called("grace", Some("Grace"))).await;
    let malformed = app
        .as_user(
            &ada.access_token(),
            Method::PATCH,
            "/api/v1/me",
            Some(&json!({ "nmae": "A" })),
        )
        .await;
    assert_problem(&malformed, 400, "invalid_request");
    app.sign_out(&ada.access_token(), "local").await;
    assert_eq!(
        rename(&app, &ada, json!("A")).await.json()["reason"],
        "session_ended"
    );
    app.database
        .run("UPDATE users SET disabled_at = now()")
        .await;
    assert_eq!(
        rename(&app, &other, json!("G")).await.json()["reason"],
        "user_disabled"
    );
    for signed_in in [&ada, &other] {
        assert!(!stored(&app, signed_in).await.1);
    }
    // The statement itself also refuses a session that ended after the guard.
    let user = other.user();
    let session = Uuid::now_v7();
    let origin = Origin::default();
    let named = set_name(&app.database.service, user, session, Some("G"), &origin).await;
    assert_eq!(named.unwrap(), None);
}
