//! Lists of users for staff: filtered, in one of seven sort orders, page by page.
//!
//! A page begins at a position in the order, not after a number of rows, so the last page costs as
//! much as the first. The variable parts of the SQL come from closed lists; every value is bound.
//! The statements are not kept prepared: the best plan for a common provider is not the best one
//! for a rare one. PostgreSQL's planner chooses among the indexes of the filters and of the order.
//! If several filters leave few users of many, a page may read all of a million users. A page that
//! takes too long is an error ([`Error::is_timeout`]); a range of days of creation makes it
//! quicker.

pub mod count;
pub mod cursor;
pub mod filter;
pub mod search;

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use sqlx::{FromRow, Postgres, QueryBuilder};
use strum::{EnumString, IntoStaticStr, VariantArray};
use time::{Date, OffsetDateTime};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::admin::dates;
pub use crate::admin::lists::users::cursor::{Cursor, Direction};
use crate::admin::lists::users::filter::last_seen_on;
pub use crate::admin::lists::users::filter::{Days, Filters, Status, Times, day};
use crate::database::{Database, Error};

#[derive(Debug, Clone, FromRow, Serialize)]
pub struct ListedUser {
    pub id: Uuid,
    pub email: Option<String>,
    /// True if the e-mail address is verified: by a provider, a backend or an import.
    pub email_verified: bool,
    pub name: Option<String>,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option")]
    pub disabled_at: Option<OffsetDateTime>,
    #[serde(serialize_with = "dates::text")]
    pub last_seen_on: Option<Date>,
    pub providers: Vec<String>,
    /// True if all of their identities are suspended.
    pub locked_out: bool,
}

pub(in crate::admin) const COLUMNS: &str = concat!(
    "u.id, u.email, u.email_verified, u.name, u.created_at, u.disabled_at, ",
    last_seen_on!(),
    " AS last_seen_on,
    ARRAY(SELECT i.provider FROM identities i WHERE i.user_id = u.id ORDER BY i.id) AS providers,
    coalesce((SELECT bool_and(i.suspended_at IS NOT NULL) FROM identities i WHERE i.user_id = u.id), false) AS locked_out"
);

/// A sort order of users, by its name in URLs. It is total: users with equal keys are ordered by
/// id.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
    VariantArray,
    ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[schema(default = "newest")]
#[strum(serialize_all = "snake_case")]
pub enum Sort {
    /// Newest accounts first, by id, since ids grow with time.
    #[default]
    Newest,
    Oldest,
    /// Latest seen first, to within 35 days, then users never seen: by the noted day, and by the
    /// last one within a page.
    LastSeen,
    /// By e-mail address, then users without one.
    Email,
    EmailBackwards,
    /// By name without regard to case and accents, then users without one.
    Name,
    NameBackwards,
}

impl Sort {
    /// Returns the expression to sort by before the id. Each has an index.
    const fn key(self) -> Option<&'static str> {
        match self {
            Self::Newest | Self::Oldest => None,
            Self::LastSeen => Some("u.seen_noted_on"),
            Self::Email | Self::EmailBackwards => Some("u.email"),
            Self::Name | Self::NameBackwards => Some("u.folded_name"),
        }
    }

    const fn descends(self) -> bool {
        matches!(
            self,
            Self::Newest | Self::LastSeen | Self::EmailBackwards | Self::NameBackwards
        )
    }
}

/// A part of an order that an index scan reads: users with a sort key precede users without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    Present,
    Absent,
}

#[derive(Debug, Clone)]
pub struct Page {
    pub users: Vec<ListedUser>,
    /// Cursor to the previous page; `None` on the first.
    pub before: Option<Cursor>,
    /// Cursor to the next page; `None` on the last.
    pub after: Option<Cursor>,
}

#[derive(FromRow)]
struct Row {
    #[sqlx(flatten)]
    user: ListedUser,
    key: Option<String>,
}

/// Returns one page of up to `size` users. A cursor from another sort order is ignored.
pub async fn page(
    database: &Database,
    filters: &Filters,
    sort: Sort,
    start: Option<&Cursor>,
    size: usize,
) -> Result<Page, Error> {
    database
        .run(|_| async {
            let start = start.filter(|cursor| cursor.sort() == sort);
            let backwards = start.is_some_and(|cursor| cursor.direction() == Direction::Before);
            let mut parts = if sort.key().is_some() {
                vec![Part::Present, Part::Absent]
            } else {
                vec![Part::All]
            };
            if backwards {
                parts.reverse();
            }
            let first = start.map_or(parts[0], Cursor::part);
            // An extra row shows that there is another page.
            let wanted = size + 1;
            let mut rows = Vec::<Row>::new();
            for part in parts.into_iter().skip_while(|part| *part != first) {
                let start = start.filter(|_| part == first);
                let reading = Reading {
                    filters,
                    sort,
                    part,
                    start,
                    backwards,
                };
                let mut query = reading.statement(wanted - rows.len());
                let query = query.build_query_as::<Row>();
                rows.extend(
                    query
                        .persistent(false)
                        .fetch_all(database.planned_each_time())
                        .await?,
                );
                if rows.len() == wanted {
                    break;
                }
            }
            let more = rows.len() > size;
            rows.truncate(size);
            if backwards {
                rows.reverse();
            }
            let cursor = |row: Option<&Row>, direction| {
                row.map(|row| Cursor::new(sort, direction, row.user.id, row.key.clone()))
            };
            let (previous, next) = if backwards {
                (more, true)
            } else {
                (start.is_some(), more)
            };
            let before = cursor(rows.first().filter(|_| previous), Direction::Before);
            let after = cursor(rows.last().filter(|_| next), Direction::After);
            if sort == Sort::LastSeen {
                rows.sort_by_key(|row| Reverse(row.user.last_seen_on));
            }
            Ok::<_, Error>(Page {
                before,
                after,
                users: rows.into_iter().map(|row| row.user).collect(),
            })
        })
        .await
}

