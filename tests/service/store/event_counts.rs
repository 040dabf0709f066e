//! Each event is counted once, whatever the clock of the instance that wrote it.

use sqlx::{Executor, PgPool};
use time::OffsetDateTime;
use vestibule::events::counts::catch_up;
use vestibule::events::counts::{count, since};

use crate::support::cluster::Database;

/// Records a sign-in at one time by an instance whose clock shows another.
async fn sign_in(database: &Database, at: &str, by_its_clock: &str) {
    run!(
        &database.pool,
        "INSERT INTO events (id, kind, provider, created_at)
         VALUES ((lpad(to_hex((extract(epoch FROM $2::text::timestamptz) * 1000)::bigint), 12, '0')
                  || left(replace(gen_random_uuid()::text, '-', ''), 20))::uuid,
                 'signed_in', 'idp', $1::text::timestamptz)",
        at,
        by_its_clock
    );
}

/// Returns the overview's sign-ins in the hours that begin at 19:00 and 20:00.
async fn shown(pool: &PgPool) -> [i64; 2] {
    let counts = since(&pool.clone().into(), OffsetDateTime::UNIX_EPOCH)
        .await
        .unwrap();
    let of = |hour| {
        counts
            .iter()
            .filter(|row| row.hour.hour() == hour)
            .map(|row| row.count)
            .sum()
    };
    [of(19), of(20)]
}

#[tokio::test(flavor = "multi_thread")]
async fn events_from_clocks_ten_minutes_off_are_counted_once() {
    let database = Database::create().await;
    sign_in(&database, "2026-03-01 19:55Z", "2026-03-01 19:55Z").await;
    sign_in(&database, "2026-03-01 19:55Z", "2026-03-01 20:05Z").await;
    let early = database.at("2026-03-01T20:05:59Z").await;
    catch_up(&early.clone().into()).await.unwrap();
    assert_eq!(shown(&early).await, [2, 0]);

    sign_in(&database, "2026-03-01 20:06Z", "2026-03-01 19:56Z").await;
    let [later, still_later] = [
        database.at("2026-03-01T20:10Z").await,
        database.at("2026-03-01T20:16Z").await,
    ];
    for pool in [early, later, still_later] {
        assert_eq!(shown(&pool).await, [2, 1]);
        catch_up(&pool.clone().into()).await.unwrap();
        assert_eq!(shown(&pool).await, [2, 1]);
    }
    assert_eq!(
        database
            .count("SELECT sum(count)::bigint FROM event_counts")
            .await,
        3,
        "by now, all are"
    );
}

/// A thousand events of an hour ago.
const EVENTS: &str = "INSERT INTO events (id, kind, provider)
                      SELECT first_id(now() - interval '1 hour' + n * interval '1 second'), 'signed_in', 'idp'
                      FROM generate_series(1, 1000) AS n";
const COUNTED: &str = "SELECT coalesce(sum(count), 0)::bigint FROM event_counts";

#[tokio::test(flavor = "multi_thread")]
async fn one_statement_counts_at_most_one_step_of_events() {
    let database = Database::create().await;
    database.run(EVENTS).await;
    for counted in [400, 800, 1000] {
        assert!(count(&database.service, 400).await.unwrap());
        assert_eq!(database.count(COUNTED).await, counted);
    }
    assert!(!count(&database.service, 400).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_instances_count_each_event_once_without_waiting() {
    let database = Database::create().await;
    let pool = &database.pool;
    database.run(EVENTS).await;
    let mut other = pool.begin().await.unwrap();
    other
        .execute("SELECT FROM cursors WHERE walk = 'events' FOR UPDATE")
        .await
        .unwrap();
    assert!(!count(&database.service, 400).await.unwrap());
    assert_eq!(database.count(COUNTED).await, 0);
    other.rollback().await.unwrap();
    let counting = || async { while count(&database.service, 7).await.unwrap() {} };
    tokio::join!(counting(), counting(), counting());
    catch_up(&database.service).await.unwrap();
    assert_eq!(database.count(COUNTED).await, 1000);
}
