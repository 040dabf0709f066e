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

use serde::{Deserialize, Serialize};
use sqlx::{FromRow, PgPool, Postgres, QueryBuilder};
use strum::{EnumString, IntoStaticStr, VariantArray};
use time::{Date, OffsetDateTime};
use utoipa::ToSchema;
use uuid::Uuid;

pub use self::cursor::{Cursor, Direction};
use self::filter::last_seen_on;
pub use self::filter::{Days, Filters, Status, Times, day};
use crate::admin::dates;
use crate::store::{Error, retrying, unprepared};

/// The number of users that a page looks at, in order. If fewer of them pass the filters than the page could hold, it ends
/// there nevertheless, and the next page goes on: so a page costs the same, whoever passes.
///
/// If no more than this many pass one of the filters, a page in an order of names, addresses or days looks at all of these.
/// Only so few are ordered by the day on which they were last seen, for which the sessions of each are looked up.
pub const LOOKED_AT: u32 = 5_000;
/// If no more than this many users pass one of the filters, their ids are sorted for an order of ids. Otherwise an index has to have them in order.
const SORTED: u64 = 50_000;
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
    /// Latest seen first, then users never seen. If each filter leaves more than `LOOKED_AT`, they are ordered by the noted
    /// day, and by the last one within a page.
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
}

/// A part of an order that one index scan reads: users with a key precede those without.
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
    /// True if the page ends because it looked at [`LOOKED_AT`] users.
    pub ends_early: bool,
}

/// The place of a user in an order: the id, and the sort key.
type Place = (Uuid, Option<String>);

#[derive(FromRow)]
struct Row {
    #[sqlx(flatten)]
    user: ListedUser,
    key: Option<String>,
}

impl Row {
    fn place(&self) -> Place {
        (self.user.id, self.key.clone())
    }
}

/// Returns one page of up to `size` users. A cursor from another sort order is ignored.
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
        let asks = !filters.is_empty() || sort == Sort::LastSeen;
        let everybody = if asks { count::estimate(pool, &Filters::default()).await? } else { u64::MAX };
        let (lead, passing) = lead(pool, filters).await?.unwrap_or((Lead::Created, everybody));
        let exact = sort == Sort::LastSeen && passing <= u64::from(LOOKED_AT);
        let key = if exact { Some(last_seen_on!()) } else { sort.key() };
        // Of more, the next in the order contain enough.
        let few = exact || key.is_some() && passing <= u64::from(LOOKED_AT).min(everybody / 20);
        let sorted = passing <= SORTED;
        let mut parts =
            if few || key.is_none() { vec![Part::All] } else { vec![Part::Present, Part::Absent] };
        if backwards {
            parts.reverse();
        }
        let first = start.filter(|_| !few).map_or(parts[0], Cursor::part);
        // An extra row shows that there is another page.
        let (wanted, mut rows, mut looked_up_to) = (size + 1, Vec::<Row>::new(), None);
        for part in parts.into_iter().skip_while(|part| *part != first) {
            let start = start.filter(|_| part == first);
            let reading = Reading { filters, sort, key, part, start, backwards, few, lead, sorted };
            let mut query = reading.statement(wanted - rows.len());
            let query = query.build_query_as::<Row>();
            rows.extend(query.persistent(false).fetch_all(&mut *unprepared(pool).await?).await?);
            if few || rows.len() >= wanted {
                break;
            }
            let mut query = reading.last_looked_at();
            let query = query.build_query_as::<Place>();
            looked_up_to = query.persistent(false).fetch_optional(&mut *unprepared(pool).await?).await?;
            if looked_up_to.is_some() {
                break;
            }
        }
        let ends_early = rows.len() <= size && looked_up_to.is_some();
        let far = if rows.len() > size {
            rows.truncate(size);
            rows.last().map(Row::place)
        } else {
            looked_up_to.clone()
        };
        let near = rows.first().map(Row::place).or(looked_up_to);
        let near = start.map(|start| near.unwrap_or_else(|| start.past()));
        let cursor =
            |place: Option<Place>, direction| place.map(|(id, key)| Cursor::new(sort, direction, id, key));
        let (before, after) = if backwards { (far, near) } else { (near, far) };
        if backwards {
            rows.reverse();
        }
        if sort == Sort::LastSeen {
            rows.sort_by_key(|row| Reverse(row.user.last_seen_on));
        }
        Ok::<_, Error>(Page {
            before: cursor(before, Direction::Before),
            after: cursor(after, Direction::After),
            ends_early,
            users: rows.into_iter().map(|row| row.user).collect(),
        })
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lead {
    /// All of the requested time of creation.
    Created,
    /// Of these, those of the requested provider.
    Provider,
    /// Of these, those in the requested state.
    Status,
    /// Of these, those who may have been last seen on the requested days.
    Seen,
}

