//! The connection to the database breaks after a statement is done and before its response arrives.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use uuid::Uuid;
use vestibule::admin::staff::store::add;
use vestibule::domain::actor::Author;
use vestibule::domain::api_key::KeyRole;
use vestibule::domain::staff::Role;

use crate::support::app::{App, figment};
use crate::support::people::sign_in;
use crate::support::problem::assert_problem;
use crate::support::process::{complete_settings, run};
use crate::support::relay::{Messages, Relay};
use crate::support::staff_app::StaffApp;
use crate::support::token::{at, claims};

/// `ReadyForQuery` outside a transaction, which PostgreSQL sends after a statement.
const READY: &[u8] = b"Z\0\0\0\x05I";

/// A parameter that marks the statement whose response is lost.
const LOST: &str = "the answer is lost";

/// A relay to the tests' PostgreSQL that breaks at one statement.
struct BreakingRelay {
    inner: Relay,
    /// A part of the statement's text or parameter; `None` breaks nothing.
    words: Arc<Mutex<Option<&'static str>>>,
}

impl BreakingRelay {
    async fn open() -> Self {
        let words = Arc::new(Mutex::new(None));
        let shared = words.clone();
        let inner = Relay::open(move |client, server| relay(client, server, shared.clone())).await;
        Self { inner, words }
    }

    /// Breaks the connection after the next statement whose text or parameter contains these words.
    fn breaks_at(&self, words: &'static str) {
        *self.words.lock().unwrap() = Some(words);
    }

    fn has_broken(&self) -> bool {
        self.words.lock().unwrap().is_none()
    }
}

