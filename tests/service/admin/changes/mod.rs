//! What staff do about people: what it leaves, and what requests at the same moment may not make of it.

mod delete;
mod identities;
mod merge;
mod merge_races;
mod races;

use std::sync::LazyLock;

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;
use vestibule::admin::changes::{self, Action, Outcome};
use vestibule::domain::actor::Origin;
use vestibule::domain::actor::{Actor, By};

use crate::support::app::{Answer, App};
use crate::support::token::{claims, with};

const STAFF: &str = "staff@example.com";

static ORIGIN: LazyLock<Origin> = LazyLock::new(|| Origin {
    ip: "192.0.2.7".parse().ok(),
    user_agent: None,
    request_id: "request-1".into(),
});

fn by() -> By<'static> {
    By { actor: Actor::Operator(STAFF), reason: Some("asked by phone"), origin: &ORIGIN }
}

/// Claims of one of the further providers.
fn at(provider: &str, subject: &str, email: &str) -> Value {
    with(claims(subject, email), &json!({ "iss": format!("https://{provider}.example") }))
}

fn user(answer: &Answer) -> Uuid {
    answer.user_id().parse().unwrap()
}

fn identity(answer: &Answer) -> Uuid {
    answer.json()["identity"]["id"].as_str().unwrap().parse().unwrap()
}

/// Links a further identity to whoever is signed in.
async fn link(app: &App, signed_in: &Answer, provider: &str, claims: &Value) -> Answer {
    let body = json!({ "id_token": app.token(claims) });
    let path = format!("/api/v1/me/identities/{provider}");
    app.as_user(&signed_in.access_token(), Method::POST, &path, Some(&body)).await
}

/// Looks at a merge, then makes it.
async fn merge(app: &App, from: Uuid, into: Uuid) -> Outcome {
    let pool = &app.database.pool;
    let preview = changes::merge::preview(pool, from, into, STAFF).await.unwrap().expect("two users");
    let seen = preview.fingerprint();
    changes::merge::merge(pool, from, into, &seen, by()).await.unwrap()
}

/// Looks at a move, then makes it.
async fn move_identity(app: &App, from: Uuid, identity: Uuid, to: Uuid) -> Outcome {
    let pool = &app.database.pool;
    let preview = changes::move_identity::preview(pool, from, identity, to).await.unwrap();
    let seen = preview.expect("an identity of the first of two users").fingerprint();
    changes::move_identity::move_identity(pool, from, identity, to, &seen, by()).await.unwrap()
}

async fn act(app: &App, user: Uuid, action: Action) {
    assert_eq!(changes::act(&app.database.pool, user, action, by()).await.unwrap(), Outcome::Done);
}

/// Whether the session lives: (by its access token, by its refresh token).
async fn alive(app: &App, signed_in: &Answer) -> (bool, bool) {
    let me = app.get(&signed_in.access_token(), "/api/v1/me").await.status;
    let refreshed = app.refresh(&signed_in.refresh_token()).await.status;
    assert!(me == 200 || me == 401, "{me}");
    assert!(refreshed == 200 || refreshed == 401, "{refreshed}");
    (me == 200, refreshed == 200)
}

/// All that is stored, for a refusal to change nothing of.
async fn everything(app: &App) -> String {
    sqlx::query_scalar(
        "SELECT concat_ws('|', (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM users t),
                               (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM identities t),
                               (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM sessions t),
                               (SELECT string_agg(t::text, ',' ORDER BY t::text) FROM events t))",
    )
    .fetch_one(&app.database.pool)
    .await
    .unwrap()
}

/// Events of that kind about a user: who did it, and the detail.
async fn events(app: &App, kind: &str, user: Uuid) -> Vec<(Option<String>, Option<Value>)> {
    sqlx::query_as("SELECT actor, detail FROM events WHERE kind = $1 AND user_id = $2 ORDER BY id")
        .bind(kind)
        .bind(user)
        .fetch_all(&app.database.pool)
        .await
        .unwrap()
}