/// Returns the filter that the fewest users pass by the planner's estimate, and their number.
async fn lead(pool: &PgPool, filters: &Filters) -> Result<Option<(Lead, u64)>, Error> {
    let given = [
        Some(Lead::Created).filter(|_| filters.created != Times::default()),
        filters.provider.as_ref().map(|_| Lead::Provider),
        filters.status.filter(|status| *status != Status::Active).map(|_| Lead::Status),
        Some(Lead::Seen).filter(|_| filters.last_seen != Days::default()),
    ];
    let mut leads = Vec::new();
    for lead in given.into_iter().flatten() {
        // Together they may be taken for rarer than they are: old users have an old provider.
        let created = if lead == Lead::Created { filters.created } else { Times::default() };
        let mut sql = QueryBuilder::new("EXPLAIN (FORMAT JSON) ");
        lead.push_ids(&mut sql, &Filters { created, ..filters.clone() });
        leads.push((lead, count::expected(pool, sql).await?));
    }
    Ok(leads.into_iter().min_by_key(|(_, passing)| *passing))
}

impl Lead {
    /// Appends the query for the ids, which more conditions can follow, and returns their column there.
    fn push_ids(self, sql: &mut QueryBuilder<Postgres>, filters: &Filters) -> &'static str {
        let id = if self == Self::Provider {
            sql.push("SELECT DISTINCT i.user_id AS id FROM identities i WHERE i.provider = ");
            sql.push_bind(filters.provider.clone());
            "i.user_id"
        } else {
            sql.push("SELECT u.id FROM users u WHERE true");
            "u.id"
        };
        match self {
            Self::Status => filters.push_status(sql),
            Self::Seen => filters.push_noted(sql),
            Self::Created | Self::Provider => {}
        }
        filters.push_created(sql, id);
        id
    }
}

struct Reading<'a> {
    filters: &'a Filters,
    sort: Sort,
    /// The expression to sort by before the id.
    key: Option<&'static str>,
    part: Part,
    start: Option<&'a Cursor>,
    backwards: bool,
    /// True if the page looks at all users of the lead, in the order of the key.
    few: bool,
    lead: Lead,
    /// True if the lead's ids are sorted, instead of read in order.
    sorted: bool,
}

