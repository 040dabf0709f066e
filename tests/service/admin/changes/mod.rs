//! Changes of users by staff, and requests that run at the same time.

mod identities;
mod merge;
mod merge_races;
mod races;

use std::sync::LazyLock;

use serde_json::Value;
use sqlx::PgPool;
use uuid::Uuid;
use vestibule::admin::changes::{self, Change, Outcome, Preview};
use vestibule::domain::actor::Origin;
use vestibule::domain::actor::{Actor, Author};

use crate::support::app::{Answer, App, made};
use crate::support::token::at;

const STAFF: &str = "staff@example.com";

static ORIGIN: LazyLock<Origin> = LazyLock::new(|| Origin {
    ip: "192.0.2.7".parse().ok(),
    user_agent: None,
    request_id: "request-1".into(),
});

fn by() -> Author<'static> {
    Author {
        actor: Actor::Operator(STAFF),
        reason: Some("asked by phone"),
        origin: &ORIGIN,
    }
}

fn user(answer: &Answer) -> Uuid {
    answer.user_id().parse().unwrap()
}

fn identity(answer: &Answer) -> Uuid {
    answer.identity_id().parse().unwrap()
}

async fn preview(pool: &PgPool, change: Change) -> Preview {
    changes::preview(&pool.clone().into(), change, Actor::Operator(STAFF))
        .await
        .unwrap()
        .expect("users, and an identity of theirs")
}

/// Makes a change with the fingerprint of its preview.
async fn apply(pool: &PgPool, change: Change, seen: &str) -> Option<Outcome> {
    made(pool, change, Some(seen), by()).await
}

/// Previews a change, then makes it.
async fn make(app: &App, change: Change) -> Outcome {
    let pool = &app.database.pool;
    let made = apply(pool, change, &preview(pool, change).await.fingerprint()).await;
    made.expect("users, and an identity of theirs")
}

/// Previews a change, and returns the future that makes it.
async fn prepared(
    app: &App,
    change: Change,
) -> impl Future<Output = Option<Outcome>> + Send + 'static {
    let pool = app.database.pool.clone();
    let seen = preview(&pool, change).await.fingerprint();
    async move { apply(&pool, change, &seen).await }
}

async fn merge(app: &App, from: Uuid, into: Uuid) -> Outcome {
    make(app, Change::Merge { from, into }).await
}

/// Makes a change without a preview.
async fn act(app: &App, change: Change) {
    assert_eq!(
        made(&app.database.pool, change, None, by()).await,
        Some(Outcome::Done)
    );
}

/// Returns whether the session's access token and its refresh token are valid.
async fn alive(app: &App, signed_in: &Answer) -> (bool, bool) {
    let me = app
        .get(&signed_in.access_token(), "/api/v1/me")
        .await
        .status;
    let refreshed = app.refresh(&signed_in.refresh_token()).await.status;
    assert!(me == 200 || me == 401, "{me}");
    assert!(refreshed == 200 || refreshed == 401, "{refreshed}");
    (me == 200, refreshed == 200)
}

/// Returns the events of a kind about a user: actor and detail.
async fn events(app: &App, kind: &str, user: Uuid) -> Vec<(Option<String>, Option<Value>)> {
    all!(
        &app.database.pool,
        "SELECT actor, detail FROM events WHERE kind = $1 AND user_id = $2 ORDER BY id",
        kind,
        user
    )
}
