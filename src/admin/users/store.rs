//! Lists of users for staff: filtered, in one of five sort orders, page by page.
//!
//! A page begins at a position in the order, not after a number of rows, so the last page costs as much as the first.
//! The variable parts of the SQL come from closed lists; every value is bound. The statements are not kept prepared:
//! the best plan for a common provider is not the best one for a rare one.

pub mod count;
pub mod cursor;
pub mod filter;
pub mod search;

use sqlx::{FromRow, PgPool, Postgres, QueryBuilder};
use time::{Date, OffsetDateTime};
use uuid::Uuid;

pub use self::cursor::{Cursor, Direction};
use self::filter::After;
pub use self::filter::{Days, Filters, Status, Times, day};
use crate::store::Error;
use crate::store::unprepared::unprepared;

/// Up to this many users of a provider are all looked up and then sorted. That takes a known and short time. Reading all
/// users in the order until enough of the provider's turn up may not: they may have names in one script.
const FEW: i64 = 30_000;
/// Up to this many ids of users last seen in some days are sorted. Reading all users by id may find none for long: who
/// was last seen long ago is not among the newest.
const FEW_SEEN: i64 = 100_000;

/// A user in a list.
#[derive(Debug, Clone, FromRow)]
pub struct ListedUser {
    /// Id of the user.
    pub id: Uuid,
    /// E-mail address.
    pub email: Option<String>,
    /// True if a provider vouches for the e-mail address.
    pub email_verified: bool,
    /// Display name.
    pub name: Option<String>,
    /// Time of the user's creation.
    pub created_at: OffsetDateTime,
    /// Time when the user was disabled.
    pub disabled_at: Option<OffsetDateTime>,
    /// The day of the latest sign-in or refresh.
    pub last_seen_on: Option<Date>,
    /// Providers of the linked identities.
    pub providers: Vec<String>,
}

/// The columns of a [`ListedUser`].
const COLUMNS: &str = "u.id, u.email, u.email_verified, u.name, u.created_at, u.disabled_at, u.last_seen_on,
    ARRAY(SELECT i.provider FROM identities i WHERE i.user_id = u.id ORDER BY i.id) AS providers";

/// A sort order of users. It is total: users with equal keys are ordered by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// Newest accounts first, by id, since ids grow with time.
    #[default]
    Newest,
    /// Oldest accounts first.
    Oldest,
    /// Latest seen first, then users never seen.
    LastSeen,
    /// By e-mail address, then users without one.
    Email,
    /// By name without regard to case, then users without one.
    Name,
}

impl Sort {
    /// All sort orders.
    pub const ALL: [Self; 5] = [Self::Newest, Self::Oldest, Self::LastSeen, Self::Email, Self::Name];

    /// Returns the name in URLs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Oldest => "oldest",
            Self::LastSeen => "last_seen",
            Self::Email => "email",
            Self::Name => "name",
        }
    }

    /// Returns the sort order of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sort| sort.name() == name)
    }

    /// Returns the expression to sort by before the id. Each has an index.
    const fn key(self) -> Option<&'static str> {
        match self {
            Self::Newest | Self::Oldest => None,
            Self::LastSeen => Some("u.last_seen_on"),
            Self::Email => Some("u.email"),
            Self::Name => Some("lower(u.name) COLLATE \"C\""),
        }
    }

    const fn descends(self) -> bool {
        matches!(self, Self::Newest | Self::LastSeen)
    }

    /// Returns the segments of the order: users with a key precede those without.
    const fn segments(self) -> &'static [Segment] {
        match self {
            Self::Newest | Self::Oldest => &[Segment::All],
            Self::LastSeen | Self::Email | Self::Name => &[Segment::Present, Segment::Absent],
        }
    }
}

/// A segment of an order that one index scan reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Segment {
    All,
    Present,
    Absent,
}