struct Reading<'a> {
    filters: &'a Filters,
    sort: Sort,
    part: Part,
    start: Option<&'a Cursor>,
    backwards: bool,
}

impl Reading<'_> {
    fn statement(&self, limit: usize) -> QueryBuilder<Postgres> {
        let filters = self.filters;
        let key = self.sort.key();
        let mut sql = QueryBuilder::new("SELECT ");
        sql.push(COLUMNS)
            .push(", ")
            .push(key.unwrap_or("NULL"))
            .push("::text AS key FROM ");
        // The users in all other states have an index.
        let is_active = filters.status.is_none_or(|status| status == Status::Active);
        let id = match &filters.provider {
            // The planner assumes that a provider's users are spread evenly over all ids, but the
            // users of a former provider are old. So the provider's index leads, and `OFFSET 0`
            // keeps the planner from reading all users in order instead.
            Some(provider) if key.is_none() && is_active => {
                sql.push("(SELECT DISTINCT i.user_id AS id FROM identities i WHERE i.provider = ");
                filters.push_created(sql.push_bind(provider.clone()), "i.user_id");
                self.push_after(&mut sql, "i.user_id");
                self.push_order(&mut sql, "i.user_id");
                sql.push(") AS p CROSS JOIN LATERAL (SELECT * FROM users u WHERE u.id = p.id");
                filters.push_others(&mut sql);
                sql.push(" OFFSET 0) AS u");
                "p.id"
            }
            _ => {
                sql.push("users u WHERE true");
                filters.push(&mut sql);
                self.push_after(&mut sql, "u.id");
                "u.id"
            }
        };
        self.push_order(&mut sql, id);
        sql.push(" LIMIT ")
            .push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
        sql
    }

    /// Appends the conditions for the part, and for rows after the cursor.
    fn push_after(&self, sql: &mut QueryBuilder<Postgres>, id: &'static str) {
        if let Some(key) = self.sort.key() {
            sql.push(" AND ").push(key);
            sql.push(if self.part == Part::Absent {
                " IS NULL"
            } else {
                " IS NOT NULL"
            });
        }
        let Some(cursor) = self.start else { return };
        let compare = if self.sort.descends() == self.backwards {
            " > "
        } else {
            " < "
        };
        match self.sort.key() {
            Some(key) if self.part == Part::Present => {
                sql.push(" AND (")
                    .push(key)
                    .push(", ")
                    .push(id)
                    .push(")")
                    .push(compare)
                    .push("(");
                cursor.push_key(sql);
                sql.push(", ").push_bind(cursor.id()).push(")")
            }
            _ => sql
                .push(" AND ")
                .push(id)
                .push(compare)
                .push_bind(cursor.id()),
        };
    }

    /// Appends the order of an index, with the NULLs where the index has them.
    fn push_order(&self, sql: &mut QueryBuilder<Postgres>, id: &'static str) {
        let direction = if self.sort.descends() == self.backwards {
            ""
        } else {
            " DESC"
        };
        sql.push(" ORDER BY ");
        if let Some(key) = self.sort.key() {
            let nulls = match (self.sort, self.backwards) {
                (Sort::LastSeen, false) => " NULLS LAST",
                (Sort::LastSeen, true) => " NULLS FIRST",
                _ => "",
            };
            sql.push(key).push(direction).push(nulls).push(", ");
        }
        sql.push(id).push(direction);
    }
}

/// Returns the providers of all identities, configured or not. It reads one index entry for each.
pub async fn providers(database: &Database) -> Result<Vec<String>, Error> {
    let providers = sqlx::query_scalar!(
        r#"WITH RECURSIVE known AS (
               (SELECT provider FROM identities ORDER BY provider LIMIT 1)
               UNION ALL
               SELECT (SELECT i.provider FROM identities i WHERE i.provider > k.provider ORDER BY i.provider LIMIT 1)
               FROM known k WHERE k.provider IS NOT NULL
           )
           SELECT provider AS "provider!" FROM known WHERE provider IS NOT NULL"#
    );
    Ok(providers.fetch_all(database).await?)
}
