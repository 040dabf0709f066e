//! Receivers that are slow, broken, gone, or at forbidden addresses.

use std::time::{Duration, Instant};

use serde_json::json;
use uuid::Uuid;

use super::{change, emptied, environment, pass, with_receivers, with_shop};
use crate::support::app::App;
use crate::support::cluster::Database;
use crate::support::process::{Process, eventually, free_port};
use crate::support::provider::{Behaviour, End};
use crate::support::receiver::{Receiver, SECRET};

/// The time limit of an attempt.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The state of the only message: failures, the last failure, whether it is parked, and seconds to
/// the next attempt.
type State = (i16, Option<String>, bool, f64);

async fn state(database: &Database) -> State {
    database.row("SELECT failures, failure, parked_at IS NOT NULL, extract(epoch FROM next_attempt_at - now())::float8
         FROM webhook_messages").await
}

/// Returns the state once this many failures are recorded. The second may happen by itself, five
/// seconds after the first.
async fn failed(database: &Database, failures: i16) -> State {
    eventually(&format!("attempt {failures} fails"), async || {
        let state = state(database).await;
        (state.0 >= failures).then_some(state)
    })
    .await
}

async fn changed(app: &App) {
    change(&app.database.pool, "user_disabled", Uuid::now_v7()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_failing_for_three_days_are_parked_and_the_next_sent() {
    let receiver = Receiver::start_with(|_| Behaviour::status(500)).await;
    let app = with_receivers(&[("shop", &receiver)]).await;
    let pool = &app.database.pool;
    let user = Uuid::now_v7();
    change(pool, "user_disabled", user).await;
    let mut failures = 0;
    let mut waited = 0.0;
    while failures < 9 {
        let (so_far, failure, parked, pause) = failed(&app.database, failures + 1).await;
        assert_eq!(
            (failure.as_deref(), parked),
            (Some("the answer is 500"), false),
            "attempt {so_far}"
        );
        failures = so_far;
        waited += pause;
        pass(pool).await;
    }
    assert!(
        (2.8..3.6).contains(&(waited / 86_400.0)),
        "{waited} s of retries"
    );
    assert!(failed(&app.database, 10).await.2, "it is parked");
    change(pool, "user_enabled", user).await;
    eventually("the next is sent", async || {
        receiver
            .received()
            .last()
            .filter(|message| message.kind() == "user.enabled")
            .map(drop)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_without_an_answer_use_up_none_of_the_ten() {
    let receiver = Receiver::start_with(|_| Behaviour::status(500)).await;
    let app = with_receivers(&[("shop", &receiver)]).await;
    changed(&app).await;
    failed(&app.database, 1).await;
    // As if the instances had been killed during nine attempts.
    app.database
        .run("UPDATE webhook_messages SET attempts = 9, failures = 0, next_attempt_at = now()")
        .await;
    let (failures, _, parked, pause) = failed(&app.database, 1).await;
    // The next attempt may be under way, and is repeated within a minute.
    assert!(
        !parked && (failures > 1 || pause < 60.0),
        "the next is seconds away: {pause} s"
    );
}

/// As after a day without the receiver.
const HOURS: &str =
    "UPDATE webhook_messages SET next_attempt_at = now() + interval '7 hours' WHERE failures > 0";
const FAILED: &str = "SELECT count(*) FROM webhook_messages WHERE failures > 0";

/// Starts a service whose receiver has accepted a message.
async fn delivering() -> (App, Receiver) {
    let receiver = Receiver::start().await;
    let app = with_receivers(&[("shop", &receiver)]).await;
    changed(&app).await;
    emptied(&app.database).await;
    (app, receiver)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovered_receiver_gets_all_waiting_messages_at_once() {
    let (app, receiver) = delivering().await;
    receiver.behave(|_| Behaviour::status(503));
    for _ in 0..20 {
        changed(&app).await;
    }
    app.database.until(FAILED, 20).await;
    run!(&app.database.pool, HOURS);
    receiver.behave(|_| Behaviour::status(204));
    changed(&app).await;
    emptied(&app.database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_messages_success_does_not_hasten_a_refused_one() {
    let (app, receiver) = delivering().await;
    let ada = Uuid::now_v7();
    receiver.behave(move |message| {
        Behaviour::status(if message.user() == ada.to_string() {
            500
        } else {
            204
        })
    });
    change(&app.database.pool, "user_disabled", ada).await;
    app.database.until(FAILED, 1).await;
    run!(&app.database.pool, HOURS);
    let state = async || -> (i16, String) {
        app.database
            .row("SELECT attempts, next_attempt_at::text FROM webhook_messages")
            .await
    };
    let waiting = state().await;
    for _ in 0..5 {
        changed(&app).await;
        app.database.until(super::WAITING, 1).await;
    }
    assert_eq!(state().await, waiting);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_delays_nobody_else() {
    let slow = Receiver::start_with(|_| Behaviour::NEVER_ANSWER).await;
    let quick = Receiver::start().await;
    let app = with_receivers(&[("slow", &slow), ("quick", &quick)]).await;
    let since = Instant::now();
    for _ in 0..100 {
        changed(&app).await;
    }
    quick.received_all(100).await;
    assert!(since.elapsed() < TIMEOUT, "{:?}", since.elapsed());
    let hanging = slow.received_all(16).await.len();
    // Further messages follow only after these time out.
    assert!(
        hanging == 16 || since.elapsed() >= TIMEOUT,
        "{hanging} are sent to the slow one at a time"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_way_to_fail_is_told_in_words() {
    const MOVED: &str =
        "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
    const PATIENCE: &str =
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1800\r\nContent-Length: 0\r\n\r\n";
    const OVERLOADED: &str =
        "HTTP/1.1 503 Unavailable\r\nRetry-After: 1800\r\nContent-Length: 0\r\n\r\n";
    // `Retry-After` counts only with 429 and 503.
    const BROKEN: &str = "HTTP/1.1 500 Error\r\nRetry-After: 1800\r\nContent-Length: 0\r\n\r\n";
    let head = |text: &str| Behaviour::Raw(text.into(), End::Stay);
    for (reply, words, parked, pause) in [
        (
            head(MOVED),
            "the answer is a redirect (302), and none is followed",
            false,
            5.0,
        ),
        (head(PATIENCE), "the answer is 429", false, 1800.0),
        (head(OVERLOADED), "the answer is 503", false, 1800.0),
        (head(BROKEN), "the answer is 500", false, 5.0),
        (
            Behaviour::status(410),
            "the answer is 410: the receiver is gone",
            true,
            0.0,
        ),
        (
            Behaviour::CLOSE,
            "the connection ended before the answer",
            false,
            5.0,
        ),
        (
            head("nonsense\r\n\r\n"),
            "the connection ended before the answer",
            false,
            5.0,
        ),
    ] {
        let receiver = Receiver::start_with(move |_| reply.clone()).await;
        let app = with_receivers(&[("shop", &receiver)]).await;
        let since = Instant::now();
        changed(&app).await;
        let (_, failure, is_parked, next) = failed(&app.database, 1).await;
        let failure = failure.unwrap();
        assert!(failure.starts_with(words), "{failure}");
        assert_eq!(is_parked, parked, "{words}");
        let waited = since.elapsed().as_secs_f64();
        // The next attempt may have begun.
        let again = !parked && waited > pause * 0.9;
        assert!(
            again || (pause * 0.9 - waited..=pause * 1.1).contains(&next),
            "{words}: {next} s"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_not_there_is_told_in_words() {
    let settings = json!({ "url": "http://127.0.0.1:1/hooks?key=hush", "secret": SECRET });
    let app = with_shop(settings).await;
    changed(&app).await;
    let failure = failed(&app.database, 1).await.1.unwrap();
    assert!(
        failure.starts_with("the connection failed: ") && failure.contains("refused"),
        "{failure}"
    );
    assert!(
        !failure.contains("hush") && !failure.contains("127.0.0.1"),
        "{failure}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_or_endless_response_is_accepted_by_its_status() {
    let drips =
        Behaviour::body("text/plain", "x".repeat(10_000)).trickled(Duration::from_millis(100));
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 8000000000\r\n\r\n";
    for reply in [
        drips,
        Behaviour::Raw(head.to_vec(), End::Repeat(b"x".repeat(65_536))),
    ] {
        let receiver = Receiver::start_with(move |_| reply.clone()).await;
        let app = with_receivers(&[("shop", &receiver)]).await;
        let since = Instant::now();
        changed(&app).await;
        emptied(&app.database).await;
        assert!(since.elapsed() < TIMEOUT, "{:?}", since.elapsed());
        // The system's buffers take some unread megabytes.
        assert!(receiver.server.counts().repeated < 64 << 20);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn host_names_with_private_addresses_need_the_operators_permission() {
    let receiver = Receiver::start().await;
    let url = receiver
        .url
        .replace("http://127.0.0.1", "https://localhost");
    let mut settings = json!({ "url": url, "secret": SECRET });
    let app = with_shop(settings.clone()).await;
    changed(&app).await;
    let failure = failed(&app.database, 1).await.1.unwrap();
    assert!(
        failure.starts_with("the host name leads to no address of the internet"),
        "{failure}"
    );

    // If the operator permits it, the service connects, and fails for the missing TLS.
    settings["private_network"] = json!(true);
    let app = with_shop(settings).await;
    changed(&app).await;
    let failure = failed(&app.database, 1).await.1.unwrap();
    assert!(failure.starts_with("the connection failed: "), "{failure}");
    assert_eq!(receiver.received().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_of_the_environment_is_not_used() {
    let receiver = Receiver::start().await;
    let database = Database::create().await;
    let webhooks = environment(&receiver.url);
    let nowhere = "http://127.0.0.1:1";
    let settings = [
        ("ROCKET_WEBHOOKS", webhooks.as_str()),
        ("HTTP_PROXY", nowhere),
        ("ALL_PROXY", nowhere),
    ];
    let process = Process::start(
        free_port(),
        &database.url,
        "http://127.0.0.1:1/tokeninfo",
        &settings,
    );
    process.answers("/readyz", 200).await;
    change(&database.pool, "user_disabled", Uuid::now_v7()).await;
    assert_eq!(receiver.received_all(1).await[0].line, "POST /hooks");
}
