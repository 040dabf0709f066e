//! Lists of users for staff: filtered, in one of seven sort orders, page by page.
//!
//! A page begins at a position in the order, not after a number of rows, so the last page costs as much as the first.
//! The variable parts of the SQL come from closed lists; every value is bound. The statements are not kept prepared:
//! the best plan for a common provider is not the best one for a rare one.

pub mod count;
pub mod cursor;
pub mod filter;
pub mod search;

use std::cmp::Reverse;

use serde::Serialize;
use sqlx::{FromRow, PgPool, Postgres, QueryBuilder};
use time::{Date, OffsetDateTime};
use uuid::Uuid;

pub use self::cursor::{Cursor, Direction};
use self::filter::last_seen_on;
pub use self::filter::{Days, Filters, Status, Times, day};
use crate::admin::dates;
use crate::store::error::{Error, retrying};
use crate::store::unprepared::unprepared;

/// Up to this many users of a provider are all fetched and then sorted, since reading all users in the order until enough of
/// the provider turn up may take long: they may have names in one script.
const FEW: u64 = 10_000;
/// The same limit beside a filter that few users pass.
const FEW_OF_RARE: u64 = 30_000;
/// Up to this many matches are ordered by the day on which they were last seen, for which the sessions of each are looked up.
const FEW_SEEN: u64 = 5_000;

#[derive(Debug, Clone, FromRow, Serialize)]
pub struct ListedUser {
    pub id: Uuid,
    pub email: Option<String>,
    /// True if a provider vouches for the e-mail address.
    pub email_verified: bool,
    pub name: Option<String>,
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option")]
    pub disabled_at: Option<OffsetDateTime>,
    /// The day of the latest sign-in or refresh.
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

/// A sort order of users, by its name in URLs. It is total: users with equal keys are ordered by id.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    serde::Serialize,
    serde::Deserialize,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
    utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[schema(default = "newest")]
#[strum(serialize_all = "snake_case")]
pub enum Sort {
    /// Newest accounts first, by id, since ids grow with time.
    #[default]
    Newest,
    Oldest,
    /// Latest seen first, then users never seen. More than `FEW_SEEN` are ordered by the noted day, and by the last one
    /// within a page.
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
        matches!(self, Self::Newest | Self::LastSeen | Self::EmailBackwards | Self::NameBackwards)
    }

    /// Returns true if the index has the opposite order.
    const fn reverses(self) -> bool {
        matches!(self, Self::EmailBackwards | Self::NameBackwards)
    }

    /// Returns the parts of the order: users with a key precede those without.
    const fn parts(self) -> &'static [Part] {
        match self {
            Self::Newest | Self::Oldest => &[Part::All],
            _ => &[Part::Present, Part::Absent],
        }
    }
}

/// A part of an order that one index scan reads.
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

/// A user with their sort key.
#[derive(FromRow)]
struct Row {
    #[sqlx(flatten)]
    user: ListedUser,
    key: Option<String>,
}

/// Returns one page of `size` users. A cursor from another sort order is ignored.
pub async fn page(
    pool: &PgPool,
    filters: &Filters,
    sort: Sort,
    start: Option<&Cursor>,
    size: usize,
) -> Result<Page, Error> {
    retrying!(async {
        let start = start.filter(|cursor| cursor.sort() == sort);
        let backwards = start.is_some_and(|cursor| cursor.direction() == Direction::Before);
        let way = way(pool, filters, sort).await?;
        let exact = sort == Sort::LastSeen && count::estimate(pool, filters).await? <= FEW_SEEN;
        let key = if exact { Some(last_seen_on!()) } else { sort.key() };
        let mut parts = sort.parts().to_vec();
        if backwards {
            parts.reverse();
        }
        let first = start.map_or(parts[0], Cursor::part);
        // An extra row shows that there is another page.
        let (wanted, mut rows) = (size + 1, Vec::<Row>::new());
        for part in parts.into_iter().skip_while(|part| *part != first) {
            let start = start.filter(|_| part == first);
            let mut query =
                Reading { filters, sort, key, part, start, backwards, way }.statement(wanted - rows.len());
            let query = query.build_query_as::<Row>();
            rows.extend(query.persistent(false).fetch_all(&mut *unprepared(pool).await?).await?);
            if rows.len() >= wanted {
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
        let (previous, next) = if backwards { (more, true) } else { (start.is_some(), more) };
        let (before, after) = (
            cursor(rows.first().filter(|_| previous), Direction::Before),
            cursor(rows.last().filter(|_| next), Direction::After),
        );
        if sort == Sort::LastSeen {
            rows.sort_by_key(|row| Reverse(row.user.last_seen_on));
        }
        Ok::<_, Error>(Page { before, after, users: rows.into_iter().map(|row| row.user).collect() })
    })
}

/// The strategy by which a query reads users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Reads the users as the planner prefers, and filters them.
    Users,
    /// Looks up each of the provider's users.
    Provider,
    /// Looks up each user last seen in the requested days.
    Seen,
}

/// Chooses the strategy. The planner takes a provider's users, and those seen on some days, for spread evenly over all ids, but
/// the users of a former provider are old: in the order of ids, an index of the provider or of the days leads.
async fn way(pool: &PgPool, filters: &Filters, sort: Sort) -> Result<Way, Error> {
    let by_id = sort.key().is_none();
    if let Some(provider) = &filters.provider {
        let rare = filters.are_rare_beside_provider();
        let few = if rare { FEW_OF_RARE } else { FEW };
        let all =
            Filters { provider: Some(provider.clone()), created: filters.created, ..Filters::default() };
        if (by_id && !rare) || count::estimate(pool, &all).await? <= few {
            return Ok(Way::Provider);
        }
    }
    Ok(if by_id && filters.last_seen != Days::default() { Way::Seen } else { Way::Users })
}

/// The query for one part of a page.
struct Reading<'a> {
    filters: &'a Filters,
    sort: Sort,
    /// The expression to sort by before the id.
    key: Option<&'static str>,
    part: Part,
    start: Option<&'a Cursor>,
    backwards: bool,
    way: Way,
}