impl Reading<'_> {
    /// Returns the query for those who pass the filters among the users that are looked at. `OFFSET 0` keeps the planner
    /// from another order of the steps: sessions are looked up last, which costs most.
    fn statement(&self, limit: usize) -> QueryBuilder<Postgres> {
        let mut sql = QueryBuilder::new("SELECT ");
        sql.push(COLUMNS);
        if self.key.is_some() {
            sql.push(", u.key::text AS key FROM (SELECT * FROM (");
            self.push_looked_at(&mut sql);
            sql.push(") AS u WHERE true");
            self.filters.push_stored(&mut sql);
            // In order at each step, so that no more are looked at than a page needs.
            self.push_order(&mut sql, Some("u.key"), "u.id");
            sql.push(" OFFSET 0) AS u WHERE true");
            self.filters.push_last_seen(&mut sql);
        } else {
            sql.push(", NULL AS key FROM (");
            self.push_looked_at(&mut sql);
            sql.push(") AS few CROSS JOIN LATERAL (SELECT * FROM (SELECT * FROM users u WHERE u.id = few.id");
            self.filters.push_stored(&mut sql);
            sql.push(" OFFSET 0) AS u WHERE true");
            self.filters.push_last_seen(&mut sql);
            sql.push(" OFFSET 0) AS u");
        }
        self.push_order(
            &mut sql,
            self.key.map(|_| "u.key"),
            if self.key.is_some() { "u.id" } else { "few.id" },
        );
        sql.push(" LIMIT ").push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
        sql
    }

    /// Returns the query for the place of the last user that is looked at, if others may follow.
    fn last_looked_at(&self) -> QueryBuilder<Postgres> {
        let mut sql = QueryBuilder::new("SELECT u.id, ");
        sql.push(if self.key.is_some() { "u.key::text" } else { "NULL" }).push(" AS key FROM (");
        self.push_looked_at(&mut sql);
        sql.push(") AS u");
        self.push_order(&mut sql, self.key.map(|_| "u.key"), "u.id");
        sql.push(" LIMIT 1 OFFSET ").push_bind(i64::from(LOOKED_AT) - 1);
        sql
    }

    /// Appends the query for the users that are looked at: their ids, or whole with their keys.
    fn push_looked_at(&self, sql: &mut QueryBuilder<Postgres>) {
        let mut id = "u.id";
        if let Some(key) = self.key {
            sql.push("SELECT u.*, ").push(key).push(" AS key FROM users u WHERE ");
            match self.part {
                Part::All => {
                    self.lead.push_ids(sql.push("u.id = ANY(ARRAY("), self.filters);
                    sql.push("))")
                }
                Part::Present => sql.push(key).push(" IS NOT NULL"),
                Part::Absent => sql.push(key).push(" IS NULL"),
            };
            if self.sort == Sort::LastSeen {
                self.filters.push_noted(sql);
            }
        } else if self.sorted && matches!(self.lead, Lead::Status | Lead::Seen) {
            sql.push("SELECT u.id FROM (");
            self.lead.push_ids(sql, self.filters);
            sql.push(" OFFSET 0) AS u WHERE true");
        } else {
            let lead = if self.lead == Lead::Seen { Lead::Created } else { self.lead };
            id = lead.push_ids(sql, self.filters);
        }
        self.push_after(sql, id);
        self.push_order(sql, self.key, id);
        if !self.few {
            sql.push(" LIMIT ").push_bind(i64::from(LOOKED_AT));
        }
    }

    /// Appends the condition for rows after the cursor.
    fn push_after(&self, sql: &mut QueryBuilder<Postgres>, id: &'static str) {
        let Some(cursor) = self.start else { return };
        let compare = if self.sort.descends() == self.backwards { " > " } else { " < " };
        match (self.key, cursor.part()) {
            (Some(key), Part::Present) => {
                sql.push(" AND ((").push(key).push(", ").push(id).push(")").push(compare).push("(");
                cursor.push_key(sql);
                sql.push(", ").push_bind(cursor.id()).push(")");
                // Without a part, those without a key come last.
                if self.part == Part::All && !self.backwards {
                    sql.push(" OR ").push(key).push(" IS NULL");
                }
                sql.push(")")
            }
            (key, _) => {
                sql.push(" AND (").push(id).push(compare).push_bind(cursor.id());
                if let Some(key) = key.filter(|_| self.part == Part::All) {
                    let (and, has) =
                        if self.backwards { (" OR ", " IS NOT NULL") } else { (" AND ", " IS NULL") };
                    sql.push(and).push(key).push(has);
                }
                sql.push(")")
            }
        };
    }

    /// Appends the order. Of one part, the NULLs are where its index has them.
    fn push_order(&self, sql: &mut QueryBuilder<Postgres>, key: Option<&'static str>, id: &'static str) {
        let direction = if self.sort.descends() == self.backwards { "" } else { " DESC" };
        sql.push(" ORDER BY ");
        if let Some(key) = key {
            let reversed = matches!(self.sort, Sort::EmailBackwards | Sort::NameBackwards);
            let last = self.backwards == (self.part != Part::All && reversed);
            sql.push(key).push(direction).push(if last { " NULLS LAST" } else { " NULLS FIRST" }).push(", ");
        }
        sql.push(id).push(direction);
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
