//! Query plans: no page scans a whole table, whether list, search or user page, and no statement
//! reads finished rows again.

use std::str::FromStr;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, Executor, PgConnection, PgPool};
use strum::VariantArray;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;
use vestibule::accounts::{identities, merging, seed, sessions};
use vestibule::admin::api::store as backend;
use vestibule::admin::lists::events::Filter;
use vestibule::admin::lists::users::search::search;
use vestibule::admin::lists::users::{Cursor, Days, Filters, Sort, Status, Times, count};
use vestibule::admin::lists::{events as event_log, person as directory, users as listing};
use vestibule::admin::staff::sign_in::store::{Pending, begin};
use vestibule::database::migrations;
use vestibule::domain::actor::{Actor, Origin};
use vestibule::domain::email::Email;
use vestibule::events::counts;
use vestibule::events::erasure::erase;
use vestibule::events::kind::EventCategory;
use vestibule::provider_tokens::store::{self as provider_tokens, Summary};
use vestibule::prune::store as prune;
use vestibule::webhooks::store as webhooks;

use crate::support::cluster::Database;

const PEOPLE: i32 = 20_000;
const PAGE: usize = 50;

/// A connection in one transaction, for which PostgreSQL counts the sequential scans
/// (`pg_stat_xact_user_tables`).
struct Watched {
    pool: PgPool,
    service: vestibule::database::Database,
    seen: i64,
    wrong: Vec<String>,
}

impl Watched {
    async fn connect(url: &str) -> Self {
        let options = PgPoolOptions::new()
            .max_connections(1)
            .after_connect(|connection, _| {
                Box::pin(async move { connection.execute("BEGIN").await.map(drop) })
            });
        let pool = options
            .connect_with(PgConnectOptions::from_str(url).unwrap())
            .await
            .unwrap();
        Self {
            service: pool.clone().into(),
            pool,
            seen: 0,
            wrong: Vec::new(),
        }
    }

    /// Records the statement that just ran if it scanned a whole table.
    async fn check(&mut self, what: String) {
        let scans: i64 = value!(&self.pool, "SELECT coalesce(sum(seq_scan), 0)::bigint FROM pg_stat_xact_user_tables
             WHERE relname IN ('users', 'identities', 'sessions', 'notes') OR relname LIKE 'events%' AND relname <> 'events_default'");
        if scans > self.seen {
            self.wrong.push(what);
        }
        self.seen = scans;
    }

    /// Returns the index entries and blocks read so far, including entries of deleted rows.
    async fn read(&self) -> i64 {
        value!(
            &self.pool,
            "SELECT sum(pg_stat_get_xact_blocks_fetched(oid)
                        + CASE relkind WHEN 'i' THEN pg_stat_get_xact_tuples_returned(oid) ELSE 0 END)::bigint
             FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')"
        )
    }

    /// Runs a statement, and returns the number of entries and blocks that it reads.
    async fn cost<T>(&self, statement: impl Future<Output = T>) -> (i64, T) {
        let before = self.read().await;
        let done = statement.await;
        (self.read().await - before, done)
    }
}

async fn filled() -> Database {
    let database = Database::bare().await;
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    let trigrams = "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_trgm'";
    if database.count(trigrams).await > 0 {
        connection
            .execute("CREATE EXTENSION pg_trgm")
            .await
            .unwrap();
    }
    migrations::apply(&mut connection).await.unwrap();
    seed::add_users(&database.service, PEOPLE, Some(0.1), |_| ())
        .await
        .unwrap();
    database
}