async fn relay(client: UnixStream, server: UnixStream, words: Arc<Mutex<Option<&'static str>>>) {
    let (from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (breaks, broken) = oneshot::channel();
    tokio::spawn(async move {
        tokio::select! {
            _ = copy(&mut from_server, &mut to_client) => return,
            Ok(()) = broken => {}
        }
        let mut answer = Vec::new();
        while !answer.ends_with(READY) {
            assert!(from_server.read_buf(&mut answer).await.unwrap() > 0);
        }
    });
    let mut statements = HashMap::new();
    let mut breaks = Some(breaks);
    let mut messages = Messages::of(from_client);
    while let Some(message) = messages.next().await {
        let contents = message.contents();
        // The statement's name and text end with a zero byte.
        let mut parts = contents.split(|&byte| byte == 0);
        match message.kind {
            b'P' => {
                let name = parts.next().unwrap().to_vec();
                let text = parts.next().unwrap();
                statements.insert(name, String::from_utf8_lossy(text).into_owned());
            }
            b'B' => {
                let text = parts.nth(1).and_then(|name| statements.get(name));
                let mut words = words.lock().unwrap();
                let meant = |words: &str| {
                    let parameter = || {
                        contents
                            .windows(words.len())
                            .any(|part| part == words.as_bytes())
                    };
                    text.is_some_and(|text| text.contains(words)) || parameter()
                };
                if words.is_some_and(meant) {
                    *words = None;
                    breaks.take().unwrap().send(()).unwrap();
                }
            }
            _ => {}
        }
        if to_server.write_all(&message.bytes).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_change_is_confirmed_after_a_lost_commit_response() {
    let relay = BreakingRelay::open().await;
    let app = App::start_with(|figment| relay.inner.behind(figment)).await;
    let at = |provider: &str, subject: &str| {
        at(provider, subject, &format!("{subject}@{provider}.example"))
    };
    let user = app.sign_in(&claims("ada", "ada@example.com")).await;
    let gone = app.sign_in_at("second", &at("second", "other")).await;
    assert_eq!(
        app.link(&gone.access_token(), "third", &at("third", "other-3"))
            .await
            .status,
        201
    );

    relay.breaks_at("Merges one user into another");
    let merged = app
        .merge(&user.access_token(), "second", &at("second", "other"))
        .await;
    assert_eq!(merged.status, 200, "{}", merged.text);
    assert_eq!(
        (&merged.json()["applied"], relay.has_broken()),
        (&true.into(), true)
    );
    assert_eq!(merged.json()["merged"]["user_id"], gone.user_id());

    // First another identity, then the identity that opened the session.
    let me = app.get(&user.access_token(), "/api/v1/me").await.json();
    let identities = me["identities"].as_array().unwrap();
    for provider in ["third", "idp"] {
        let identity = identities
            .iter()
            .find(|identity| identity["provider"] == provider)
            .unwrap();
        relay.breaks_at("Unlinks one of a user's identities");
        let path = format!("/api/v1/me/identities/{}", identity["id"].as_str().unwrap());
        let unlinked = app.delete(&user.access_token(), &path).await;
        assert_eq!(
            (unlinked.status.as_u16(), relay.has_broken()),
            (204, true),
            "{}",
            unlinked.text
        );
    }

    let user = app.sign_in_at("second", &at("second", "other")).await;
    relay.breaks_at("Deletes a user with identities");
    let deleted = app.delete(&user.access_token(), "/api/v1/me").await;
    assert_eq!(
        (deleted.status.as_u16(), relay.has_broken()),
        (204, true),
        "{}",
        deleted.text
    );
    assert_eq!(app.database.rows().await, [0; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_with_a_lost_response_is_503_or_confirmed() {
    let relay = BreakingRelay::open().await;
    let app = App::start_with(|figment| relay.inner.behind(figment)).await;
    let key = app.api_key("shop", KeyRole::Admin).await;
    let ask = async |path: &str, body| {
        let path = format!("/api/v1/admin/users{path}");
        app.as_user(&key, Method::POST, &path, Some(&body)).await
    };
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    let identity = ada.json()["identity"]["id"].clone();
    let id = ada.user_id();
    let reason = || json!({ "reason": LOST });
    app.database
        .run("UPDATE users SET email_vouched = email_verified")
        .await;

    relay.breaks_at(LOST);
    let unlink = json!({ "reason": LOST, "identity": identity });
    let unlinked = ask(&format!("/{id}/unlink"), unlink).await;
    assert_problem(&unlinked, 503, "service_unavailable");
    assert_eq!(
        app.database.count("SELECT count(*) FROM identities").await,
        0,
        "it was made"
    );

    relay.breaks_at(LOST);
    assert_problem(
        &ask(&format!("/{id}/delete"), reason()).await,
        503,
        "service_unavailable",
    );
    assert_eq!(
        app.database.count("SELECT count(*) FROM users").await,
        0,
        "it was made"
    );
    assert_problem(
        &ask(&format!("/{id}/delete"), reason()).await,
        404,
        "user_not_found",
    );

    let new = json!({ "email": "grace@example.com", "name": LOST });
    relay.breaks_at(LOST);
    assert_problem(&ask("", new.clone()).await, 503, "service_unavailable");
    assert_eq!(
        app.database.count("SELECT count(*) FROM users").await,
        1,
        "it was made"
    );
    assert_problem(&ask("", new).await, 409, "email_taken");

    // The service repeats a change whose repetition has no further effect.
    let id: Uuid = app.database.value("SELECT id FROM users").await;
    relay.breaks_at(LOST);
    let disabled = ask(&format!("/{id}/disable"), reason()).await;
    assert_eq!(disabled.status, 200, "{}", disabled.text);
    assert!(relay.has_broken(), "an answer was lost");
    let events = "SELECT count(*) FROM events WHERE kind = 'user_disabled'";
    assert_eq!(app.database.count(events).await, 1);
}

/// Runs a command of the program on the app's database through the relay. Returns whether it
/// succeeded, and its standard error.
async fn run_by(relay: &BreakingRelay, app: &App, arguments: &[&str]) -> (bool, String) {
    let figment = relay.inner.behind(figment(&app.database.url, ""));
    let url: String = figment.extract_inner("databases.vestibule.url").unwrap();
    let output = run(&complete_settings(&url, "http://127.0.0.1:1/"), arguments).await;
    (
        output.status.success(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_staff_removal_with_a_lost_response_reports_the_connection_error() {
    let relay = BreakingRelay::open().await;
    let app = App::start().await;
    add(
        &app.database.service,
        "grace@example.com",
        Role::Support,
        Author::COMMAND_LINE,
    )
    .await
    .unwrap();
    relay.breaks_at("staff_removed");
    let (done, said) = run_by(&relay, &app, &["staff", "remove", "grace@example.com"]).await;
    assert!(
        relay.has_broken() && !done && said.contains("connection"),
        "{said}"
    );
    assert_eq!(
        app.database.count("SELECT count(*) FROM staff").await,
        0,
        "it was made"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emergency_rotation_makes_one_key_despite_a_lost_response() {
    let relay = BreakingRelay::open().await;
    let app = App::start().await;
    relay.breaks_at("UPDATE signing_keys SET retired_at");
    let (done, said) = run_by(&relay, &app, &["keys", "rotate", "--now"]).await;
    assert!(relay.has_broken() && done, "{said}");
    assert_eq!(
        app.database
            .count("SELECT count(*) FROM signing_keys")
            .await,
        2
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn views_and_notes_are_recorded_once_despite_lost_responses() {
    let relay = BreakingRelay::open().await;
    let staff_app = StaffApp::open_altered(|figment| relay.inner.behind(figment)).await;
    staff_app.appoint("staff@example.com", Role::Admin).await;
    let mut browser = staff_app.signed_in("staff@example.com").await;
    relay.breaks_at("role = 'admin' OR $2 NOT IN");
    let page = browser.get("/admin/audit").await;
    assert!(relay.has_broken() && page.status == 200, "{}", page.text);
    let views = "SELECT count(*) FROM events WHERE kind = 'audit_viewed'";
    assert_eq!(staff_app.app.database.count(views).await, 1);

    let user = sign_in(&staff_app, &[("email", "ada@example.com")])
        .await
        .user_id();
    let csrf = browser.csrf().await;
    relay.breaks_at(LOST);
    let sent = browser
        .post(
            &format!("/admin/users/{user}/notes"),
            &[("csrf", &csrf), ("text", LOST)],
        )
        .await;
    assert!(relay.has_broken() && sent.status == 303, "{}", sent.text);
    assert_eq!(
        staff_app
            .app
            .database
            .count("SELECT count(*) FROM notes")
            .await,
        1
    );
}
