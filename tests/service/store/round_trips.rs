//! The statements of sign-ins, refreshes and forged credentials, counted on the wire.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::service::api::dpop;
use crate::support::app::App;
use crate::support::process::eventually;
use crate::support::relay::Relay;
use crate::support::signer::Signer;
use crate::support::token::{claims, encode, with};

/// Messages from the service to PostgreSQL (PostgreSQL, "Message Formats").
#[derive(Debug, Default)]
struct Counts {
    /// `Parse`: prepares a statement.
    parse: AtomicUsize,
    /// `Execute`: runs a prepared statement.
    execute: AtomicUsize,
    /// `Query`: runs a simple statement, such as `BEGIN`.
    query: AtomicUsize,
    /// `Sync`: ends a group of messages, which the server then answers. Alone it is a ping.
    sync: AtomicUsize,
}

/// A relay to the tests' PostgreSQL that counts messages.
struct Counted {
    relay: Relay,
    counts: Arc<Counts>,
}

impl Counted {
    async fn open() -> Self {
        let counts = Arc::new(Counts::default());
        let counted = counts.clone();
        let relay = Relay::watched(move |message| {
            let count = match message.kind {
                b'P' => Some(&counted.parse),
                b'E' => Some(&counted.execute),
                // The pool's health check of an idle connection.
                b'Q' if message
                    .contents()
                    .starts_with(b"SELECT current_setting('transaction_read_only')") =>
                {
                    None
                }
                b'Q' => Some(&counted.query),
                b'S' => Some(&counted.sync),
                _ => None,
            };
            count.map(|count| count.fetch_add(1, Ordering::SeqCst));
            true
        });
        Self {
            relay: relay.await,
            counts,
        }
    }

    fn executed(&self) -> usize {
        self.counts.execute.load(Ordering::SeqCst)
    }

