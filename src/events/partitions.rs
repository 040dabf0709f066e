//! Monthly partitions of `events`, created ahead of time and dropped once all of their events are
//! too old.
//!
//! Ids are UUIDs of version 7, so a month is a range of ids. Events outside all partitions are in
//! `events_default`: events of an instance with a wrong clock, and events of months before the
//! service ran.

use std::sync::Once;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Executor};
use time::{Date, Duration, Month, OffsetDateTime, Time};
use uuid::Uuid;

use crate::database::error::Error;
use crate::database::migrations::LOCK_TIMEOUT;

/// Number of future months with a partition.
const AHEAD: i32 = 2;
/// Key of the advisory lock by which one instance at a time maintains the partitions ("vest" in
/// ASCII).
const LOCK: i64 = 0x7665_7374;

/// A month, counted from the year 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Months(i32);

impl Months {
    fn of(date: Date) -> Self {
        Self(date.year() * 12 + i32::from(u8::from(date.month())) - 1)
    }

    fn begin(self) -> OffsetDateTime {
        let month = u8::try_from(self.0.rem_euclid(12) + 1)
            .ok()
            .and_then(|month| Month::try_from(month).ok());
        let month = month.expect("1 to 12 is a month");
        let date = Date::from_calendar_date(self.0.div_euclid(12), month, 1);
        date.expect("each month has a first day")
            .with_time(Time::MIDNIGHT)
            .assume_utc()
    }

    fn partition(self) -> String {
        format!(
            "events_{:04}_{:02}",
            self.0.div_euclid(12),
            self.0.rem_euclid(12) + 1
        )
    }

    fn is_before(self, time: OffsetDateTime) -> bool {
        Self(self.0 + 1).begin() <= time
    }

    /// Parses the name of a partition. Returns `None` if it does not name a month.
    fn parse(partition: &str) -> Option<Self> {
        let (year, month) = partition.strip_prefix("events_")?.split_once('_')?;
        let (year, month): (i32, i32) = (year.parse().ok()?, month.parse().ok()?);
        (1..=12)
            .contains(&month)
            .then_some(Self(year * 12 + month - 1))
    }
}

/// Creates missing partitions, and drops those older than `retention_days`, if given. While one
/// instance does this, the others return at once.
///
/// A role that does not own `events` changes nothing: new events go to the default partition, from
/// where the next call by the owner moves them. After an error, nothing was changed. It is
/// [`Error::Unavailable`] while another transaction holds the locks.
pub async fn keep(connection: &mut PgConnection, retention_days: Option<u32>) -> Result<(), Error> {
    let mut transaction = connection.begin().await?;
    let turn = sqlx::query!(
        r#"SELECT pg_try_advisory_xact_lock($1) AS "taken!", now() AS "now!",
                  pg_has_role(relowner, 'USAGE') AND has_schema_privilege(relnamespace, 'CREATE') AS "may!"
           FROM pg_class WHERE oid = 'events'::regclass"#,
        LOCK,
    );
    let turn = turn.fetch_one(&mut *transaction).await?;
    if !turn.taken {
        return Ok(transaction.rollback().await?);
    }
    let there = sqlx::query_scalar!(
        r#"SELECT c.relname::text AS "name!" FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
           WHERE i.inhparent = 'events'::regclass"#
    );
    let there: Vec<Months> = there
        .fetch_all(&mut *transaction)
        .await?
        .iter()
        .filter_map(|name| Months::parse(name))
        .collect();
    let this = Months::of(turn.now.date());
    let missing = (this.0..=this.0 + AHEAD)
        .map(Months)
        .filter(|month| !there.contains(month));
    let missing: Vec<Months> = missing.collect();
    let kept = retention_days.map(|days| turn.now - Duration::days(i64::from(days)));
    let old: Vec<Months> = there
        .into_iter()
        .filter(|month| kept.is_some_and(|kept| month.is_before(kept)))
        .collect();
    let due = !missing.is_empty() || !old.is_empty();
    if due && !turn.may {
        warn_once();
        return Ok(transaction.rollback().await?);
    }
    transaction.execute(LOCK_TIMEOUT).await?;
    // Dropping a partition locks all of `events`, and adding one locks the default partition. This
    // is also the order in which readers lock them: in the other order, it and a reader could
    // deadlock.
    for month in old {
        transaction
            .execute(AssertSqlSafe(format!("DROP TABLE {}", month.partition())))
            .await?;
    }
    for month in missing {
        let name = month.partition();
        let from = first_id(month.begin());
        let to = first_id(Months(month.0 + 1).begin());
        // The rows of its range move from the default partition, or PostgreSQL would refuse to
        // attach it. The lock for the attachment comes first, so that no other transaction adds
        // rows, or deadlocks with this one over a row. `LIKE` has locked `events` before it.
        let sql = format!(
            "CREATE TABLE {name} (LIKE events INCLUDING DEFAULTS);
             LOCK TABLE events_default IN ACCESS EXCLUSIVE MODE;
             WITH moved AS (DELETE FROM events_default WHERE id >= '{from}' AND id < '{to}' RETURNING *)
             INSERT INTO {name} SELECT * FROM moved;
             ALTER TABLE events ATTACH PARTITION {name} FOR VALUES FROM ('{from}') TO ('{to}')"
        );
        transaction.execute(AssertSqlSafe(sql)).await?;
    }
    Ok(transaction.commit().await?)
}

/// Logs once that the role may not change the partitions. The service would say it every ten
/// minutes otherwise.
fn warn_once() {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        tracing::warn!(
            "partitions of `events` are due, and this role may not create or drop them; run `vestibule migrate` and \
             `vestibule prune` as the role that owns the schema. Until then new events are in `events_default`"
        );
    });
}

/// Returns the lowest id that may be generated at a time (UUID version 7, RFC 9562 §5.7).
pub fn first_id(time: OffsetDateTime) -> Uuid {
    let milliseconds = u128::try_from(time.unix_timestamp_nanos() / 1_000_000).unwrap_or(0);
    Uuid::from_u128((milliseconds & 0xffff_ffff_ffff) << 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retention_counts_a_month_as_over_when_the_next_begins() {
        for (partition, year, next) in [
            ("events_2026_06", 2026, Month::July),
            ("events_2026_12", 2027, Month::January),
            ("events_2028_02", 2028, Month::March),
        ] {
            let month = Months::parse(partition).unwrap();
            let over = Date::from_calendar_date(year, next, 1)
                .unwrap()
                .midnight()
                .assume_utc();
            assert!(
                month.is_before(over) && month.is_before(over + Duration::NANOSECOND),
                "{partition}"
            );
            assert!(!month.is_before(over - Duration::NANOSECOND), "{partition}");
        }
    }

    #[test]
    fn a_month_is_read_from_the_name_of_its_partition() {
        for month in (1970 * 12..2200 * 12).map(Months) {
            assert_eq!(Months::parse(&month.partition()), Some(month));
            assert_eq!(Months::of(month.begin().date()), month);
            assert!(Months(month.0 + 1).begin() > month.begin());
        }
        for other in [
            "events_default",
            "events_2026_13",
            "events_2026_00",
            "events_x_01",
            "users",
        ] {
            assert_eq!(Months::parse(other), None, "{other}");
        }
    }
}