/// A page of a list.
#[derive(Debug, Clone)]
pub struct Page {
    /// The users, in order.
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

/// Returns one page of `size` users. A cursor from another sort order is ignored.
///
/// # Errors
/// See [`Error`].
pub async fn page(
    pool: &PgPool,
    filters: &Filters,
    sort: Sort,
    start: Option<&Cursor>,
    size: usize,
) -> Result<Page, Error> {
    let start = start.filter(|cursor| cursor.sort() == sort);
    let backwards = start.is_some_and(|cursor| cursor.direction() == Direction::Before);
    let strategy = strategy(pool, filters, sort).await?;
    let mut segments = sort.segments().to_vec();
    if backwards {
        segments.reverse();
    }
    let first = start.map_or(segments[0], Cursor::segment);
    // An extra row tells if there is another page.
    let (wanted, mut rows) = (size + 1, Vec::<Row>::new());
    for segment in segments.into_iter().skip_while(|segment| *segment != first) {
        let start = start.filter(|_| segment == first);
        let query = PageQuery { filters, sort, segment, start, backwards, strategy };
        let mut sql = query.statement(wanted - rows.len());
        rows.extend(
            sql.build_query_as::<Row>().persistent(false).fetch_all(&mut *unprepared(pool).await?).await?,
        );
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
    Ok(Page {
        before: cursor(rows.first().filter(|_| previous), Direction::Before),
        after: cursor(rows.last().filter(|_| next), Direction::After),
        users: rows.into_iter().map(|row| row.user).collect(),
    })
}

/// The strategy by which a query reads users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    /// Reads the users in the order and filters them.
    Order,
    /// Looks up each of the provider's users.
    Provider,
    /// Looks up each user last seen in the requested days.
    LastSeen,
}

/// Chooses the strategy. An index has a provider's users in the order of ids. For any other order they are all looked
/// up, if they are few.
async fn strategy(pool: &PgPool, filters: &Filters, sort: Sort) -> Result<Strategy, Error> {
    let by_id = sort.key().is_none();
    if let Some(provider) = &filters.provider {
        let in_order = by_id && !filters.are_rare_beside_provider();
        if in_order || count::is_small_provider(pool, provider, FEW).await? {
            return Ok(Strategy::Provider);
        }
    }
    let by_day = by_id && filters.last_seen != Days::default();
    let few_seen = by_day && count::were_few_seen(pool, filters, FEW_SEEN).await?;
    Ok(if few_seen { Strategy::LastSeen } else { Strategy::Order })
}

/// The query for one segment of a page.
struct PageQuery<'a> {
    filters: &'a Filters,
    sort: Sort,
    segment: Segment,
    start: Option<&'a Cursor>,
    backwards: bool,
    strategy: Strategy,
}

impl PageQuery<'_> {
    fn statement(&self, limit: usize) -> QueryBuilder<Postgres> {
        let (key, direction) = (self.sort.key(), self.direction());
        let mut sql = QueryBuilder::new("SELECT ");
        sql.push(COLUMNS).push(", ").push(key.unwrap_or("NULL")).push("::text AS key FROM ");
        let id = if self.strategy == Strategy::Order {
            sql.push("users u WHERE true");
            self.push_conditions(&mut sql);
            "u.id"
        } else {
            self.push_candidates(&mut sql);
            // `OFFSET 0` keeps the planner from reading all users in order instead.
            sql.push(" CROSS JOIN LATERAL (SELECT * FROM users u WHERE u.id = few.id");
            self.push_conditions(&mut sql);
            sql.push(" OFFSET 0) AS u");
            "few.id"
        };
        sql.push(" ORDER BY ");
        if let Some(key) = key {
            // The placement of NULLs is that of the index.
            let nulls = if self.backwards { " NULLS FIRST, " } else { " NULLS LAST, " };
            sql.push(key).push(direction).push(nulls);
        }
        sql.push(id).push(direction);
        sql.push(" LIMIT ").push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
        sql
    }

    /// Appends the ids of the candidates, in order.
    fn push_candidates(&self, sql: &mut QueryBuilder<Postgres>) {
        let id = if self.strategy == Strategy::Provider {
            sql.push("(SELECT DISTINCT i.user_id AS id FROM identities i WHERE i.provider = ");
            sql.push_bind(self.filters.provider.clone());
            "i.user_id"
        } else {
            sql.push("(SELECT s.id FROM users s WHERE true");
            self.filters.push_last_seen(sql, "s.last_seen_on");
            "s.id"
        };
        self.filters.push_ids(sql, id, self.after_id());
        sql.push(" ORDER BY ").push(id).push(self.direction()).push(") AS few");
    }

    /// Appends the conditions on the user `u`.
    fn push_conditions(&self, sql: &mut QueryBuilder<Postgres>) {
        if self.strategy == Strategy::Provider {
            self.filters.push_beside_provider(sql, self.after_id());
        } else {
            self.filters.push(sql, self.after_id());
        }
        let (Some(key), compare) = (self.sort.key(), self.compare()) else { return };
        let present = self.segment == Segment::Present;
        sql.push(" AND ").push(key).push(if present { " IS NOT NULL" } else { " IS NULL" });
        if let Some(cursor) = self.start {
            if present {
                sql.push(" AND (").push(key).push(", u.id)").push(compare).push("(");
                cursor.push_key(sql);
                sql.push(", ").push_bind(cursor.id()).push(")");
            } else {
                sql.push(" AND u.id").push(compare).push_bind(cursor.id());
            }
        }
    }

    /// Returns the condition for users after the cursor, if the order is by id.
    fn after_id(&self) -> After {
        let cursor = self.start.filter(|_| self.segment == Segment::All)?;
        Some((self.compare(), cursor.id()))
    }

    const fn compare(&self) -> &'static str {
        if self.sort.descends() == self.backwards { " > " } else { " < " }
    }

    const fn direction(&self) -> &'static str {
        if self.sort.descends() == self.backwards { "" } else { " DESC" }
    }
}

/// Returns the providers of all identities, configured or not. It reads one index entry for each.
///
/// # Errors
/// See [`Error`].
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
