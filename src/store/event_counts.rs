//! How often what happened, hour by hour.

use sqlx::PgPool;
use time::OffsetDateTime;

use super::Error;

/// What happened in an hour, counted.
#[derive(Debug, Clone)]
pub struct CountRow {
    /// When the hour began.
    pub hour: OffsetDateTime,
    /// What.
    pub kind: String,
    /// Why, for refusals; empty for the rest.
    pub reason: String,
    /// At which provider; empty when at none.
    pub provider: String,
    /// How often.
    pub count: i64,
}

/// Counts some of the hours that are over and not counted; see `event_counts.sql`. Answers whether
/// there was one.
///
/// # Errors
/// Nothing was counted; see [`Error`].
pub async fn count(pool: &PgPool) -> Result<bool, Error> {
    Ok(sqlx::query_file!("src/store/event_counts.sql").execute(pool).await?.rows_affected() > 0)
}

/// What happened since then: the hours that are counted, and what has happened since the last of them.
///
/// # Errors
/// See [`Error`].
pub async fn since(pool: &PgPool, from: OffsetDateTime) -> Result<Vec<CountRow>, Error> {
    let rows = sqlx::query_as!(
        CountRow,
        r#"SELECT hour AS "hour!", kind AS "kind!", reason AS "reason!", provider AS "provider!", count AS "count!"
           FROM event_counts WHERE hour >= $1
           UNION ALL
           SELECT date_trunc('hour', created_at, 'UTC'), kind, coalesce(reason, ''), coalesce(provider, ''), count(*)
           FROM events
           WHERE id >= (SELECT (lpad(to_hex((extract(epoch FROM until) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
                        FROM event_counts_until)
                 AND created_at >= $1
                 AND kind IN ('signed_in', 'user_created', 'identity_linked', 'sign_in_refused')
           GROUP BY 1, 2, 3, 4"#,
        from,
    );
    Ok(rows.fetch_all(pool).await?)
}
