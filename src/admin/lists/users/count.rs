//! Estimated numbers of users: the planner's row estimates, from PostgreSQL's statistics
//! (`pg_class.reltuples`, `pg_statistic`). Nothing is counted, so pages have to call them
//! estimates.

use serde_json::Value;
use sqlx::QueryBuilder;

use crate::admin::lists::users::filter::Filters;
use crate::database::{Database, Error};

pub async fn estimate(database: &Database, filters: &Filters) -> Result<u64, Error> {
    let mut sql = QueryBuilder::new("EXPLAIN (FORMAT JSON) SELECT FROM users u WHERE true");
    filters.push(&mut sql);
    let query = sql.build_query_scalar::<Value>();
    let plan = query
        .persistent(false)
        .fetch_one(database.planned_each_time())
        .await?;
    let rows = plan.pointer("/0/Plan/Plan Rows").and_then(Value::as_u64);
    rows.ok_or_else(|| Error::unexpected("plan"))
}
