//! How many users there are, without counting them: what the planner expects, from the statistics that
//! PostgreSQL keeps (`pg_class.reltuples`, `pg_statistic`). An estimate, and to be called one.

use serde_json::Value;
use sqlx::{PgPool, Postgres, QueryBuilder};

use super::filter::{Conditions, Filters};
use crate::store::Error;
use crate::store::for_once::for_once;

/// About so many users pass the filters.
///
/// # Errors
/// See [`Error`].
pub async fn estimate(pool: &PgPool, filters: &Filters) -> Result<u64, Error> {
    let mut sql = QueryBuilder::new("EXPLAIN (FORMAT JSON) SELECT FROM users u");
    filters.push(&mut Conditions::of(&mut sql));
    expected(pool, sql).await
}

/// About so many identities are at a provider.
pub(super) async fn of_provider(pool: &PgPool, provider: &str) -> Result<u64, Error> {
    let mut sql = QueryBuilder::new("EXPLAIN (FORMAT JSON) SELECT FROM identities WHERE provider = ");
    sql.push_bind(provider.to_owned());
    expected(pool, sql).await
}

/// As many rows as the planner expects of a statement that begins with `EXPLAIN (FORMAT JSON)`.
pub(super) async fn expected(pool: &PgPool, mut sql: QueryBuilder<Postgres>) -> Result<u64, Error> {
    let plan: Value =
        sql.build_query_scalar().persistent(false).fetch_one(&mut *for_once(pool).await?).await?;
    let rows = plan.pointer("/0/Plan/Plan Rows").and_then(Value::as_u64);
    rows.ok_or_else(|| Error::unexpected("plan"))
}
