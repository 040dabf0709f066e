//! Search for users by a text.

use std::collections::BTreeSet;

use sqlx::{PgPool, QueryBuilder};
use uuid::Uuid;

use super::filter::{Conditions, Filters};
use super::{COLUMNS, FEW, ListedUser, count};
use crate::store::Error;
use crate::store::unprepared::unprepared;

/// Minimum number of consecutive letters or digits for a search within e-mail addresses and names. An index of trigrams
/// finds nothing shorter.
const TRIGRAM: usize = 3;

/// The result of a search.
#[derive(Debug, Clone)]
pub struct Found {
    /// The users, the best match first.
    pub users: Vec<ListedUser>,
    /// True if there are more than these.
    pub more: bool,
}

/// The ways in which a text matches a user, the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Id,
    Email,
    Subject,
    EmailPrefix,
    NamePrefix,
    EmailPart,
    NamePart,
}

/// Matches that always have an index.
const SURE: [Way; 5] = [Way::Id, Way::Email, Way::Subject, Way::EmailPrefix, Way::NamePrefix];
/// Matches that need the optional indexes of trigrams.
const PARTS: [Way; 2] = [Way::EmailPart, Way::NamePart];

/// Returns up to `size` users whose id, e-mail address or subject is the text, or whose e-mail address or name begins
/// with it. If these are fewer and the indexes of trigrams exist, users follow whose e-mail address or name contains
/// it. Only subjects are case-sensitive. The text must not contain a NUL.
///
/// # Errors
/// See [`Error`].
pub async fn search(
    pool: &PgPool,
    text: &str,
    providers: &[String],
    filters: &Filters,
    size: usize,
) -> Result<Found, Error> {
    // An extra row tells if there are more.
    let wanted = size + 1;
    let mut users = find(pool, &SURE, text, providers, filters, wanted).await?;
    if users.len() < wanted && parts_are_indexed(pool, text).await? {
        let known: BTreeSet<Uuid> = users.iter().map(|user| user.id).collect();
        let parts = find(pool, &PARTS, text, providers, filters, wanted).await?;
        users.extend(parts.into_iter().filter(|user| !known.contains(&user.id)));
    }
    let more = users.len() > size;
    users.truncate(size);
    Ok(Found { users, more })
}

async fn find(
    pool: &PgPool,
    ways: &[Way],
    text: &str,
    providers: &[String],
    filters: &Filters,
    limit: usize,
) -> Result<Vec<ListedUser>, Error> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut sql = QueryBuilder::new("WITH found AS (");
    for (number, way) in ways.iter().enumerate() {
        sql.push(if number > 0 { " UNION ALL " } else { "" });
        sql.push("(SELECT u.id, ").push(*way as u8).push(" AS rank, ").push(way.key()).push(" AS key FROM ");
        if !filters.is_empty() && way.finds_few(pool, text).await? {
            // `OFFSET 0` keeps the planner from reading all users until enough matches pass the filters.
            sql.push("(SELECT * FROM users u");
            way.push(&mut Conditions::of(&mut sql), text, providers);
            sql.push(" OFFSET 0) AS u");
            filters.push(&mut Conditions::of(&mut sql));
        } else {
            sql.push("users u");
            let mut when = Conditions::of(&mut sql);
            way.push(&mut when, text, providers);
            filters.push(&mut when);
        }
        sql.push(way.order()).push(" LIMIT ").push_bind(limit).push(")");
    }
    sql.push("), best AS (SELECT DISTINCT ON (id) id, rank, key FROM found ORDER BY id, rank)");
    sql.push(" SELECT ").push(COLUMNS).push(" FROM (SELECT * FROM best ORDER BY rank, key, id DESC LIMIT ");
    sql.push_bind(limit).push(") AS b JOIN users u ON u.id = b.id ORDER BY b.rank, b.key, b.id DESC");
    Ok(sql.build_query_as().persistent(false).fetch_all(&mut *unprepared(pool).await?).await?)
}

