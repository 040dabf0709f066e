//! Statements of the tests, with their values.

macro_rules! run {
    ($on:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        sqlx::query($sql)$(.bind($value))*.execute($on).await.unwrap()
    };
}

/// The one value that a query answers.
macro_rules! value {
    ($on:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        sqlx::query_scalar($sql)$(.bind($value))*.fetch_one($on).await.unwrap()
    };
}

/// The values of the one column that a query answers.
macro_rules! values {
    ($on:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        sqlx::query_scalar($sql)$(.bind($value))*.fetch_all($on).await.unwrap()
    };
}

/// The rows that a query answers.
macro_rules! all {
    ($on:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        sqlx::query_as($sql)$(.bind($value))*.fetch_all($on).await.unwrap()
    };
}