fn all_filters() -> Vec<Filters> {
    let today = OffsetDateTime::from_unix_timestamp(vestibule::clock::now())
        .unwrap()
        .date();
    let days = |from, to| Days {
        from: Some(today - Duration::days(from)),
        to: Some(today - Duration::days(to)),
    };
    let times = |from, to| Times {
        from: Some((today - Duration::days(from)).midnight().assume_utc()),
        to: Some((today - Duration::days(to)).midnight().assume_utc()),
    };
    let none = Filters::default;
    let mut all = vec![none()];
    for provider in ["google", "facebook", "line", "nobody"] {
        let provider = Some(provider.to_owned());
        all.push(Filters {
            provider: provider.clone(),
            ..none()
        });
        all.push(Filters {
            provider: provider.clone(),
            status: Some(Status::Disabled),
            ..none()
        });
        all.push(Filters {
            provider: provider.clone(),
            created: times(500, 300),
            ..none()
        });
        all.push(Filters {
            provider,
            last_seen: days(30, 0),
            ..none()
        });
    }
    all.extend(Status::VARIANTS.iter().map(|status| Filters {
        status: Some(*status),
        ..none()
    }));
    for (from, to) in [(1, 0), (30, 0), (500, 300), (1000, 900)] {
        all.push(Filters {
            created: times(from, to),
            ..none()
        });
        all.push(Filters {
            last_seen: days(from, to),
            ..none()
        });
    }
    all
}

/// Returns true for at most one filter in the order of creation. Such a page costs the same
/// wherever its matches are. Filters by the day last seen do not count: their index has another
/// order, so that the planner may prefer to skip newer users.
fn is_usual(filters: &Filters, sort: Sort) -> bool {
    let given = [
        filters.provider.is_some(),
        filters.status.is_some(),
        filters.created != Times::default(),
    ];
    let by_creation = matches!(sort, Sort::Newest | Sort::Oldest);
    by_creation
        && filters.last_seen == Days::default()
        && given.iter().filter(|given| **given).count() < 2
}

