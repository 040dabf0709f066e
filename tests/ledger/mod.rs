//! `kill -9` of the service, of its database and of a receiver of webhooks, during changes of all
//! kinds. No acknowledged change is lost, nothing is half written, and exactly the committed
//! changes are delivered, in order for each user.

mod inbox;
mod person;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;
use uuid::Uuid;
use vestibule::admin::staff::api_keys;
use vestibule::dev::postgres::{Options, Postgres};
use vestibule::domain::actor::{Actor, Author, Origin};
use vestibule::domain::api_key::KeyRole;
use vestibule::events::EventKind;

use crate::support::process::{Process, free_port};
use crate::support::provider::Provider;
use crate::support::receiver::SECRET;
use inbox::{Book, Written};
use person::{Change, Person, Shared};

const CLIENTS: usize = 8;
const CHANGES: usize = 10_000;
/// Number of kills: of the service, the database and the receiver, in turn.
const KILLS: usize = 21;
/// Longest time to deliver all messages that are queued after the last kill.
const REST: Duration = Duration::from_mins(2);

/// The type of the message about an event.
fn message_type(kind: &str, reason: Option<&str>) -> Option<&'static str> {
    let kind: EventKind = kind.parse().unwrap();
    kind.message_type(reason).map(Into::into)
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_processes_lose_no_acknowledged_change_and_keep_delivery_order() {
    let began = Instant::now();
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("ledger");
    let _ = std::fs::remove_dir_all(&root);
    // Without fsync, PostgreSQL loses data only if the machine fails, not if it is killed.
    let options = Options {
        durable: false,
        ..Options::new(&root)
    };
    let mut postgres = Postgres::start(&options).unwrap();
    postgres.ensure_database("ledger").unwrap();
    let database = postgres.url("ledger");
    let pool = PgPoolOptions::new()
        .max_connections(8)
        .connect_lazy(&database)
        .unwrap();
    let provider = Arc::new(Provider::start().await);

    let port = free_port();
    let inbox_port = free_port();
    let book = Book::default();
    let webhooks =
        format!("{{shop={{url=\"http://127.0.0.1:{inbox_port}/hooks\",secret=\"{SECRET}\"}}}}");
    let settings = [
        ("ROCKET_WEBHOOKS", webhooks.as_str()),
        ("ROCKET_RATE_LIMIT", "{enabled=false}"),
    ];
    let serve = || Process::start(port, &database, &provider.tokeninfo_url(), &settings);
    let mut inbox = inbox::open(inbox_port, &book, false).await;
    let mut service = serve();
    service.answers("/readyz", 200).await;

    let by = Author {
        actor: Actor::Operator("the tests"),
        reason: None,
        origin: &Origin::default(),
    };
    let key = api_keys::add(
        &pool.clone().into(),
        &"ledger".parse().unwrap(),
        KeyRole::Admin,
        None,
        by,
    )
    .await;
    let (changes, mut heard) = unbounded_channel();
    let shared = Shared {
        url: service.url.clone(),
        api_key: key.unwrap().unwrap().expose().clone(),
        provider: provider.clone(),
        pool: pool.clone(),
        changes,
        unanswered: Arc::default(),
    };
    let unanswered = shared.unanswered.clone();
    let made: Arc<AtomicUsize> = Arc::default();
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let shared = shared.clone();
        let made = made.clone();
        clients.spawn(async move {
            let mut person = Person::new(shared, number);
            for round in 0.. {
                if made.load(Ordering::Relaxed) >= CHANGES {
                    break;
                }
                let before = person.ledger.len();
                person.live(round).await;
                made.fetch_add(person.ledger.len() - before, Ordering::Relaxed);
            }
            (person.ledger, person.kept)
        });
    }
    drop(shared);

    for kill in 0..KILLS {
        for _ in 0..CHANGES / (KILLS + 1) {
            let Some(()) = heard.recv().await else {
                panic!("no client goes on: {}", service.log())
            };
        }
        match kill % 3 {
            0 => {
                drop(service);
                pass(&pool).await;
                service = serve();
            }
            1 => {
                let postmaster = Pid::from_raw(postgres.pid().try_into().unwrap()).unwrap();
                kill_process(postmaster, Signal::KILL).unwrap();
                drop(postgres);
                postgres = Postgres::start(&options).unwrap();
            }
            _ => {
                inbox.server.stop().await;
                inbox = inbox::open(inbox_port, &book, false).await;
            }
        }
    }
    let mut accounts = Vec::new();
    let mut kept = Vec::new();
    while let Some(person) = clients.join_next().await {
        let (ledger, tokens) = person.unwrap();
        accounts.push(ledger);
        kept.extend(tokens);
    }
    let took = began.elapsed();
    drop(service);
    inbox.server.stop().await;
    pass(&pool).await;
    let left = waiting(&pool).await;
    let _inbox = inbox::open(inbox_port, &book, true).await;
    let service = serve();
    service.answers("/readyz", 200).await;
    emptied(&pool).await;

    nothing_is_lost(&service, &kept, &pool).await;
    let written: Result<Vec<_>, _> = book.lock().unwrap().iter().cloned().collect();
    let written = written.unwrap();
    let committed = committed(&pool).await;
    let unanswered = unanswered.load(Ordering::Relaxed);
    let duplicates = compare(&committed, &written, &accounts);
    println!(
        "{} changes, each delivered, and {duplicates} duplicates; {KILLS} kills, {unanswered} requests without an \
         answer, {left} messages left after the last kill; {took:.0?}, {:.0?} with these",
        committed.len(),
        began.elapsed()
    );
}

