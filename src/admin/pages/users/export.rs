//! The list of users as a file.

use crate::admin::lists::users;
use crate::admin::lists::users::search::{Position, search};
use crate::admin::lists::users::{Cursor, Filters, ListedUser, Sort};
use crate::admin::pages::csv::{Column, Rows};
use crate::admin::pages::users::query::ListQuery;
use crate::database::{Database, Error};
use crate::web::rfc3339;

const BATCH: usize = 2_000;

/// The users whom a list or a search still has.
pub(super) struct Export {
    database: Database,
    text: String,
    providers: Vec<String>,
    sort: Sort,
    /// `None` if no user is left.
    filters: Option<Filters>,
    /// The position after which the export goes on, in a list or in the results of a search.
    cursor: Option<Cursor>,
    position: Option<Position>,
}

impl Export {
    pub fn new(
        asked: &ListQuery,
        zone: Option<&str>,
        providers: Vec<String>,
        database: Database,
    ) -> Self {
        let text = asked.q().to_owned();
        let sort = asked.sort();
        let filters = asked.filters(zone).ok();
        Self {
            database,
            text,
            providers,
            sort,
            filters,
            cursor: None,
            position: None,
        }
    }
}

impl Rows for Export {
    const NAME: &'static str = "users";
    type Row = ListedUser;
    const COLUMNS: &'static [Column<ListedUser>] = &[
        ("id", |user| Some(user.id.to_string())),
        ("email", |user| user.email.clone()),
        ("email_verified", |user| {
            Some(user.email_verified.to_string())
        }),
        ("name", |user| user.name.clone()),
        ("providers", |user| Some(user.providers.join(" "))),
        ("created_at", |user| Some(rfc3339(user.created_at))),
        ("last_seen_on", |user| {
            user.last_seen_on.map(|day| day.to_string())
        }),
        ("disabled_at", |user| user.disabled_at.map(rfc3339)),
    ];

    async fn next(&mut self) -> Result<Vec<ListedUser>, Error> {
        let Some(filters) = self.filters.take() else {
            return Ok(Vec::new());
        };
        let users = if self.text.is_empty() {
            let page = users::page(
                &self.database,
                &filters,
                self.sort,
                self.cursor.as_ref(),
                BATCH,
            )
            .await?;
            self.cursor = page.after;
            page.users
        } else {
            let text = &self.text;
            let start = self.position.as_ref();
            let found = search(
                &self.database,
                text,
                &self.providers,
                &filters,
                start,
                BATCH,
            )
            .await?;
            self.position = found.after;
            found.users
        };
        self.filters = Some(filters).filter(|_| self.cursor.is_some() || self.position.is_some());
        Ok(users)
    }
}