#[tokio::test(flavor = "multi_thread")]
async fn no_statement_of_the_pages_scans_a_whole_table() {
    let database = filled().await;
    let mut watched = Watched::connect(&database.url).await;
    let pool = watched.pool.clone();
    sqlx::query("SELECT count(*) FROM users")
        .execute(&pool)
        .await
        .unwrap();
    watched.check("everything".into()).await;
    assert_eq!(watched.wrong, ["everything"], "a scan is noticed");
    watched.wrong.clear();

    lists(&mut watched).await;
    let providers = listing::providers(&watched.service).await.unwrap();
    watched.check("providers".into()).await;
    let user: Uuid = value!(&database.pool, "SELECT i.user_id FROM sessions s JOIN identities i ON i.id = s.identity_id JOIN users u ON u.id = i.user_id
         WHERE u.email IS NOT NULL ORDER BY s.id LIMIT 1");
    let email = directory::user(&watched.service, user)
        .await
        .unwrap()
        .unwrap()
        .user
        .email
        .unwrap();
    watched.check("user".into()).await;
    let subject = identities::of_user(&watched.service, user).await.unwrap()[0]
        .subject
        .clone();
    watched.check("identities of a user".into()).await;
    sessions::of_user(&watched.service, user).await.unwrap();
    watched.check("sessions of a user".into()).await;
    directory::alike(&watched.service, user, 5).await.unwrap();
    watched.check("others like a user".into()).await;
    directory::notes(&watched.service, user).await.unwrap();
    watched.check("notes on a user".into()).await;
    sessions::why_over(&watched.service, Uuid::now_v7())
        .await
        .unwrap();
    watched
        .check("why the session of a user who is no more is over".into())
        .await;
    event_log::of_user(&watched.service, user, 100)
        .await
        .unwrap();
    watched.check("events of a user".into()).await;
    let (cost, claiming) = watched
        .cost(event_log::claiming(&watched.service, user, 20))
        .await;
    assert!(
        claiming.is_ok() && cost < 100,
        "{cost} entries and blocks for the events with an address"
    );
    for filter in audits(user, &email) {
        let events = event_log::page(&watched.service, &filter, None, 100)
            .await
            .unwrap()
            .0;
        watched.check(format!("audit of {filter:?}")).await;
        if let Some(last) = events.last() {
            event_log::page(&watched.service, &filter, Some(last.id), 100)
                .await
                .unwrap();
            watched.check(format!("second page of {filter:?}")).await;
        }
    }
    backend_reads(&mut watched, user, &email, &subject).await;
    while counts::count(&watched.service, 2_000).await.unwrap() {
        watched.check("events that are counted".into()).await;
    }
    counts::since(&watched.service, OffsetDateTime::UNIX_EPOCH)
        .await
        .unwrap();
    watched.check("overview".into()).await;
    for (field, value) in [
        ("email", email.clone()),
        ("actor", email.clone()),
        ("user_id", user.to_string()),
    ] {
        run!(
            &pool,
            "INSERT INTO pending_erasures (field, value, requested_at) VALUES ($1, $2, now())",
            field,
            value
        );
        while erase(&watched.service, None).await.unwrap().is_some() {
            watched
                .check(format!("a trace that is erased, {field}"))
                .await;
        }
    }
    let id = user.to_string();
    let texts = [
        "m",
        "maria",
        "Zoë L",
        "lovelace",
        "lovelace ada",
        "li wei",
        "examp",
        "old-comp",
        "no such text",
        "%",
        &id,
        &email,
        &subject,
    ];
    for text in texts {
        for filters in all_filters().into_iter().step_by(3) {
            let mut start = None;
            for page in ["first", "second", "third"] {
                let found = search(
                    &watched.service,
                    text,
                    &providers,
                    &filters,
                    start.as_ref(),
                    PAGE,
                )
                .await
                .unwrap();
                watched
                    .check(format!("{page} page of a search for {text}, {filters:?}"))
                    .await;
                start = found.after;
                if start.is_none() {
                    break;
                }
            }
        }
    }
    assert!(watched.wrong.is_empty(), "{:#?}", watched.wrong);
}

/// Reads each filter in each order, page after page.
async fn lists(watched: &mut Watched) {
    for filters in all_filters() {
        count::estimate(&watched.service, &filters).await.unwrap();
        watched.check(format!("estimate {filters:?}")).await;
        for &sort in Sort::VARIANTS {
            let mut cursor: Option<Cursor> = None;
            for page in ["first", "second", "later", "last"] {
                // A long page reaches deep into the list.
                let size = if page == "later" { 2_000 } else { PAGE };
                let (cost, found) = watched
                    .cost(listing::page(
                        &watched.service,
                        &filters,
                        sort,
                        cursor.as_ref(),
                        size,
                    ))
                    .await;
                let found = found.unwrap();
                watched
                    .check(format!("{page} page, {sort:?}, {filters:?}"))
                    .await;
                if is_usual(&filters, sort) && size == PAGE && cost > 5_000 {
                    watched
                        .wrong
                        .push(format!("{cost} for the {page} page, {sort:?}, {filters:?}"));
                }
                if let Some(before) = &found.before {
                    listing::page(&watched.service, &filters, sort, Some(before), PAGE)
                        .await
                        .unwrap();
                    watched
                        .check(format!("before {page} page, {sort:?}, {filters:?}"))
                        .await;
                }
                let Some(after) = found.after else { break };
                cursor = Some(after);
            }
        }
    }
}

/// Runs the reads and creations of the product's backend, beside the statements of the pages.
async fn backend_reads(watched: &mut Watched, user: Uuid, email: &str, subject: &str) {
    let page = listing::page(
        &watched.service,
        &Filters::default(),
        Sort::Newest,
        None,
        100,
    )
    .await
    .unwrap();
    watched.check("a page of a hundred".into()).await;
    let ids: Vec<_> = page.users.iter().map(|user| user.id).collect();
    // The first executions of a prepared statement can have custom plans.
    for execution in 1..=8 {
        assert_eq!(
            merging::users(&watched.service, &ids).await.unwrap().len(),
            100
        );
        watched
            .check(format!("users with identities, execution {execution}"))
            .await;
        let address = Email::parse(email).unwrap();
        assert_eq!(
            backend::by_email(&watched.service, &address).await.unwrap(),
            Some(user)
        );
        watched
            .check(format!("a user by address, execution {execution}"))
            .await;
        let provider =
            &merging::users(&watched.service, &[user]).await.unwrap()[0].identities[0].provider;
        assert_eq!(
            identities::owner(&watched.service, provider, subject)
                .await
                .unwrap(),
            Some(user)
        );
        watched
            .check(format!("a user by identity, execution {execution}"))
            .await;
        merging::merged_into(&watched.service, Uuid::now_v7())
            .await
            .unwrap();
        watched
            .check(format!("the user who remains, execution {execution}"))
            .await;
        let identity = backend::NewIdentity {
            provider: "google".into(),
            subject: format!("new-{execution}"),
            email: None,
            email_verified: false,
        };
        let email = Email::parse(&format!("new-{execution}@example.com"));
        let new = backend::NewUser {
            email,
            identities: vec![identity],
            ..Default::default()
        };
        let by = Actor::Operator("tests");
        let created = backend::create(&watched.service, &new, by, &Origin::default())
            .await
            .unwrap();
        watched
            .check(format!("a new user, execution {execution}"))
            .await;
        assert!(matches!(created, backend::Created::Done(_)));
    }
    let mut after = Uuid::nil();
    for part in ["first", "second", "third"] {
        let events = backend::events_after(&watched.service, after, 1_000)
            .await
            .unwrap();
        watched.check(format!("{part} part of the feed")).await;
        assert_eq!(events.len(), 1_000);
        after = events[999].id;
    }
    let events = backend::events_of(&watched.service, user, Uuid::max(), 2)
        .await
        .unwrap();
    watched
        .check("events of a user, for a backend".into())
        .await;
    backend::events_of(&watched.service, user, events[0].id, 100)
        .await
        .unwrap();
    watched
        .check("further events of a user, for a backend".into())
        .await;
}

/// Returns the filters of the audit: each choice, and each field.
fn audits(user: Uuid, email: &str) -> Vec<Filter> {
    let mut filters: Vec<_> = EventCategory::VARIANTS
        .iter()
        .map(|&what| Filter {
            what,
            ..Filter::default()
        })
        .collect();
    let none = Filter::default();
    filters.extend([
        Filter {
            email: Some(email.to_owned()),
            ..none.clone()
        },
        Filter {
            email: Some("nobody@example.com".into()),
            ..none.clone()
        },
        Filter {
            user: Some(user),
            ..none.clone()
        },
        Filter {
            actor: Some("grace@example.com".into()),
            ..none.clone()
        },
        Filter {
            request: Some("0123456789abcdef".into()),
            ..none.clone()
        },
        Filter {
            request: Some(user.to_string()),
            ..none.clone()
        },
        Filter {
            reason: Some("token_expired".into()),
            what: EventCategory::Refused,
            ..none.clone()
        },
        Filter {
            from: Some(OffsetDateTime::UNIX_EPOCH),
            to: Some(OffsetDateTime::UNIX_EPOCH),
            ..none
        },
    ]);
    filters
}

/// Rows that are processed while a dump runs, which keeps their old versions in tables and indexes.
const GONE: [&str; 2] = [
    "INSERT INTO webhooks (name, events) VALUES ('shop', '{user.merged}');
     INSERT INTO webhook_messages (webhook, message_id, user_id, other_id, type, facts, next_attempt_at)
     SELECT 'shop', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'user.merged', '{}', now() - interval '1 hour'
     FROM generate_series(1, 20000);
     INSERT INTO provider_tokens (id, provider, subject, client_id, state, sealed, due_at, next_attempt_at)
     SELECT gen_random_uuid(), 'apple', n, 'app', 'due', '', now(), now() - interval '1 hour' FROM generate_series(1, 20000) n;
     INSERT INTO staff_sign_ins (state_hash, browser_hash, nonce, code_verifier, next, created_at)
     SELECT sha256(n::text::bytea), '', '', '', '', now() - interval '1 hour' FROM generate_series(1, 20000) n;
     INSERT INTO pending_erasures (field, value, requested_at) SELECT 'email', n, now() FROM generate_series(1, 20000) n",
    "DELETE FROM webhook_messages; DELETE FROM provider_tokens; DELETE FROM staff_sign_ins; DELETE FROM pending_erasures",
];

#[tokio::test(flavor = "multi_thread")]
async fn what_was_dealt_with_during_a_dump_is_not_read_again() {
    let database = Database::create().await;
    let mut dump = PgConnection::connect(&database.url).await.unwrap();
    dump.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM users")
        .await
        .unwrap();
    for sql in GONE {
        database.pool.execute(sql).await.unwrap();
    }
    let watched = Watched::connect(&database.url).await;
    let pool = &watched.pool;
    let (_, queues) = watched
        .cost(webhooks::summaries(&watched.service, &[]))
        .await;
    let queues = queues.unwrap();
    let (everything, tokens) = watched
        .cost(provider_tokens::summaries(
            &watched.service,
            &[Summary::empty("apple")],
        ))
        .await;
    assert!(everything > 20_000, "{everything}: a walk is noticed");
    let tokens = tokens.unwrap();
    let pending = Pending {
        nonce: String::new(),
        code_verifier: String::new(),
        next: String::new(),
    };
    let user = Uuid::nil();
    let traces = [Uuid::nil().to_string(), "ada@example.com".to_owned()];
    let first = sqlx::query("SELECT first_webhook_message('shop', $1)").bind(user);
    let mut costs = vec![
        (
            "a user's first message",
            watched.cost(first.execute(pool)).await.0,
        ),
        (
            "the queues",
            watched
                .cost(webhooks::summaries(&watched.service, &queues))
                .await
                .0,
        ),
        (
            "due messages",
            watched
                .cost(webhooks::claim(
                    &watched.service,
                    "shop",
                    queues[0].since,
                    16,
                    60,
                ))
                .await
                .0,
        ),
        (
            "the queues of tokens",
            watched
                .cost(provider_tokens::summaries(&watched.service, &tokens))
                .await
                .0,
        ),
        (
            "due tokens",
            watched
                .cost(provider_tokens::claim(
                    &watched.service,
                    "apple",
                    tokens[0].since,
                    8,
                    60,
                ))
                .await
                .0,
        ),
        (
            "a sign-in of staff",
            watched
                .cost(begin(&watched.service, &[0; 32], &[0; 32], &pending))
                .await
                .0,
        ),
        (
            "the traces of a deleted user",
            watched.cost(erase(&watched.service, Some(&traces))).await.0,
        ),
    ];
    costs.retain(|(_, cost)| *cost > 100);
    assert!(
        costs.is_empty(),
        "entries and blocks that were read: {costs:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_pruning_batch_skips_rows_that_earlier_batches_deleted() {
    let database = Database::create().await;
    let mut dump = PgConnection::connect(&database.url).await.unwrap();
    dump.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM users")
        .await
        .unwrap();
    let old = "INSERT INTO provider_events (provider, message_id, received_at)
               SELECT 'idp', n, now() - interval '1 year' + n * interval '1 second' FROM generate_series(1, 5000) n;
               INSERT INTO staff_sign_ins (state_hash, browser_hash, nonce, code_verifier, next, created_at)
               SELECT sha256(message_id::bytea), '', '', '', '', received_at FROM provider_events;
               INSERT INTO events (id, kind, created_at)
               SELECT lpad(message_id, 32, '0')::uuid, 'signed_in', now() - interval '2 years' FROM provider_events";
    database.pool.execute(old).await.unwrap();
    let watched = Watched::connect(&database.url).await;
    let pool = &watched.pool;
    // Plans as for a large table.
    pool.execute("SET enable_seqscan = off; SET enable_sort = off; SET enable_hashjoin = off")
        .await
        .unwrap();
    let mut froms = [OffsetDateTime::UNIX_EPOCH; 2];
    let mut after = Uuid::nil();
    let mut costs = Vec::new();
    for _ in 0..5 {
        let batches = [
            watched
                .cost(prune::provider_events(&watched.service, froms[0], 1000))
                .await,
            watched
                .cost(prune::staff_sign_ins(&watched.service, froms[1], 1000))
                .await,
        ];
        let (cost, events) = watched
            .cost(prune::events(&watched.service, after, 400, 1000))
            .await;
        let (deleted, last) = events.unwrap();
        after = last.unwrap();
        assert_eq!(deleted, 1000);
        let mut each = vec![cost];
        for ((cost, batch), from) in batches.into_iter().zip(&mut froms) {
            let (deleted, last) = batch.unwrap();
            assert_eq!(deleted, 1000);
            *from = last.unwrap();
            each.push(cost);
        }
        costs.push(each);
    }
    for (first, last) in costs[0].iter().zip(&costs[4]) {
        assert!(*last < first + 1000, "{costs:?}");
    }
}
