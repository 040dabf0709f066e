//! Statements of the tests, with their values.

macro_rules! run {
    ($on:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        sqlx::query($sql)$(.bind($value))*.execute($on).await.unwrap()
    };
}

/// The single value of a query.
macro_rules! value {
    ($on:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        sqlx::query_scalar($sql)$(.bind($value))*.fetch_one($on).await.unwrap()
    };
}

/// The values of a query's single column.
macro_rules! values {
    ($on:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        sqlx::query_scalar($sql)$(.bind($value))*.fetch_all($on).await.unwrap()
    };
}

/// The rows of a query.
macro_rules! all {
    ($on:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        sqlx::query_as($sql)$(.bind($value))*.fetch_all($on).await.unwrap()
    };
}