impl Reading<'_> {
    fn statement(&self, limit: usize) -> QueryBuilder<Postgres> {
        let mut sql = QueryBuilder::new("SELECT ");
        sql.push(COLUMNS).push(", ").push(self.key.unwrap_or("NULL")).push("::text AS key FROM ");
        let id = match self.way {
            Way::Users => {
                sql.push("users u WHERE true");
                self.push_filters(&mut sql);
                "u.id"
            }
            Way::Provider => {
                sql.push("(SELECT DISTINCT i.user_id AS id FROM identities i WHERE i.provider = ");
                sql.push_bind(self.filters.provider.clone());
                self.push_each(&mut sql, "i.user_id")
            }
            Way::Seen => {
                sql.push("(SELECT s.id FROM users s WHERE true");
                self.filters.push_noted(&mut sql, "s.seen_noted_on");
                self.push_each(&mut sql, "s.id")
            }
        };
        sql.push(" ORDER BY ");
        if let Some(key) = self.key {
            sql.push(key).push(self.direction()).push(self.nulls()).push(", ");
        }
        sql.push(id).push(self.direction());
        sql.push(" LIMIT ").push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
        sql
    }

    /// Appends a lookup of each of a few ids, and returns the column that they are ordered by. `OFFSET 0` keeps the
    /// planner from reading all users in order instead.
    fn push_each(&self, sql: &mut QueryBuilder<Postgres>, id: &'static str) -> &'static str {
        self.push_ids(sql, id);
        sql.push(" ORDER BY ").push(id).push(self.direction());
        sql.push(") AS few CROSS JOIN LATERAL (SELECT * FROM users u WHERE u.id = few.id");
        self.push_filters(sql);
        sql.push(" OFFSET 0) AS u");
        "few.id"
    }

    fn push_filters(&self, sql: &mut QueryBuilder<Postgres>) {
        if self.way != Way::Provider {
            self.filters.push_provider(sql, |sql| self.push_ids(sql, "i.user_id"));
        }
        self.filters.push_beside_provider(sql);
        match (self.part, self.key) {
            (Part::Present, Some(key)) => sql.push(" AND ").push(key).push(" IS NOT NULL"),
            (Part::Absent, Some(key)) => sql.push(" AND ").push(key).push(" IS NULL"),
            _ => sql,
        };
        self.push_after(sql, "u.id");
    }

    /// Appends the conditions on the id alone.
    fn push_ids(&self, sql: &mut QueryBuilder<Postgres>, id: &'static str) {
        self.filters.push_created(sql, id);
        if self.part == Part::All {
            self.push_after(sql, id);
        }
    }

    /// Appends the condition for rows after the cursor.
    fn push_after(&self, sql: &mut QueryBuilder<Postgres>, id: &'static str) {
        let Some(cursor) = self.start else { return };
        let compare = if self.sort.descends() == self.backwards { " > " } else { " < " };
        match (self.part, self.key) {
            (Part::Present, Some(key)) => {
                sql.push(" AND (").push(key).push(", ").push(id).push(")").push(compare).push("(");
                cursor.push_key(sql);
                sql.push(", ").push_bind(cursor.id()).push(")")
            }
            _ => sql.push(" AND ").push(id).push(compare).push_bind(cursor.id()),
        };
    }

    const fn direction(&self) -> &'static str {
        if self.sort.descends() == self.backwards { "" } else { " DESC" }
    }

    /// Returns the placement of NULLs in the index, so that its order is this one.
    const fn nulls(&self) -> &'static str {
        if self.backwards == self.sort.reverses() { " NULLS LAST" } else { " NULLS FIRST" }
    }
}

/// Returns the providers of all identities, configured or not. It reads one index entry for each.
pub async fn providers(pool: &PgPool) -> Result<Vec<String>, Error> {
    let providers = sqlx::query_scalar!(
        r#"WITH RECURSIVE known AS (
               (SELECT provider FROM identities ORDER BY provider LIMIT 1)
               UNION ALL
               SELECT (SELECT i.provider FROM identities i WHERE i.provider > k.provider ORDER BY i.provider LIMIT 1)
               FROM known k WHERE k.provider IS NOT NULL
           )
           SELECT provider AS "provider!" FROM known WHERE provider IS NOT NULL"#
    );
    Ok(providers.fetch_all(pool).await?)
}