/// Asserts that each acknowledged token works, and that nothing is half written.
async fn nothing_is_lost(service: &Process, tokens: &[String], pool: &PgPool) {
    assert!(
        tokens.len() > CHANGES / 100,
        "{} acknowledged tokens",
        tokens.len()
    );
    for token in tokens {
        let body = json!({ "refresh_token": token });
        let answer = service.post("/api/v1/auth/refresh", &[], &body).await;
        assert_eq!(answer.status, 200, "an acknowledged token: {}", answer.text);
    }
    let halves: i64 = value!(pool, HALVES);
    assert_eq!(halves, 0, "something is half written");
}

/// Counts users without an identity, and sessions without an identity or without the event of their
/// start.
const HALVES: &str = "SELECT (SELECT count(*) FROM users u WHERE NOT EXISTS (SELECT FROM identities i WHERE i.user_id = u.id))
                           + (SELECT count(*) FROM sessions s WHERE NOT EXISTS (SELECT FROM events e WHERE e.id = s.id))
                           + (SELECT count(*) FROM sessions s WHERE NOT EXISTS (SELECT FROM identities i WHERE i.id = s.identity_id))";

/// Ends the leases of a killed instance and makes the next attempts due, as if time had passed.
async fn pass(pool: &PgPool) {
    // Messages without attempts wait behind these.
    let due = "UPDATE webhook_messages SET next_attempt_at = now(), leased_until = now() WHERE attempts > 0";
    sqlx::query(due).execute(pool).await.unwrap();
}

async fn waiting(pool: &PgPool) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM webhook_messages")
        .fetch_one(pool)
        .await
        .unwrap()
}

/// Waits until each message was delivered. A message whose next attempt is more than a lease away
/// waits for a retry, which this makes due.
async fn emptied(pool: &PgPool) {
    let began = Instant::now();
    loop {
        let left = waiting(pool).await;
        if left == 0 {
            return;
        }
        assert!(began.elapsed() < REST, "{left} messages were not delivered");
        run!(
            pool,
            "UPDATE webhook_messages SET next_attempt_at = now()
             WHERE attempts > 0 AND next_attempt_at > now() + interval '1 minute'"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The types of the messages that have to be delivered, by their ids.
async fn committed(pool: &PgPool) -> HashMap<Uuid, &'static str> {
    let events: Vec<(Uuid, String, Option<String>)> = all!(
        pool,
        "SELECT id, kind, reason FROM events WHERE user_id IS NOT NULL"
    );
    let messages = events
        .into_iter()
        .filter_map(|(id, kind, reason)| Some((id, message_type(&kind, reason.as_deref())?)));
    messages.collect()
}

/// Compares the committed changes, the delivered messages and the clients' records. Returns the
/// number of duplicates.
fn compare(
    committed: &HashMap<Uuid, &'static str>,
    written: &[Written],
    accounts: &[Vec<Change>],
) -> usize {
    // The place of each message's first delivery.
    let mut first: HashMap<Uuid, usize> = HashMap::new();
    for (place, message) in written.iter().enumerate() {
        assert_eq!(
            committed.get(&message.id),
            Some(&&*message.kind),
            "nothing is invented: {message:?}"
        );
        first.entry(message.id).or_insert(place);
    }
    let missing: Vec<_> = committed
        .iter()
        .filter(|(id, _)| !first.contains_key(id))
        .collect();
    assert!(
        missing.is_empty(),
        "{} are missing: {missing:?}",
        missing.len()
    );

    let taken: usize = accounts.iter().map(Vec::len).sum();
    assert!(taken >= CHANGES, "{taken} changes");
    for ledger in accounts {
        let mut histories: BTreeMap<Uuid, Vec<(usize, usize)>> = BTreeMap::new();
        for change in ledger {
            let place = *first
                .get(&change.id)
                .expect("what the database has told of stays");
            let mut users = written[place].users.clone();
            users.sort();
            let mut known = change.users.clone();
            known.sort();
            assert_eq!(users, known, "{change:?}");
            for user in users {
                histories
                    .entry(user)
                    .or_default()
                    .push((place, change.step));
            }
        }
        for (user, mut history) in histories {
            history.sort_unstable();
            let turned = history
                .array_windows()
                .find(|[(_, before), (_, after)]| before > after);
            assert_eq!(
                turned, None,
                "{user} hears of a change before an earlier one, by place and step"
            );
        }
    }
    written.len() - first.len()
}