    /// Returns the result of a future, and the number of statements that it takes.
    async fn cost<T>(&self, asked: impl Future<Output = T>) -> (T, usize) {
        let before = self.executed();
        (asked.await, self.executed() - before)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_ins_take_one_to_three_statements_and_refreshes_one() {
    let relay = Counted::open().await;
    let app = behind(&relay).await;
    let unverified = json!({ "email_verified": false });
    let changed = claims("first", "changed@example.com");
    for (claimed, statements) in [
        (claims("first", "first@example.com"), 2),
        (claims("first", "first@example.com"), 1),
        (claims("other", "first@example.com"), 3),
        (with(claims("refused", "first@example.com"), &unverified), 3),
        // The provider's claims have changed.
        (changed.clone(), 3),
        (changed.clone(), 1),
    ] {
        assert_eq!(
            relay.cost(app.sign_in(&claimed)).await.1,
            statements,
            "{claimed}"
        );
    }
    let body = json!({ "id_token": app.token(&changed), "authorization_code": "code" });
    let (coded, cost) = relay.cost(app.post("idp", &body)).await;
    assert_eq!(
        (coded.outcome().as_str(), cost),
        ("signed_in", 1),
        "for a provider that revokes nothing"
    );
    let token = app.sign_in(&changed).await.refresh_token();
    for what in ["refresh", "repeat"] {
        assert_eq!(relay.cost(app.refresh(&token)).await.1, 1, "{what}");
    }
    let (bound, opened) = relay.cost(dpop::sign_in(&app, Signer::Ec)).await;
    let (_, refreshed) = relay
        .cost(dpop::refresh(&app, Signer::Ec, &bound.refresh_token()))
        .await;
    assert_eq!((opened, refreshed), (2, 1), "as without a key");
    let opened = app.sign_in(&changed).await;
    for path in ["/api/v1/me", "/api/v1/me/identities"] {
        let (read, cost) = relay.cost(app.get(&opened.access_token(), path)).await;
        assert_eq!((read.status.as_u16(), cost), (200, 1), "{path}");
    }
    app.sign_out(&opened.access_token(), "local").await;
    let refreshed = relay.cost(app.refresh(&opened.refresh_token())).await;
    let read = relay
        .cost(app.get(&opened.access_token(), "/api/v1/me"))
        .await;
    for ((refused, cost), statements) in [(refreshed, 1), (read, 2)] {
        assert_eq!(
            refused.json()["reason"],
            "session_ended",
            "{}",
            refused.text
        );
        assert_eq!(cost, statements, "{}", refused.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_ins_and_refreshes_that_arrive_together_share_statements() {
    const PEOPLE: usize = 60;
    let relay = Counted::open().await;
    let app = behind(&relay).await;
    let person = |number: usize| claims(&format!("{number}"), &format!("{number}@example.com"));
    let people: Vec<_> = (0..PEOPLE).map(person).collect();
    for person in &people {
        app.sign_in(person).await;
    }
    let together = app.together(people.iter().map(|person| app.sign_in(person)));
    let (signed_in, sign_ins) = relay.cost(together).await;
    assert!(
        signed_in
            .iter()
            .all(|answer| answer.outcome() == "signed_in")
    );
    assert!(sign_ins <= PEOPLE / 2, "{sign_ins} statements for {PEOPLE}");
    assert_eq!(app.database.rows().await, [PEOPLE, PEOPLE, 2 * PEOPLE]);
}

#[tokio::test(flavor = "multi_thread")]
async fn between_refreshes_no_connection_goes_back_to_the_pool() {
    const REFRESHES: usize = 40;
    let relay = Counted::open().await;
    let app = behind(&relay).await;
    let mut token = app
        .sign_in(&claims("ada", "ada@example.com"))
        .await
        .refresh_token();
    let counts = || (relay.executed(), relay.counts.sync.load(Ordering::SeqCst));
    let (executed, synced) = counts();
    for _ in 0..REFRESHES {
        token = app.refresh(&token).await.refresh_token();
    }
    let executed = counts().0 - executed;
    let synced = counts().1 - synced;
    assert_eq!(executed, REFRESHES);
    // The first statement on each connection is prepared, and on a slow machine a connection may be
    // idle for a second.
    assert!(synced < REFRESHES + REFRESHES / 2, "{synced} round trips");
}

async fn behind(relay: &Counted) -> App {
    App::start_with(|figment| {
        relay
            .relay
            .behind(figment)
            .merge(("databases.vestibule.max_connections", 1))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_uses_no_database_during_the_provider_call() {
    const SIGN_INS: usize = 20;
    let relay = Counted::open().await;
    let app = behind(&relay).await;
    // Opens connections and prepares statements.
    app.sign_in(&claims("first", "first@example.com")).await;
    let executed = || relay.executed();
    let others =
        || relay.counts.parse.load(Ordering::SeqCst) + relay.counts.query.load(Ordering::SeqCst);
    let before = (executed(), others());
    let begins = relay.counts.query.load(Ordering::SeqCst);

    let gate = app.provider.hold();
    let app = Arc::new(app);
    let requests: Vec<_> = (0..SIGN_INS)
        .map(|number| {
            let claimed = match number % 4 {
                0 => claims(
                    &format!("new-{number}"),
                    &format!("new-{number}@example.com"),
                ),
                1 => claims(&format!("other-{number}"), "first@example.com"),
                2 => claims("first", "first@example.com"),
                _ => with(
                    claims(&format!("refused-{number}"), "first@example.com"),
                    &json!({ "email_verified": false }),
                ),
            };
            let app = app.clone();
            tokio::spawn(async move { app.sign_in(&claimed).await.status.as_u16() })
        })
        .collect();
    gate.arrived(SIGN_INS).await;
    assert_eq!(
        (executed(), others()),
        before,
        "nothing is asked of the database before the provider has answered"
    );
    let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'vestibule'
                AND datname = current_database() AND (state <> 'idle' OR xact_start IS NOT NULL)";
    eventually("no transaction is open meanwhile", async || {
        (app.database.count(open).await == 0).then_some(())
    })
    .await;
    gate.release();
    for request in requests {
        assert!([200, 201, 409].contains(&request.await.unwrap()));
    }
    assert_eq!(
        relay.counts.query.load(Ordering::SeqCst),
        begins,
        "and no statement needs a BEGIN"
    );
}

/// An allowance for background tasks, such as the reload of keys for an unknown `kid`.
const BESIDE: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn forged_access_tokens_cost_no_statement() {
    let relay = Counted::open().await;
    let app = App::start_with(|figment| relay.relay.behind(figment)).await;
    let token = app
        .sign_in(&claims("ada", "ada@example.com"))
        .await
        .access_token();
    let (message, _) = token.rsplit_once('.').unwrap();
    let (_, payload) = message.split_once('.').unwrap();
    let unknown_key = format!(
        r#"{{"alg":"ES256","typ":"at+jwt","kid":"{}"}}"#,
        "x".repeat(43)
    );
    let before = relay.executed();
    for number in 0..100 {
        let forged = match number % 3 {
            0 => format!("{message}.{}", "A".repeat(86)),
            1 => encode(&unknown_key, "{}"),
            _ => format!("e30.{payload}."),
        };
        assert_eq!(app.get(&forged, "/api/v1/me").await.status, 401);
        assert_eq!(app.sign_out(&forged, "local").await.status, 401);
    }
    let cost = relay.executed() - before;
    assert!(cost <= BESIDE, "{cost}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pages_cookie_that_is_refused_costs_no_statement() {
    let relay = Counted::open().await;
    let page = "https://app.example.com";
    let app =
        App::start_with(|figment| relay.relay.behind(figment).merge(("web.origins", [page]))).await;
    let signed_in = app.sign_in(&claims("ada", "ada@example.com")).await;
    let other = app
        .sign_in(&claims("ada", "ada@example.com"))
        .await
        .access_token();
    let cookie = format!("vestibule={}", signed_in.refresh_token());
    let client = reqwest::Client::new();
    let before = relay.executed();
    for number in 0..100 {
        let (origin, content_type, bearer) = match number % 3 {
            0 => ("https://evil.example", "application/json", String::new()),
            1 => (page, "text/plain", String::new()),
            _ => (page, "application/json", format!("Bearer {other}")),
        };
        for path in [
            "/api/v1/auth/refresh",
            "/api/v1/auth/logout",
            "/api/v1/auth/oauth/idp",
        ] {
            let request = client
                .post(format!("{}{path}", app.url))
                .header("Cookie", &cookie)
                .body("{}");
            let request = request
                .header("Origin", origin)
                .header("Content-Type", content_type);
            let answer = App::answer(
                request
                    .header("Authorization", &bearer)
                    .send()
                    .await
                    .unwrap(),
            )
            .await;
            assert_eq!(
                (answer.status.as_u16(), answer.error().as_str()),
                (403, "cookie_refused")
            );
        }
    }
    let cost = relay.executed() - before;
    assert!(cost <= BESIDE, "{cost}");
}

#[tokio::test(flavor = "multi_thread")]
async fn made_up_staff_cookies_cost_the_statements_of_their_addresss_share() {
    let relay = Counted::open().await;
    let app = App::start_with(|figment| {
        relay
            .relay
            .behind(figment)
            .merge(("rate_limit.enabled", true))
            .merge(("rate_limit.staff_pages_per_minute", 5))
            .merge(("trusted_proxies", ["127.0.0.1"]))
    })
    .await;
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let look = async |number: usize, address: &str| {
        let request = client
            .get(format!("{}/admin/users", app.url))
            .header("X-Forwarded-For", address);
        let cookie = format!("__Host-vestibule-staff={number:043}");
        App::answer(request.header("Cookie", cookie).send().await.unwrap())
            .await
            .status
            .as_u16()
    };
    let before = relay.executed();
    let mut answers = Vec::new();
    for number in 0..100 {
        answers.push(look(number, "192.0.2.1").await);
    }
    assert_eq!(answers[..5], [303; 5], "to the sign-in");
    let refused = answers.iter().filter(|status| **status == 429).count();
    assert!(refused > 80, "{answers:?}");
    let cost = relay.executed() - before;
    assert!(cost <= 100 - refused + BESIDE, "{cost}");
    assert_eq!(
        look(0, "192.0.2.2").await,
        303,
        "nobody elsewhere is held up by it"
    );
}
