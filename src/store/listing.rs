//! Lists of users, as staff see them: filtered, in one of five orders, page by page.
//!
//! A page begins where another ended (a position in the order, not a number of rows to skip), so that
//! the last page costs what the first does. What varies in the statements is chosen from closed lists;
//! every value is bound. They are not prepared: what is the best plan for the users of a provider that
//! everybody has is not the best for one that nobody has.

pub mod count;
pub mod cursor;
pub mod filter;
pub mod search;

use sqlx::{FromRow, PgPool, Postgres, QueryBuilder};
use time::{Date, OffsetDateTime};
use uuid::Uuid;

pub use self::cursor::{Cursor, Direction};
use self::filter::Conditions;
pub use self::filter::{Days, Filters, Status, Times, day};
use super::Error;
use super::for_once::for_once;

/// Up to so many users are fetched one and all, to be put in order then. It takes a known and short time,
/// while reading all users in that order until enough of the few turn up does not: those of one provider
/// may have signed up in the same month, or have names in one script.
const FEW: u64 = 30_000;
/// The same where the order is that of the ids, which take no fetching.
const FEW_IDS: u64 = 100_000;

/// A user in a list.
#[derive(Debug, Clone, FromRow)]
pub struct ListedUser {
    /// Key of the user.
    pub id: Uuid,
    /// Address.
    pub email: Option<String>,
    /// Whether a provider vouches for it.
    pub email_verified: bool,
    /// Display name.
    pub name: Option<String>,
    /// When the user was created.
    pub created_at: OffsetDateTime,
    /// When the user was disabled.
    pub disabled_at: Option<OffsetDateTime>,
    /// The day of the latest sign-in or refresh.
    pub last_seen_on: Option<Date>,
    /// Providers of the linked identities.
    pub providers: Vec<String>,
}

/// What a list shows of a user.
const COLUMNS: &str = "u.id, u.email, u.email_verified, u.name, u.created_at, u.disabled_at, u.last_seen_on,
    ARRAY(SELECT i.provider FROM identities i WHERE i.user_id = u.id ORDER BY i.id) AS providers";

/// An order of users. Each is a total one: users with equal keys are told apart by their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// The latest accounts first. Ids grow with time, so they are the order.
    #[default]
    Newest,
    /// The oldest accounts first.
    Oldest,
    /// Those seen last first; then those never seen.
    LastSeen,
    /// By address; then those without.
    Email,
    /// By name, upper and lower case alike; then those without.
    Name,
}

impl Sort {
    /// Every order.
    pub const ALL: [Self; 5] = [Self::Newest, Self::Oldest, Self::LastSeen, Self::Email, Self::Name];

    /// Its name in addresses.
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

