//! A database that responds after the request was abandoned (launchbadge/sqlx#4393).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::watch;
use uuid::Uuid;
use vestibule::domain::staff::Role;
use vestibule::web::http::deadline::Limit;

use crate::support::cluster::Database;
use crate::support::relay::{Messages, Relay};
use crate::support::staff_app::StaffApp;
use crate::support::token::at;

/// The time limit of a request.
const LIMIT: Duration = Duration::from_secs(4);
/// More messages than a transaction has.
const QUESTIONS: usize = 5;
/// The number of sign-ins after each late response.
const SIGN_INS: usize = 12;

/// A relay to the tests' PostgreSQL that can hold a response back.
struct HoldingRelay {
    inner: Relay,
    held: Arc<Held>,
}

struct Held {
    /// The number of messages until the held response, within one transaction and including
    /// `BEGIN`; zero holds none.
    questions: AtomicUsize,
    /// Counts the calls of `hold`. Transactions that began before the latest call do not count.
    round: AtomicUsize,
    /// Releases the held responses.
    release: watch::Sender<()>,
}

impl HoldingRelay {
    async fn open() -> Self {
        let held = Arc::new(Held {
            questions: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            release: watch::Sender::new(()),
        });
        let shared = held.clone();
        let inner = Relay::open(move |client, server| relay(client, server, shared.clone())).await;
        Self { inner, held }
    }

    /// Holds the response to a later message.
    fn hold(&self, question: usize) {
        self.held.round.fetch_add(1, Ordering::SeqCst);
        self.held.questions.store(question, Ordering::SeqCst);
    }

    fn release(&self) {
        self.hold(0);
        self.held.release.send_replace(());
    }
}

async fn relay(client: UnixStream, server: UnixStream, held: Arc<Held>) {
    let (from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    // The release that this connection's responses wait for.
    let (kept, mut keeps) = watch::channel(None::<watch::Receiver<()>>);
    tokio::spawn(async move {
        let mut answer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from_server.read(&mut answer).await {
            let release = keeps.borrow_and_update().clone();
            if let Some(mut release) = release {
                let _ = release.changed().await;
            }
            if to_client.write_all(&answer[..length]).await.is_err() {
                return;
            }
        }
    });
    let mut transaction = 0;
    let mut messages = Messages::of(from_client);
    while let Some(message) = messages.next().await {
        // PostgreSQL answers `Query` and `Sync` with `ReadyForQuery`.
        if matches!(message.kind, b'Q' | b'S') {
            let round = held.round.load(Ordering::SeqCst);
            if message.contents().starts_with(b"BEGIN") {
                transaction = round;
            }
            let counts = transaction == round && held.questions.load(Ordering::SeqCst) > 0;
            let keep = counts && held.questions.fetch_sub(1, Ordering::SeqCst) == 1;
            kept.send_replace(keep.then(|| held.release.subscribe()));
        }
        to_server.write_all(&message.bytes).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn late_database_responses_to_abandoned_requests_lose_no_sign_in() {
    let relay = HoldingRelay::open().await;
    let settings = |figment: figment::Figment| {
        relay
            .inner
            .behind(figment)
            .merge(("databases.vestibule.max_connections", 2))
    };
    let staff_app = StaffApp::open_on(Database::create().await, settings, |rocket| {
        rocket.manage(Limit(LIMIT))
    })
    .await;
    staff_app.appoint("ada@example.com", Role::Admin).await;
    let mut browser = staff_app.signed_in("ada@example.com").await;
    let mut all = 0;
    for path in ["/admin/users", "/admin/users?q=nobody", "/admin/audit"] {
        let mut late = 0;
        for question in 1..=QUESTIONS {
            relay.hold(question);
            let status = browser.get(path).await.status.as_u16();
            relay.release();
            if status == 200 {
                // The service does not wait for this response, such as the response to a
                // `ROLLBACK`.
                continue;
            }
            assert_eq!(status, 503, "{path}, question {question}");
            late += 1;
            for number in 0..SIGN_INS {
                let subject = format!("{late}-{number}-{}", Uuid::new_v4());
                let claims = at("second", &subject, &format!("{subject}@example.com"));
                let answer = staff_app.app.sign_in_at("second", &claims).await;
                assert_eq!(
                    answer.status, 201,
                    "{path}, question {question}: {}",
                    answer.text
                );
                all += 1;
            }
            let there = staff_app
                .app
                .database
                .count("SELECT count(*) FROM sessions")
                .await;
            assert_eq!(
                there, all,
                "{path}: some are lost after question {question}"
            );
        }
        // At least three responses were held: to the begin of the transaction, the statement's
        // description, and its rows.
        assert!(late >= 3, "{path}: {late}");
    }
}
