//! Receivers that are slow, broken, gone, or not where they should be.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uuid::Uuid;

use super::{event, pass, with_receivers};
use crate::support::app::App;
use crate::support::cluster::Database;
use crate::support::process::eventually;
use crate::support::receiver::{Receiver, Reply, SECRET};

/// Attempts, failure, whether it is parked, and seconds to the next attempt, of the one message.
type State = (i16, Option<String>, bool, f64);

async fn state(database: &Database) -> State {
    sqlx::query_as(
        "SELECT attempts, failure, parked_at IS NOT NULL, extract(epoch FROM next_attempt_at - now())::float8
         FROM webhook_messages",
    )
    .fetch_one(&database.pool)
    .await
    .unwrap()
}

/// The state once a failure is recorded.
async fn failed(database: &Database, attempts: i16) -> State {
    eventually(&format!("attempt {attempts} fails"), async || {
        let state = state(database).await;
        let over = state.2 || state.3 < 59.0 && attempts == 1 || state.3 > 61.0;
        (state.0 == attempts && state.1.is_some() && over).then_some(state)
    })
    .await
}

async fn changed(app: &App) {
    event(&app.database.pool, "user_disabled", Uuid::now_v7(), None, &Value::Null).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_500_for_three_days_a_message_is_parked_and_the_next_is_sent() {
    let receiver = Receiver::start_with(|_| Reply::Status(500)).await;
    let app = with_receivers(&[("shop", &receiver)]).await;
    let pool = &app.database.pool;
    let user = Uuid::now_v7();
    event(pool, "user_disabled", user, None, &Value::Null).await;
    let mut waited = 0.0;
    for attempts in 1..10 {
        let (_, failure, parked, pause) = failed(&app.database, attempts).await;
        assert_eq!((failure.as_deref(), parked), (Some("the answer is 500"), false), "attempt {attempts}");
        waited += pause;
        pass(pool).await;
    }
    assert!((2.8..3.6).contains(&(waited / 86_400.0)), "{waited} s of retries");
    assert!(failed(&app.database, 10).await.2, "it is parked");
    event(pool, "user_enabled", user, None, &Value::Null).await;
    let messages = receiver.received_all(11).await;
    assert_eq!(messages.last().unwrap().kind(), "user.enabled");
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_without_an_answer_use_up_none_of_the_ten() {
    let receiver = Receiver::start_with(|_| Reply::Status(500)).await;
    let app = with_receivers(&[("shop", &receiver)]).await;
    changed(&app).await;
    failed(&app.database, 1).await;
    // As if the instances had been killed in the middle of nine.
    sqlx::query("UPDATE webhook_messages SET attempts = 9, failures = 0, next_attempt_at = now()")
        .execute(&app.database.pool)
        .await
        .unwrap();
    eventually("the first answer is recorded", async || {
        let answered = "SELECT count(*) FROM webhook_messages WHERE attempts = 10 AND failures = 1";
        (app.database.count(answered).await == 1).then_some(())
    })
    .await;
    let (.., parked, pause) = state(&app.database).await;
    assert!(!parked && pause < 6.0, "the next is seconds away: {pause} s");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_delays_nobody_else() {
    let (slow, quick) = (Receiver::start_with(|_| Reply::Hang).await, Receiver::start().await);
    let app = with_receivers(&[("slow", &slow), ("quick", &quick)]).await;
    for _ in 0..100 {
        changed(&app).await;
    }
    let since = Instant::now();
    quick.received_all(100).await;
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    let hanging = slow.received_all(16).await.len();
    assert_eq!(hanging, 16, "no more are sent to the slow one at a time");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_way_to_fail_is_told_in_words() {
    const MOVED: &str = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
    const PATIENCE: &str = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1800\r\nContent-Length: 0\r\n\r\n";
    for (reply, words, parked, pause) in [
        (Reply::Head(MOVED), "the answer is a redirect (302), and none is followed", false, 5.0),
        (Reply::Head(PATIENCE), "the answer is 429", false, 1800.0),
        (Reply::Status(410), "the answer is 410: the receiver is gone", true, 0.0),
        (Reply::Close, "the connection ended before the answer", false, 5.0),
        (Reply::Head("nonsense\r\n\r\n"), "the connection ended before the answer", false, 5.0),
    ] {
        let receiver = Receiver::start_with(move |_| reply.clone()).await;
        let app = with_receivers(&[("shop", &receiver)]).await;
        changed(&app).await;
        let (_, failure, is_parked, next) = eventually(words, async || {
            let state = state(&app.database).await;
            state.1.is_some().then_some(state)
        })
        .await;
        let failure = failure.unwrap();
        assert!(failure.starts_with(words), "{failure}");
        assert_eq!(is_parked, parked, "{words}");
        assert!((next - pause).abs() <= pause * 0.1 + 2.0, "{words}: {next} s");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_not_there_is_told_in_words() {
    let settings = json!({ "url": "http://127.0.0.1:1/hooks?key=hush", "secret": SECRET });
    let app = App::start_with(|figment| figment.merge(("webhooks.shop", settings))).await;
    changed(&app).await;
    let failure = failed(&app.database, 1).await.1.unwrap();
    assert!(failure.starts_with("the connection failed: ") && failure.contains("refused"), "{failure}");
    assert!(!failure.contains("hush") && !failure.contains("127.0.0.1"), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_drips_or_never_ends_is_accepted_by_its_status() {
    for reply in [Reply::Drip(200), Reply::Flood(200)] {
        let receiver = Receiver::start_with(move |_| reply.clone()).await;
        let app = with_receivers(&[("shop", &receiver)]).await;
        let since = Instant::now();
        changed(&app).await;
        eventually("it is delivered", async || {
            (app.database.count("SELECT count(*) FROM webhook_messages").await == 0).then_some(())
        })
        .await;
        assert!(since.elapsed() < Duration::from_secs(8), "{:?}", since.elapsed());
        // The system's buffers take some megabytes that nobody reads.
        assert!(*receiver.taken.lock().unwrap() < 64 << 20);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_leads_into_a_private_network_is_not_connected_to() {
    let receiver = Receiver::start().await;
    let url = receiver.url.replace("http://127.0.0.1", "https://localhost");
    let settings = json!({ "url": url, "secret": SECRET });
    let app = App::start_with(|figment| figment.merge(("webhooks.shop", settings.clone()))).await;
    changed(&app).await;
    let failure = failed(&app.database, 1).await.1.unwrap();
    assert!(failure.starts_with("the host name leads to no address of the internet"), "{failure}");

    // Where the operator says so, it is, as far as its missing TLS.
    let mut settings = settings;
    settings["private_network"] = json!(true);
    let app = App::start_with(|figment| figment.merge(("webhooks.shop", settings))).await;
    changed(&app).await;
    let failure = failed(&app.database, 1).await.1.unwrap();
    assert!(failure.starts_with("the connection failed: "), "{failure}");
    assert_eq!(receiver.received().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_of_the_environment_is_not_used() {
    let receiver = Receiver::start().await;
    let database = Database::create().await;
    let webhooks = format!("{{shop={{url=\"{}\",secret=\"{SECRET}\"}}}}", receiver.url);
    let process = crate::support::process::Process::start(
        crate::support::process::free_port(),
        &database.url,
        "http://127.0.0.1:1/tokeninfo",
        &[
            ("ROCKET_WEBHOOKS", webhooks.as_str()),
            ("HTTP_PROXY", "http://127.0.0.1:1"),
            ("ALL_PROXY", "http://127.0.0.1:1"),
        ],
    );
    process.answers("/readyz", 200).await;
    event(&database.pool, "user_disabled", Uuid::now_v7(), None, &Value::Null).await;
    assert_eq!(receiver.received_all(1).await[0].line, "POST /hooks HTTP/1.1");
}