    /// The order of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sort| sort.name() == name)
    }

    /// What is ordered by before the id. Each is an index's.
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

    /// Those who have a key come before those who have not.
    const fn parts(self) -> &'static [Part] {
        match self {
            Self::Newest | Self::Oldest => &[Part::All],
            Self::LastSeen | Self::Email | Self::Name => &[Part::Present, Part::Absent],
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

/// A page of a list.
#[derive(Debug, Clone)]
pub struct Page {
    /// The users, in order.
    pub users: Vec<ListedUser>,
    /// Where the page before this one ends; none on the first.
    pub before: Option<Cursor>,
    /// Where the page after this one begins; none on the last.
    pub after: Option<Cursor>,
}

#[derive(FromRow)]
struct Row {
    #[sqlx(flatten)]
    user: ListedUser,
    key: Option<String>,
}

/// A page of so many users. A cursor of another order is none.
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
    let way = way(pool, filters, sort).await?;
    let mut parts = sort.parts().to_vec();
    if backwards {
        parts.reverse();
    }
    let first = start.map_or(parts[0], Cursor::part);
    // One more than is shown tells whether there is another page.
    let (wanted, mut rows) = (size + 1, Vec::<Row>::new());
    for part in parts.into_iter().skip_while(|part| *part != first) {
        let start = start.filter(|_| part == first);
        let reading = Reading { filters, sort, part, start, backwards, way };
        let mut query = reading.statement(wanted - rows.len());
        rows.extend(
            query.build_query_as::<Row>().persistent(false).fetch_all(&mut *for_once(pool).await?).await?,
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

/// How users are gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// In the order, or as the planner likes better, each held against the filters.
    Users,
    /// The provider's users one by one, each looked up.
    Provider,
    /// Those last seen in the days that are asked for, each looked up.
    Seen,
}

/// The provider's users are in the order of their ids themselves. In any other order they are all fetched,
/// if they are few, and so are those last seen in some days.
async fn way(pool: &PgPool, filters: &Filters, sort: Sort) -> Result<Way, Error> {
    if let Some(provider) = &filters.provider {
        let in_order = sort.key().is_none() && !filters.are_rare_beside_provider();
        if in_order || count::of_provider(pool, provider).await? <= FEW {
            return Ok(Way::Provider);
        }
    }
    if filters.last_seen != Days::default() && sort != Sort::LastSeen {
        let seen = Filters { last_seen: filters.last_seen, ..Filters::default() };
        let few = if sort.key().is_none() { FEW_IDS } else { FEW };
        if count::estimate(pool, &seen).await? <= few {
            return Ok(Way::Seen);
        }
    }
    Ok(Way::Users)
}

/// One statement's worth of a page.
#[derive(Clone, Copy)]
struct Reading<'a> {
    filters: &'a Filters,
    sort: Sort,
    part: Part,
    start: Option<&'a Cursor>,
    backwards: bool,
    way: Way,
}

impl Reading<'_> {
    fn statement(&self, limit: usize) -> QueryBuilder<Postgres> {
        let key = self.sort.key();
        let mut sql = QueryBuilder::new("SELECT ");
        sql.push(COLUMNS).push(", ").push(key.unwrap_or("NULL")).push("::text AS key FROM ");
        let id = match self.way {
            Way::Users => {
                sql.push("users u");
                self.push_filters(&mut Conditions::of(&mut sql));
                "u.id"
            }
            Way::Provider => {
                sql.push("(SELECT DISTINCT i.user_id AS id FROM identities i");
                let mut when = Conditions::of(&mut sql);
                when.and().push("i.provider = ").push_bind(self.filters.provider.clone());
                self.push_ids(&mut when, "i.user_id");
                self.push_each(&mut sql, "i.user_id");
                "few.id"
            }
            Way::Seen => {
                sql.push("(SELECT s.id FROM users s");
                let mut when = Conditions::of(&mut sql);
                self.filters.push_last_seen(&mut when, "s.last_seen_on");
                self.push_ids(&mut when, "s.id");
                self.push_each(&mut sql, "s.id");
                "few.id"
            }
        };
        sql.push(" ORDER BY ");
        if let Some(key) = key {
            sql.push(key).push(self.direction()).push(self.nulls()).push(", ");
        }
        sql.push(id).push(self.direction());
        sql.push(" LIMIT ").push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
        sql
    }

    /// Looks up each of a few ids. An offset of nothing is what keeps the planner from reading all users in
    /// their order instead.
    fn push_each(&self, sql: &mut QueryBuilder<Postgres>, id: &'static str) {
        sql.push(" ORDER BY ").push(id).push(self.direction());
        sql.push(") AS few CROSS JOIN LATERAL (SELECT * FROM users u");
        let mut when = Conditions::of(sql);
        when.and().push("u.id = few.id");
        self.push_filters(&mut when);
        sql.push(" OFFSET 0) AS u");
    }

    fn push_filters(&self, when: &mut Conditions<'_>) {
        if let (Some(provider), true) = (&self.filters.provider, self.way != Way::Provider) {
            let exists = "EXISTS (SELECT FROM identities i WHERE i.user_id = u.id AND i.provider = ";
            when.and().push(exists).push_bind(provider.clone());
            // The planner does not see that what holds of one id holds of the other.
            self.push_ids(when, "i.user_id");
            when.close();
        }
        self.filters.push_beside_provider(when);
        self.push_part(when);
        self.push_after(when, "u.id");
    }

    /// What holds of the ids alone.
    fn push_ids(&self, when: &mut Conditions<'_>, id: &'static str) {
        self.filters.push_created(when, id);
        if self.part == Part::All {
            self.push_after(when, id);
        }
    }

    fn push_part(&self, when: &mut Conditions<'_>) {
        match (self.part, self.sort.key()) {
            (Part::Present, Some(key)) => when.and().push(key).push(" IS NOT NULL"),
            (Part::Absent, Some(key)) => when.and().push(key).push(" IS NULL"),
            _ => return,
        };
    }

    /// What lies behind the cursor.
    fn push_after(&self, when: &mut Conditions<'_>, id: &'static str) {
        let Some(cursor) = self.start else { return };
        let compare = if self.sort.descends() == self.backwards { " > " } else { " < " };
        match (self.part, self.sort.key()) {
            (Part::Present, Some(key)) => {
                let sql =
                    when.and().push("(").push(key).push(", ").push(id).push(")").push(compare).push("(");
                cursor.push_key(sql);
                sql.push(", ").push_bind(cursor.id()).push(")");
            }
            _ => {
                when.and().push(id).push(compare).push_bind(cursor.id());
            }
        }
    }

    const fn direction(&self) -> &'static str {
        if self.sort.descends() == self.backwards { "" } else { " DESC" }
    }

    /// As the index has them, which makes its order this one.
    const fn nulls(&self) -> &'static str {
        if self.backwards { " NULLS FIRST" } else { " NULLS LAST" }
    }
}

/// The providers that anybody has an identity at, also those that are not configured any more. Reads one
/// entry of the index for each.
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
