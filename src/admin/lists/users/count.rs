//! Estimated numbers of users: the planner's row estimates, from PostgreSQL's statistics
//! (`pg_class.reltuples`, `pg_statistic`). Nothing is counted, so pages have to call them
//! estimates.

use serde_json::Value;
use sqlx::{PgPool, QueryBuilder};

use crate::admin::lists::users::filter::Filters;
use crate::database::{Error, planned_each_time};

pub async fn estimate(pool: &PgPool, filters: &Filters) -> Result<u64, Error> {
    let mut sql = QueryBuilder::new("EXPLAIN (FORMAT JSON) SELECT FROM users u WHERE true");
    filters.push(&mut sql);
    let query = sql.build_query_scalar::<Value>();
    let plan = query
        .persistent(false)
        .fetch_one(&mut *planned_each_time(pool).await?)
        .await?;
    let rows = plan.pointer("/0/Plan/Plan Rows").and_then(Value::as_u64);
    rows.ok_or_else(|| Error::unexpected("plan"))
}
