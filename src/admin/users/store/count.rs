//! Numbers of users: an estimate to show, and bounded counts to decide by.

use serde_json::Value;
use sqlx::{PgPool, Postgres, QueryBuilder};

use super::filter::Filters;
use crate::store::Error;
use crate::store::unprepared::unprepared;

/// Returns the estimated number of users that pass the filters: the planner's, from PostgreSQL's statistics. Pages have
/// to call it an estimate. Counting, even to ten thousand, is slow where two common conditions are rarely met together.
///
/// # Errors
/// See [`Error`].
pub async fn estimate(pool: &PgPool, filters: &Filters) -> Result<u64, Error> {
    let mut sql = QueryBuilder::new("EXPLAIN (FORMAT JSON) SELECT FROM users u WHERE true");
    filters.push(&mut sql, None);
    let plan: Value =
        sql.build_query_scalar().persistent(false).fetch_one(&mut *unprepared(pool).await?).await?;
    let rows = plan.pointer("/0/Plan/Plan Rows").and_then(Value::as_u64);
    rows.ok_or_else(|| Error::unexpected("plan"))
}

/// Returns `true` if the provider has at most `limit` identities. It reads one index, and no further than that.
pub(super) async fn is_small_provider(pool: &PgPool, provider: &str, limit: i64) -> Result<bool, Error> {
    let mut sql = QueryBuilder::new("SELECT 1 FROM identities i WHERE i.provider = ");
    sql.push_bind(provider.to_owned()).push(" ORDER BY i.user_id");
    ends_within(pool, sql, limit).await
}

/// Returns `true` if at most `limit` users were last seen in those days.
pub(super) async fn were_few_seen(pool: &PgPool, filters: &Filters, limit: i64) -> Result<bool, Error> {
    let mut sql = QueryBuilder::new("SELECT 1 FROM users u WHERE true");
    filters.push_last_seen(&mut sql, "u.last_seen_on");
    sql.push(" ORDER BY u.last_seen_on DESC NULLS LAST, u.id DESC");
    ends_within(pool, sql, limit).await
}

async fn ends_within(pool: &PgPool, mut sql: QueryBuilder<Postgres>, limit: i64) -> Result<bool, Error> {
    sql.push(" LIMIT 1 OFFSET ").push_bind(limit);
    let further = sql.build().persistent(false).fetch_optional(&mut *unprepared(pool).await?).await?;
    Ok(further.is_none())
}
