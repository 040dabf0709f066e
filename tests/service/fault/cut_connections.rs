//! A PostgreSQL that ends the service's connections, as a restart does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::Method;
use serde_json::json;
use vestibule::domain::api_key::KeyRole;

use crate::support::app::App;
use crate::support::pages::{self, Viewer};
use crate::support::people::{ADMIN, People, SUPPORT, sign_in};
use crate::support::relay::Relay;
use crate::support::staff_app::{Browser, StaffApp};
use crate::support::token::{at, claims};

/// A relay to the tests' PostgreSQL that cuts a connection before the server receives one
/// statement.
struct CuttingRelay {
    inner: Relay,
    /// The number of the statement to cut, counted from now; zero cuts none.
    left: Arc<AtomicUsize>,
}

impl CuttingRelay {
    async fn open() -> Self {
        let left = Arc::new(AtomicUsize::new(0));
        let counted = left.clone();
        let inner = Relay::watched(move |message| {
            let is_statement = match message.kind {
                b'B' => true,
                b'Q' => message.contents().starts_with(b"BEGIN"),
                _ => false,
            };
            let next = || {
                counted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                    left.checked_sub(1)
                })
            };
            !(is_statement && next() == Ok(1))
        });
        Self {
            inner: inner.await,
            left,
        }
    }

    /// Cuts the connection at a later statement; the next statement is number 1.
    fn cuts_at(&self, number: usize) {
        self.left.store(number, Ordering::SeqCst);
    }

    /// Repeats `ask` with the first statement cut, then the second, and so on, until no statement
    /// is left. Returns the number of cuts. `ask` calls `cuts_at` itself.
    async fn cut_everywhere(&self, mut ask: impl AsyncFnMut(usize)) -> usize {
        let mut number = 1;
        loop {
            ask(number).await;
            if self.left.swap(0, Ordering::SeqCst) > 0 {
                return number - 1;
            }
            number += 1;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_requests_succeed_although_any_statements_connection_is_cut() {
    let relay = CuttingRelay::open().await;
    let staff_app = StaffApp::open_altered(|figment| relay.inner.behind(figment)).await;
    let people = People::arrive(&staff_app).await;
    let [admin, support] = [
        staff_app.signed_in(ADMIN).await,
        staff_app.signed_in(SUPPORT).await,
    ];
    let nobody = Browser::new(&staff_app.app.url);
    let mut cuts = 0;
    for address in pages::all(&staff_app, &people).await {
        let browser = match address.viewer {
            Viewer::Admin => &admin,
            Viewer::Support => &support,
            Viewer::Anyone => &nobody,
        };
        let looked = relay.cut_everywhere(async |number| {
            let request = browser.request(Method::GET, &address.path);
            relay.cuts_at(number);
            let answer = App::answer(request.send().await.unwrap()).await;
            let text = &answer.text;
            assert_eq!(
                answer.status, address.status,
                "{}, cut at {number}: {text}",
                address.name
            );
        });
        cuts += looked.await;
    }
    assert!(cuts > 100, "{cuts}");

    let mut admin = admin;
    let csrf = admin.csrf().await;
    for (path, row) in [
        ("/admin/users.csv", "ada.lovelace@example.com"),
        ("/admin/users.csv?q=ada", "ada.lovelace@example.com"),
        ("/admin/audit.csv", "staff_signed_in"),
    ] {
        let cuts = relay.cut_everywhere(async |number| {
            let form = [("csrf", csrf.as_str()), ("reason", "asked by the auditor")];
            let request = admin.request(Method::POST, path).form(&form);
            relay.cuts_at(number);
            let file = App::answer(request.send().await.unwrap()).await;
            assert_eq!(file.status, 200, "{path}, cut at {number}: {}", file.text);
            assert!(
                file.text.contains(row) && !file.text.contains("broke off"),
                "{path}, cut at {number}"
            );
        });
        assert!(cuts.await > 0);
    }

    let cuts = relay.cut_everywhere(async |number| {
        let name = format!("backend-{number}");
        let form = [
            ("csrf", csrf.as_str()),
            ("reason", "x"),
            ("name", &name),
            ("role", "reader"),
        ];
        let request = admin.request(Method::POST, "/admin/keys").form(&form);
        relay.cuts_at(number);
        let page = App::answer(request.send().await.unwrap()).await;
        assert!(
            page.text.contains(">vst_"),
            "cut at {number}: {} {}",
            page.status,
            page.text
        );
    });
    assert!(cuts.await > 0);

    let cuts = relay.cut_everywhere(async |number| {
        let gone = sign_in(
            &staff_app,
            &[("email", &format!("gone-{number}@example.com"))],
        )
        .await
        .user_id();
        let path = format!("/admin/users/{gone}/delete");
        let preview = App::answer(admin.request(Method::GET, &path).send().await.unwrap())
            .await
            .text;
        let seen = preview
            .split("name=\"seen\" value=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let form = [("csrf", csrf.as_str()), ("reason", "x"), ("seen", seen)];
        let request = admin.request(Method::POST, &path).form(&form);
        relay.cuts_at(number);
        let answer = App::answer(request.send().await.unwrap()).await;
        let receipt = answer.header("location").unwrap_or_default();
        assert!(
            receipt.starts_with("/admin/deletions/"),
            "cut at {number}: {}",
            answer.text
        );
    });
    assert!(cuts.await > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn api_reads_succeed_although_any_statements_connection_is_cut() {
    let relay = CuttingRelay::open().await;
    let app = App::start_with(|figment| relay.inner.behind(figment)).await;
    let key = app.api_key("shop", KeyRole::Admin).await;
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    let gone = app.sign_in(&claims("gone", "gone@example.com")).await;
    let merged = app.sign_in(&claims("merged", "merged@example.com")).await;
    let other = at("second", "other", "other@example.com");
    app.sign_in_at("second", &other).await;
    let [user, into, over] = [ada.user_id(), gone.user_id(), merged.user_id()];
    let merge = json!({ "into": user, "reason": "one person" });
    let path = format!("/api/v1/admin/users/{over}/merge");
    assert_eq!(
        app.as_user(&key, Method::POST, &path, Some(&merge))
            .await
            .status,
        200
    );
    assert_eq!(
        app.delete(&gone.access_token(), "/api/v1/me").await.status,
        204
    );

    let admin = |path: &str| (key.clone(), format!("/api/v1/admin{path}"));
    for ((token, path), status, expected) in [
        (admin("/users"), 200, "ada@example.com"),
        (
            admin("/users?email=ada@example.com"),
            200,
            "ada@example.com",
        ),
        (
            admin("/users?provider=idp&subject=ada"),
            200,
            "ada@example.com",
        ),
        (admin("/users?q=ada"), 200, "ada@example.com"),
        (
            admin("/users?provider=idp&sort=name"),
            200,
            "ada@example.com",
        ),
        (admin(&format!("/users/{user}")), 200, "ada@example.com"),
        (admin(&format!("/users/{over}")), 404, &user),
        (admin(&format!("/users/{user}/sessions")), 200, "created_at"),
        (admin(&format!("/users/{over}/sessions")), 404, &user),
        (admin(&format!("/users/{user}/events")), 200, "user_created"),
        (admin(&format!("/users/{into}/events")), 200, "user_deleted"),
        (admin("/events"), 200, "next"),
        (
            (ada.access_token(), "/api/v1/me".into()),
            200,
            "ada@example.com",
        ),
        (
            (ada.access_token(), "/api/v1/me/identities".into()),
            200,
            "ada@example.com",
        ),
        (
            (ada.access_token(), "/api/v1/me/sessions".into()),
            200,
            "current",
        ),
        (
            (gone.access_token(), "/api/v1/me".into()),
            401,
            "user_deleted",
        ),
        ((merged.access_token(), "/api/v1/me".into()), 401, &user),
    ] {
        let cuts = relay.cut_everywhere(async |number| {
            relay.cuts_at(number);
            let answer = app.get(&token, &path).await;
            assert_eq!(
                answer.status, status,
                "{path}, cut at {number}: {}",
                answer.text
            );
            assert!(
                answer.text.contains(expected),
                "{path}, cut at {number}: {}",
                answer.text
            );
        });
        assert!(cuts.await > 0);
    }

    let cuts = relay.cut_everywhere(async |number| {
        let new = json!({ "email": format!("new-{number}@example.com") });
        relay.cuts_at(number);
        let created = app
            .as_user(&key, Method::POST, "/api/v1/admin/users", Some(&new))
            .await;
        assert_eq!(created.status, 201, "cut at {number}: {}", created.text);
    });
    assert!(cuts.await > 0);

    app.age(3600.0).await;
    let proof =
        json!({ "provider": "idp", "id_token": app.token(&claims("ada", "ada@example.com")) });
    let body = json!({
        "provider": "second", "id_token": app.token(&other), "dry_run": true, "reauthentication": proof,
    });
    let cuts = relay.cut_everywhere(async |number| {
        relay.cuts_at(number);
        let merge = app
            .as_user(
                &ada.access_token(),
                Method::POST,
                "/api/v1/me/merge",
                Some(&body),
            )
            .await;
        assert_eq!(merge.status, 200, "cut at {number}: {}", merge.text);
    });
    assert!(cuts.await > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_outs_succeed_although_any_statements_connection_is_cut() {
    let relay = CuttingRelay::open().await;
    let app = App::start_with(|figment| relay.inner.behind(figment)).await;
    let sign_in = async || app.sign_in(&claims("ada", "ada@example.com")).await;
    let live = "SELECT count(*) FROM sessions WHERE ended_at IS NULL";
    for scope in ["local", "global"] {
        let cuts = relay.cut_everywhere(async |number| {
            let body = json!({ "refresh_token": sign_in().await.refresh_token() });
            let path = format!("/api/v1/auth/logout?scope={scope}");
            relay.cuts_at(number);
            let answer = app.post_to(&path, &body).await;
            assert_eq!(
                answer.status, 204,
                "{scope}, cut at {number}: {}",
                answer.text
            );
            assert_eq!(
                app.database.count(live).await,
                0,
                "{scope}, cut at {number}"
            );
        });
        assert!(cuts.await > 0);
    }

    let token = sign_in().await.access_token();
    let cuts = relay.cut_everywhere(async |number| {
        sign_in().await;
        let sessions = app.get(&token, "/api/v1/me/sessions").await.json();
        let other = sessions["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .find(|session| session["current"] == false);
        let path = format!(
            "/api/v1/me/sessions/{}",
            other.unwrap()["id"].as_str().unwrap()
        );
        relay.cuts_at(number);
        let answer = app.delete(&token, &path).await;
        assert_eq!(answer.status, 204, "cut at {number}: {}", answer.text);
    });
    assert!(cuts.await > 0);
}
