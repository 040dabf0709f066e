//! Search for users by a text.

use std::collections::BTreeSet;

use sqlx::{PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::filter::Filters;
use super::{COLUMNS, Days, FEW, ListedUser, count};
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

/// A kind of match of a text with a user, the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    Id,
    Email,
    Subject,
    EmailPrefix,
    NamePrefix,
    EmailPart,
    NamePart,
}

/// Matches that always have an index.
const SURE: [Match; 5] = [Match::Id, Match::Email, Match::Subject, Match::EmailPrefix, Match::NamePrefix];
/// Matches that need the optional indexes of trigrams.
const PARTS: [Match; 2] = [Match::EmailPart, Match::NamePart];

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
    kinds: &[Match],
    text: &str,
    providers: &[String],
    filters: &Filters,
    limit: usize,
) -> Result<Vec<ListedUser>, Error> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let fenced = kinds == PARTS
        && match &filters.provider {
            Some(provider) => count::is_small_provider(pool, provider, FEW).await?,
            None => filters.last_seen != Days::default(),
        };
    let source = if fenced { "(SELECT * FROM users u WHERE " } else { "users u WHERE " };
    let mut sql = QueryBuilder::new("WITH found AS (");
    for (number, kind) in kinds.iter().enumerate() {
        sql.push(if number > 0 { " UNION ALL " } else { "" });
        sql.push("(SELECT u.id, ").push(*kind as u8).push(" AS rank, ").push(kind.key());
        sql.push(" AS key FROM ").push(source);
        kind.push(&mut sql, text, providers);
        if fenced {
            // Those who pass these filters may all be old. `OFFSET 0` keeps the planner from reading all users from the
            // newest on, unless most of them match the text.
            sql.push(kind.order()).push(" OFFSET 0) AS u WHERE true");
        }
        filters.push(&mut sql, None);
        sql.push(kind.order()).push(" LIMIT ").push_bind(limit).push(")");
    }
    sql.push("), best AS (SELECT DISTINCT ON (id) id, rank, key FROM found ORDER BY id, rank)");
    sql.push(" SELECT ").push(COLUMNS).push(" FROM (SELECT * FROM best ORDER BY rank, key, id DESC LIMIT ");
    sql.push_bind(limit).push(") AS b JOIN users u ON u.id = b.id ORDER BY b.rank, b.key, b.id DESC");
    Ok(sql.build_query_as().persistent(false).fetch_all(&mut *unprepared(pool).await?).await?)
}

impl Match {
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

    fn push(self, sql: &mut QueryBuilder<Postgres>, text: &str, providers: &[String]) {
        // E-mail addresses are stored in lower case. The database folds names, as their index does.
        let email = text.to_ascii_lowercase();
        match self {
            Self::Id => sql.push("u.id = ").push_bind(Uuid::parse_str(text).ok()),
            Self::Email => sql.push("u.email = ").push_bind(email),
            Self::Subject => sql
                .push("u.id IN (SELECT i.user_id FROM identities i WHERE i.provider = ANY(")
                .push_bind(providers.to_vec())
                .push(") AND i.subject = ")
                .push_bind(text.to_owned())
                .push(")"),
            Self::EmailPrefix => {
                let end = after(&email);
                sql.push("u.email >= ").push_bind(email).push(" AND u.email < ").push_bind(end)
            }
            Self::NamePrefix => {
                let name = "lower(u.name) COLLATE \"C\"";
                sql.push(name).push(" >= lower(").push_bind(text.to_owned()).push(") COLLATE \"C\" AND ");
                sql.push(name).push(" < lower(").push_bind(after(text)).push(") COLLATE \"C\"")
            }
            Self::EmailPart => sql.push("u.email LIKE ").push_bind(containing(&email)),
            Self::NamePart => sql.push("lower(u.name) LIKE lower(").push_bind(containing(text)).push(")"),
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