impl Way {
    /// Returns the sort key among users found in the same way. Users with equal keys come newest first.
    const fn key(self) -> &'static str {
        match self {
            Self::EmailPrefix => "u.email",
            Self::NamePrefix => "lower(u.name) COLLATE \"C\"",
            _ => "NULL::text COLLATE \"C\"",
        }
    }

    const fn order(self) -> &'static str {
        match self {
            Self::Id | Self::Email | Self::Subject => "",
            Self::EmailPrefix => " ORDER BY u.email",
            Self::NamePrefix => " ORDER BY lower(u.name) COLLATE \"C\", u.id",
            Self::EmailPart | Self::NamePart => " ORDER BY u.id DESC",
        }
    }

    /// Returns `true` if this is a search for parts with so few matches that all can be fetched.
    async fn finds_few(self, pool: &PgPool, text: &str) -> Result<bool, Error> {
        if !PARTS.contains(&self) {
            return Ok(false);
        }
        let mut sql = QueryBuilder::new("EXPLAIN (FORMAT JSON) SELECT FROM users u");
        self.push(&mut Conditions::of(&mut sql), text, &[]);
        let everybody = count::estimate(pool, &Filters::default()).await?;
        Ok(count::expected(pool, sql).await? <= FEW.min(everybody / 20))
    }

    fn push(self, when: &mut Conditions<'_>, text: &str, providers: &[String]) {
        // E-mail addresses are stored in lower case. The database folds names, as their index does.
        let email = text.to_ascii_lowercase();
        match self {
            Self::Id => when.and().push("u.id = ").push_bind(Uuid::parse_str(text).ok()),
            Self::Email => when.and().push("u.email = ").push_bind(email),
            Self::Subject => when
                .and()
                .push("u.id IN (SELECT i.user_id FROM identities i WHERE i.provider = ANY(")
                .push_bind(providers.to_vec())
                .push(") AND i.subject = ")
                .push_bind(text.to_owned())
                .push(")"),
            Self::EmailPrefix => {
                when.and().push("u.email >= ").push_bind(email.clone());
                when.and().push("u.email < ").push_bind(after(&email))
            }
            Self::NamePrefix => {
                let name = "lower(u.name) COLLATE \"C\"";
                when.and().push(name).push(" >= lower(").push_bind(text.to_owned()).push(") COLLATE \"C\"");
                when.and().push(name).push(" < lower(").push_bind(after(text)).push(") COLLATE \"C\"")
            }
            Self::EmailPart => when.and().push("u.email LIKE ").push_bind(containing(&email)),
            Self::NamePart => {
                when.and().push("lower(u.name) LIKE lower(").push_bind(containing(text)).push(")")
            }
        };
    }
}

/// Returns a text that sorts after everything that begins with `text`.
fn after(text: &str) -> String {
    format!("{text}{}", char::MAX)
}

/// Returns the pattern for everything that contains the text literally (PostgreSQL, "Pattern Matching").
fn containing(text: &str) -> String {
    let mut pattern = String::from("%");
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

/// Returns `true` if a search for parts can use indexes: both exist and are valid, and the text has a trigram. If
/// `LC_CTYPE` is C, the database knows only trigrams of ASCII letters.
async fn parts_are_indexed(pool: &PgPool, text: &str) -> Result<bool, Error> {
    let has =
        |letter: fn(char) -> bool| text.split(|c| !letter(c)).any(|word| word.chars().count() >= TRIGRAM);
    if !has(char::is_alphanumeric) {
        return Ok(false);
    }
    let indexed = sqlx::query_scalar!(
        r#"SELECT count(*) = 2 AND ($1 OR NOT EXISTS (
               SELECT FROM pg_database WHERE datname = current_database() AND datctype IN ('C', 'POSIX')
           )) AS "indexed!"
           FROM pg_index
           WHERE indrelid = 'users'::regclass AND indisvalid
           AND indexrelid IN (to_regclass('users_email_trigrams_idx'), to_regclass('users_name_trigrams_idx'))"#,
        has(|letter| letter.is_ascii_alphanumeric()),
    );
    Ok(indexed.fetch_one(pool).await?)
}
