//! The list of users as a file.

use sqlx::PgPool;

use super::query::ListQuery;
use crate::admin::csv::Rows;
use crate::admin::fields::NothingMatches;
use crate::admin::users::store::search::{Position, search};
use crate::admin::users::store::{self, Cursor, Filters, ListedUser, Sort};
use crate::store::Error;
use crate::web::http::rfc3339::rfc3339;

/// The number of users that are read at a time.
const BATCH: usize = 2_000;

pub(super) struct Export {
    pool: PgPool,
    next: Next,
}

enum Next {
    /// The results of a search from a position on.
    Search {
        text: String,
        providers: Vec<String>,
        filters: Filters,
        start: Option<Position>,
    },
    /// The list from a cursor on.
    List {
        filters: Filters,
        sort: Sort,
        start: Option<Cursor>,
    },
    End,
}

impl Export {
    pub fn new(asked: &ListQuery, zone: Option<&str>, providers: Vec<String>, pool: PgPool) -> Self {
        let next = match asked.filters(zone) {
            Err(NothingMatches) => Next::End,
            Ok(filters) if asked.q().is_empty() => Next::List { filters, sort: asked.sort(), start: None },
            Ok(filters) => Next::Search { text: asked.q().to_owned(), providers, filters, start: None },
        };
        Self { pool, next }
    }
}

impl Rows for Export {
    const NAME: &'static str = "users";
    const COLUMNS: &'static [&'static str] =
        &["id", "email", "email_verified", "name", "providers", "created_at", "last_seen_on", "disabled_at"];

    async fn next(&mut self) -> Result<Vec<Vec<String>>, Error> {
        let users = match std::mem::replace(&mut self.next, Next::End) {
            Next::End => Vec::new(),
            Next::Search { text, providers, filters, start } => {
                let found = search(&self.pool, &text, &providers, &filters, start.as_ref(), BATCH).await?;
                if found.after.is_some() {
                    self.next = Next::Search { text, providers, filters, start: found.after };
                }
                found.users
            }
            Next::List { filters, sort, start } => {
                let page = store::page(&self.pool, &filters, sort, start.as_ref(), BATCH).await?;
                if page.after.is_some() {
                    self.next = Next::List { filters, sort, start: page.after };
                }
                page.users
            }
        };
        Ok(users.into_iter().map(row).collect())
    }
}

fn row(user: ListedUser) -> Vec<String> {
    vec![
        user.id.to_string(),
        user.email.unwrap_or_default(),
        user.email_verified.to_string(),
        user.name.unwrap_or_default(),
        user.providers.join(" "),
        rfc3339(user.created_at),
        user.last_seen_on.map(|day| day.to_string()).unwrap_or_default(),
        user.disabled_at.map(rfc3339).unwrap_or_default(),
    ]
}
