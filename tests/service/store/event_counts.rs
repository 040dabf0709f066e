//! Each event is counted once, whatever the clock of the instance that wrote it.

use std::str::FromStr;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use time::OffsetDateTime;
use vestibule::service::event_counts::catch_up;
use vestibule::store::event_counts::{count, since};

use crate::support::cluster::Database;

/// The database at that time: whatever asks it for `now()` is told so.
async fn at(database: &Database, now: &str) -> PgPool {
    let options = PgConnectOptions::from_str(&database.url).unwrap();
    let options = options.options([("search_path", "moment,pg_catalog,public"), ("moment.now", now)]);
    PgPoolOptions::new().max_connections(1).connect_with(options).await.unwrap()
}

/// A sign-in that is written at one time by an instance whose clock shows another.
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

/// What the overview shows: how many sign-ins in the hours that begin at 19:00 and 20:00.
async fn shown(pool: &PgPool) -> [i64; 2] {
    let counts = since(pool, OffsetDateTime::UNIX_EPOCH).await.unwrap();
    let of = |hour| counts.iter().filter(|row| row.hour.hour() == hour).map(|row| row.count).sum();
    [of(19), of(20)]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_instance_writes_whose_clock_is_ten_minutes_off_is_counted_once() {
    let database = Database::create().await;
    for sql in [
        "CREATE SCHEMA moment",
        "CREATE FUNCTION moment.now() RETURNS timestamptz LANGUAGE sql STABLE
         AS $$ SELECT current_setting('moment.now')::timestamptz $$",
        "UPDATE event_counts_until SET until = '2026-03-01 18:00Z'",
    ] {
        sqlx::query(sql).execute(&database.pool).await.unwrap();
    }
    sign_in(&database, "2026-03-01 19:55Z", "2026-03-01 19:55Z").await;
    sign_in(&database, "2026-03-01 19:55Z", "2026-03-01 20:05Z").await;
    let early = at(&database, "2026-03-01T20:05:59Z").await;
    catch_up(&early).await.unwrap();
    assert_eq!(shown(&early).await, [2, 0]);

    sign_in(&database, "2026-03-01 20:06Z", "2026-03-01 19:56Z").await;
    let [hour_later, two_later] =
        [at(&database, "2026-03-01T21:06Z").await, at(&database, "2026-03-01T22:06Z").await];
    for pool in [early, hour_later, two_later] {
        assert_eq!(shown(&pool).await, [2, 1]);
        catch_up(&pool).await.unwrap();
        assert_eq!(shown(&pool).await, [2, 1]);
    }
    assert_eq!(database.count("SELECT sum(count)::bigint FROM event_counts").await, 3, "by now, all are");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_statement_counts_one_hour_however_many_are_not_counted() {
    let database = Database::create().await;
    let behind = "UPDATE event_counts_until SET until = until - interval '3 hours'";
    sqlx::query(behind).execute(&database.pool).await.unwrap();
    assert!(count(&database.pool).await.unwrap());
    let still_behind = "SELECT count(*) FROM event_counts_until WHERE until <= now() - interval '2 hours'";
    assert_eq!(database.count(still_behind).await, 1);
}
