//! Pruning deletes expired data and keeps the rest.

use std::str::FromStr;
use std::sync::Arc;

use rocket::futures::future::join_all;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Executor};
use tokio::task::JoinHandle;
use uuid::Uuid;
use vestibule::app::migrate;
use vestibule::database::Error;
use vestibule::events::partitions;
use vestibule::prune::{Incomplete, Limits, Pruned, Step, expired_sessions, prune};

use crate::support::app::{App, LIMITS, figment};
use crate::support::cluster::Database;
use crate::support::process::eventually;
use crate::support::token::claims;

/// A user with an identity.
const ADA: &str = "INSERT INTO users (id) VALUES ('00000000-0000-7000-8000-000000000001');
     INSERT INTO identities (id, user_id, provider, subject) SELECT id, id, 'idp', 'ada' FROM users";

/// Opens a session of the only identity for each row of `sql`: its id, and its expiry.
async fn open(pool: &PgPool, sql: &str) {
    let sql = format!(
        "INSERT INTO sessions (id, expires_at, identity_id, family_hash, token_hash, client_id)
         SELECT s.id, s.expires_at, i.id, '0123456789abcdef', '0123456789abcdef', 'client' FROM identities i, ({sql}) AS s"
    );
    pool.execute(AssertSqlSafe(sql)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_sessions_and_old_events_go_and_a_live_session_stays() {
    let app = App::start().await;
    let pool = &app.database.pool;
    let live = app.sign_in(&claims("live", "live@example.com")).await;
    let next = app.refresh(&live.refresh_token()).await;
    // More sessions than one step reads, with a live one among them.
    open(
        pool,
        "SELECT first_id(now() - interval '50 days' + n * interval '1 second') AS id,
         now() - interval '7 days 1 second' + CASE n WHEN 1200 THEN interval '8 days' ELSE '0' END AS expires_at
         FROM generate_series(1, 2501) AS n",
    )
    .await;
    // More events than one batch.
    let old = "INSERT INTO events (id, kind, created_at)
         SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'signed_in', now() - interval '401 days'
         FROM generate_series(1, 2500) AS n";
    app.database.run(old).await;
    let events = app.database.count("SELECT count(*) FROM events").await;
    let limits = Limits {
        sessions_per_identity: 10_000,
        ..LIMITS
    };
    let pruned = prune(&app.database.service, limits).await.unwrap();
    assert_eq!(
        pruned,
        Pruned {
            sessions: 2500,
            events: 2500,
            ..Pruned::default()
        }
    );
    assert_eq!(
        app.database.rows().await,
        [1, 1, 2],
        "users and identities stay, and the live sessions"
    );
    assert_eq!(
        app.database.count("SELECT count(*) FROM events").await,
        events - 2500
    );
    assert_eq!(
        prune(&app.database.service, limits).await.unwrap(),
        Pruned::default()
    );
    assert_eq!(app.refresh(&next.refresh_token()).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_session_stays_to_explain_without_displacing_live_ones() {
    let app = App::start().await;
    let person = claims("ada", "ada@example.com");
    let live = app.sign_in(&person).await;
    let expired = app.sign_in(&person).await;
    let age = "UPDATE sessions SET expires_at = now() - interval '6 days 23 hours'
               WHERE id = (SELECT id FROM sessions ORDER BY id DESC LIMIT 1)";
    app.database.run(age).await;
    assert_eq!(
        prune(&app.database.service, LIMITS).await.unwrap(),
        Pruned::default()
    );
    assert_eq!(
        app.refresh(&expired.refresh_token()).await.json()["reason"],
        "session_expired"
    );
    app.sign_in(&person).await;
    let limits = Limits {
        sessions_per_identity: 2,
        ..LIMITS
    };
    let pruned = prune(&app.database.service, limits).await.unwrap();
    assert_eq!(
        pruned,
        Pruned {
            surplus_sessions: 1,
            ..Pruned::default()
        }
    );
    assert_eq!(
        app.refresh(&live.refresh_token()).await.status,
        200,
        "though it is the oldest one"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_reads_each_session_at_most_four_times_until_deletion() {
    let database = Database::create().await;
    database.pool.execute(ADA).await.unwrap();
    // 365 sessions, each last used on a different day of a year.
    open(
        &database.pool,
        "SELECT first_id(now() - n * interval '1 second') AS id,
         now() + least(n + 30, 365) * interval '1 day' AS expires_at
         FROM generate_series(0, 364) AS n",
    )
    .await;
    let pool = database.in_hours(0).await;
    let mut deleted = 0;
    let mut read = 0;
    // PostgreSQL counts the rows that a transaction reads.
    pool.execute("BEGIN; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        .await
        .unwrap();
    for day in (0..=375).step_by(5) {
        let clock = "SELECT set_config('moment.now', (transaction_timestamp() + $1 * interval '1 day')::text, true)";
        run!(&pool, clock, day);
        let fetched =
            "SELECT idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'sessions'";
        let before: i64 = value!(&pool, fetched);
        deleted += expired_sessions(&pool.clone().into(), LIMITS)
            .await
            .unwrap();
        let after: i64 = value!(&pool, fetched);
        read += after - before;
        let kept: i64 = value!(
            &pool,
            "SELECT count(*) FROM sessions WHERE expires_at > now() - interval '7 days'"
        );
        let used = (0..365).filter(|n| (n + 30).min(365) + 7 > day).count();
        assert_eq!(usize::try_from(kept).unwrap(), used, "{day}");
    }
    assert_eq!(deleted, 365);
    // The walks read a session three times, and the search for a later sign-in of the identity
    // once.
    assert!(
        (deleted..=4 * deleted).contains(&usize::try_from(read).unwrap()),
        "{read}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrently_pruning_instances_read_sessions_at_most_twice_without_waiting() {
    let database = Database::create().await;
    database.pool.execute(ADA).await.unwrap();
    open(
        &database.pool,
        "SELECT first_id(now() - interval '50 days' + n * interval '1 second') AS id,
         now() - interval '8 days' AS expires_at
         FROM generate_series(1, 12000) AS n",
    )
    .await;
    // Plans as for a large table.
    let options = PgConnectOptions::from_str(&database.url)
        .unwrap()
        .options([("enable_seqscan", "off"), ("enable_bitmapscan", "off")]);
    let instances = [(); 3].map(|()| {
        PgPoolOptions::new()
            .max_connections(1)
            .connect_lazy_with(options.clone())
    });
    let mut other = database.pool.begin().await.unwrap();
    other
        .execute("SELECT FROM cursors FOR UPDATE")
        .await
        .unwrap();
    assert_eq!(
        prune(&instances[0].clone().into(), LIMITS).await.unwrap(),
        Pruned::default()
    );
    other.rollback().await.unwrap();
    let deleted = join_all(
        instances
            .iter()
            .map(async |pool| expired_sessions(&pool.clone().into(), LIMITS).await),
    )
    .await;
    assert_eq!(
        deleted.into_iter().map(Result::unwrap).sum::<usize>(),
        12_000
    );
    for pool in instances {
        pool.close().await;
    }
    let read = eventually("what was read is counted", async || {
        let read = "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_user_tables WHERE relname = 'sessions'";
        let read = database.count(read).await;
        (read >= 12_000).then_some(read)
    });
    // The walk reads a session once, and the search for a later sign-in of the identity once.
    assert!((12_000..=24_000).contains(&read.await));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_longer_than_a_shortened_lifetime_is_pruned_after_expiry() {
    let database = Database::create().await;
    database.pool.execute(ADA).await.unwrap();
    open(
        &database.pool,
        "SELECT first_id(now() - interval '200 days' + n * interval '1 second') AS id,
         now() + CASE n WHEN 10 THEN interval '20 days' ELSE '-8 days' END AS expires_at
         FROM generate_series(1, 20) AS n",
    )
    .await;
    let limits = Limits {
        absolute_ttl: 100 * 86_400,
        ..LIMITS
    };
    for (day, deleted) in [(0, 19), (26, 0), (28, 1)] {
        let pool = database.in_hours(24 * day).await;
        assert_eq!(
            expired_sessions(&pool.clone().into(), limits)
                .await
                .unwrap(),
            deleted,
            "{day}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_leaves_each_identity_its_limit_across_batch_boundaries() {
    let app = App::start().await;
    for subject in ["few", "many", "most"] {
        app.sign_in(&claims(subject, &format!("{subject}@example.com")))
            .await;
    }
    let open = "INSERT INTO sessions (id, identity_id, family_hash, token_hash, expires_at, client_id)
                SELECT (left(first_id(now())::text, 14) || substr(gen_random_uuid()::text, 15))::uuid, i.id, uuid_send(gen_random_uuid()), uuid_send(gen_random_uuid()), now() + interval '1 day', 'client'
                FROM identities i, generate_series(1, CASE subject WHEN 'few' THEN 99 WHEN 'many' THEN 1500 ELSE 2500 END)";
    app.database.run(open).await;
    let pruned = prune(&app.database.service, LIMITS).await.unwrap();
    assert_eq!(
        pruned,
        Pruned {
            surplus_sessions: 1501 + 2501 - 200,
            ..Pruned::default()
        }
    );
    let whole = "SELECT count(*) FROM (SELECT identity_id FROM sessions GROUP BY identity_id HAVING count(*) = 100) AS whole";
    assert_eq!(app.database.count(whole).await, 3);
}

const MONTHS: &str = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass";
const NO_MONTH: &str = "DO $$ BEGIN
    EXECUTE 'DROP TABLE IF EXISTS events_' || to_char(now() AT TIME ZONE 'UTC', 'YYYY_MM');
END $$";
const OLD_MONTH: &str = "CREATE TABLE events_2001_01 PARTITION OF events
    FOR VALUES FROM ('00e3bb7e-0000-0000-0000-000000000000') TO ('00e45b2e-0000-0000-0000-000000000000')";

#[tokio::test(flavor = "multi_thread")]
async fn event_partitions_are_created_ahead_and_dropped_when_old() {
    let app = App::start().await;
    assert_eq!(
        app.database.count(MONTHS).await,
        4,
        "this month, the next two, and the default one"
    );
    app.sign_in(&claims("ada", "ada@example.com")).await;
    assert_eq!(
        app.database
            .count("SELECT count(*) FROM events_default")
            .await,
        0
    );
    // A partition that was created late takes over the events that were written meanwhile.
    app.database.run(NO_MONTH).await;
    app.sign_in(&claims("ada", "ada@example.com")).await;
    assert_eq!(
        app.database
            .count("SELECT count(*) FROM events_default")
            .await,
        1
    );
    prune(&app.database.service, LIMITS).await.unwrap();
    assert_eq!(
        app.database
            .count("SELECT count(*) FROM events_default")
            .await,
        0
    );
    app.database.run(OLD_MONTH).await;
    let many = (0..8).map(|_| prune(&app.database.service, LIMITS));
    for pruned in join_all(many).await {
        pruned.unwrap();
    }
    assert_eq!(app.database.count(MONTHS).await, 4);
    assert_eq!(app.database.count("SELECT count(*) FROM events").await, 1);
}

/// Waits until a task waits for a lock, or has ended.
async fn until_it_waits<T>(database: &Database, task: &JoinHandle<T>) {
    eventually("it waits", async || {
        (task.is_finished() || database.waiting("").await == 1).then_some(())
    })
    .await;
}

/// Starts the creation of partitions, and waits until it waits for a lock.
async fn keep_partitions(database: &Database) -> JoinHandle<Result<(), Error>> {
    let pool = database.pool.clone();
    let keeping =
        tokio::spawn(
            async move { partitions::keep(&mut pool.acquire().await.unwrap(), None).await },
        );
    until_it_waits(database, &keeping).await;
    keeping
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_partition_read_by_a_dump_delays_nothing_else() {
    let app = App::start().await;
    let pool = app.database.pool.clone();
    app.sign_in(&claims("ada", "ada@example.com")).await;
    let long_ago = "UPDATE sessions SET id = first_id(now() - interval '50 days'), expires_at = now() - interval '8 days'";
    pool.execute(long_ago).await.unwrap();
    pool.execute(OLD_MONTH).await.unwrap();
    let mut dump = pool.begin().await.unwrap();
    dump.execute("SELECT FROM events").await.unwrap();
    let pruning = tokio::spawn({
        let service = app.database.service.clone();
        async move { prune(&service, LIMITS).await }
    });
    until_it_waits(&app.database, &pruning).await;
    pool.execute("SET LOCAL lock_timeout = '900ms'; SELECT FROM events")
        .await
        .expect("a request goes on");
    let Incomplete { pruned, failed } = pruning.await.unwrap().unwrap_err();
    assert_eq!(
        pruned,
        Pruned {
            sessions: 1,
            ..Pruned::default()
        }
    );
    assert!(matches!(&failed[..], [(Step::Partitions, _)]), "{failed:?}");
    assert_eq!(app.database.count(MONTHS).await, 5);
    dump.rollback().await.unwrap();
    prune(&app.database.service, LIMITS).await.unwrap();
    assert_eq!(app.database.count(MONTHS).await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_tolerates_a_dump_blocking_partitions_but_no_wrong_schema() {
    let database = Database::create().await;
    let settings = figment(&database.url, "https://provider.example/tokeninfo");
    let mut dump = database.pool.begin().await.unwrap();
    dump.execute("SELECT FROM events").await.unwrap();
    migrate(&settings).await.unwrap();
    assert_eq!(database.count(MONTHS).await, 1, "the default one");
    dump.rollback().await.unwrap();
    let in_the_way = "DO $$ BEGIN EXECUTE to_char(now() AT TIME ZONE 'UTC', '\"CREATE TABLE events_\"YYYY_MM\" ()\"'); END $$";
    database.pool.execute(in_the_way).await.unwrap();
    assert!(migrate(&settings).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_partition_takes_over_concurrently_written_events() {
    let database = Database::create().await;
    loop {
        let mut request = database.pool.begin().await.unwrap();
        run!(
            &mut *request,
            "INSERT INTO events (id, kind) VALUES ($1, 'signed_in')",
            Uuid::now_v7()
        );
        let keeping = keep_partitions(&database).await;
        request.commit().await.unwrap();
        match keeping.await.unwrap() {
            Ok(()) => break,
            Err(Error::Unavailable(_)) => {} // The maintenance timed out before the commit.
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(
        database.count("SELECT count(*) FROM events_default").await,
        0
    );
    assert_ne!(database.count("SELECT count(*) FROM events").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_deletes_only_idle_or_old_staff_sessions() {
    let app = App::start().await;
    for sql in [
        "INSERT INTO staff (id, email, role) VALUES (gen_random_uuid(), 'staff@example.com', 'admin')",
        "INSERT INTO staff_sessions (hash, staff_id, created_at, last_used_at, ip)
         SELECT sha256(n::text::bytea), id, now() - interval '1 hour', now() - interval '31 minutes', '192.0.2.1'
         FROM staff, generate_series(1, 2000) AS n",
        "INSERT INTO staff_sessions (hash, staff_id, created_at) SELECT sha256('old'), id, now() - interval '12 hours' FROM staff",
        "INSERT INTO staff_sessions (hash, staff_id, created_at, last_used_at)
         SELECT sha256('live'), id, now() - interval '11 hours', now() - interval '29 minutes' FROM staff",
    ] {
        app.database.run(sql).await;
    }
    let pruned = prune(&app.database.service, LIMITS).await.unwrap();
    assert_eq!(
        pruned,
        Pruned {
            staff_sessions: 2001,
            ..Pruned::default()
        }
    );
    let left: Vec<bool> = app
        .database
        .values("SELECT hash = sha256('live') FROM staff_sessions")
        .await;
    assert_eq!(left, [true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_succeeds_while_a_new_partition_takes_over() {
    let app = Arc::new(App::start().await);
    let pool = app.database.pool.clone();
    for number in 0.. {
        pool.execute(NO_MONTH).await.unwrap();
        let mut request = pool.begin().await.unwrap();
        request
            .execute("SELECT FROM events_default FOR UPDATE")
            .await
            .unwrap();
        let keeping = keep_partitions(&app.database).await;
        let signing_in = tokio::spawn({
            let app = app.clone();
            let subject = format!("ada-{number}");
            async move {
                app.sign_in(&claims(&subject, &format!("{subject}@example.com")))
                    .await
            }
        });
        let both = "^-- Signs in one identity|LOCK TABLE events_default";
        eventually("both wait", async || {
            (keeping.is_finished() || app.database.waiting(both).await == 2).then_some(())
        })
        .await;
        request.commit().await.unwrap();
        let answer = signing_in.await.unwrap();
        assert_eq!(answer.status, 201, "{}", answer.text);
        match keeping.await.unwrap() {
            Ok(()) => break,
            Err(Error::Unavailable(_)) => {} // The maintenance timed out before the commit.
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(
        app.database
            .count("SELECT count(*) FROM events_default")
            .await,
        0
    );
}

/// A row that is due in each table that pruning empties, and a deleted user who is still in an
/// event.
const DUE: [&str; 9] = [
    ADA,
    "INSERT INTO events (kind, email) VALUES ('sign_in_refused', 'ada@example.com')",
    "INSERT INTO pending_erasures (field, value, requested_at) VALUES ('email', 'ada@example.com', now())",
    "INSERT INTO deleted_identities (hash, deleted_at) VALUES ('gone', now() - interval '26 hours')",
    "INSERT INTO staff (id, email, role) VALUES (gen_random_uuid(), 'staff@example.com', 'admin')",
    "INSERT INTO staff_sessions (hash, staff_id, created_at) SELECT 'old', id, now() - interval '1 day' FROM staff",
    "INSERT INTO staff_sign_ins (state_hash, browser_hash, nonce, code_verifier, next, created_at)
     VALUES ('old', 'old', '', '', '', now() - interval '1 day')",
    "INSERT INTO provider_events (provider, message_id, received_at) VALUES ('idp', 'old', now() - interval '91 days')",
    "INSERT INTO webhook_messages (webhook, message_id, type, user_id, facts, next_attempt_at, parked_at)
     VALUES ('old', gen_random_uuid(), 'user.updated', gen_random_uuid(), '{}', 'infinity', now() - interval '31 days')",
];
/// The tables of these rows, which have no other rows, and the steps that empty them.
const EMPTIED: [(&str, Step); 7] = [
    ("pending_erasures", Step::Erasure),
    ("deleted_identities", Step::DeletedIdentities),
    ("sessions", Step::Sessions),
    ("staff_sessions", Step::StaffSessions),
    ("staff_sign_ins", Step::StaffSignIns),
    ("provider_events", Step::ProviderEvents),
    ("webhook_messages", Step::WebhookMessages),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_fails_keeps_no_other_step_away() {
    for (locked, step) in EMPTIED {
        let database = Database::create().await;
        for sql in DUE {
            database.pool.execute(sql).await.unwrap();
        }
        open(
            &database.pool,
            "SELECT first_id(now() - interval '50 days') AS id, now() - interval '8 days' AS expires_at",
        )
        .await;
        let mut other = database.pool.begin().await.unwrap();
        other
            .execute(AssertSqlSafe(format!(
                "LOCK TABLE {locked} IN ACCESS EXCLUSIVE MODE"
            )))
            .await
            .unwrap();
        let options = PgConnectOptions::from_str(&database.url)
            .unwrap()
            .options([("lock_timeout", "50ms")]);
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .connect_with(options)
            .await
            .unwrap();
        let Incomplete { failed, .. } = prune(&pool.clone().into(), LIMITS).await.unwrap_err();
        assert!(
            failed.iter().any(|(failed, _)| *failed == step),
            "{locked}: {failed:?}"
        );
        other.rollback().await.unwrap();
        for (table, _) in EMPTIED {
            let left: i64 = value!(
                &pool,
                AssertSqlSafe(format!("SELECT count(*) FROM {table}"))
            );
            assert_eq!(
                left,
                i64::from(table == locked),
                "{table}, while {locked} is locked"
            );
        }
        let named = database
            .count("SELECT count(*) FROM events WHERE email IS NOT NULL")
            .await;
        assert_eq!(
            named,
            i64::from(locked == "pending_erasures"),
            "while {locked} is locked"
        );
    }
}
