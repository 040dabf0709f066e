//! Search for users by a text.

use serde::{Deserialize, Serialize};
use sqlx::{Postgres, QueryBuilder};
use uuid::Uuid;

use crate::admin::lists::users::filter::Filters;
use crate::admin::lists::users::{COLUMNS, ListedUser, Row, cursor};
use crate::database::{Database, Error};
use crate::domain::Email;
use crate::domain::text::as_typed;

/// Minimum number of consecutive letters or digits for a search within words. An index of trigrams
/// finds nothing shorter.
const TRIGRAM: usize = 3;
/// The length in bytes from which a text that names a user is not searched for within other users'
/// addresses and names: each of its trigrams costs time, and hardly any other text contains all of
/// it.
const LONG: usize = 16;
/// Minimum length in bytes of a word that may be the beginning of another: three Latin letters, or
/// one ideograph.
const BEGINNING: usize = 3;

/// The number of users that are compared with a misspelt text.
const CANDIDATES: i64 = 500;

/// Quotes, brackets and punctuation that may stand around a pasted text.
const AROUND: &str = "\"'`\u{2018}\u{2019}\u{201a}\u{201c}\u{201d}\u{201e}\u{ab}\u{bb}\u{2039}\u{203a}()[]<>{},;:.!?";

#[derive(Debug, Clone)]
pub struct Found {
    /// The users, the best match first.
    pub users: Vec<ListedUser>,
    /// The position at which the next page begins; `None` on the last.
    pub after: Option<Position>,
    /// The user who remains, if the text is the id of one who was merged.
    pub remains: Option<Uuid>,
    /// True if the text is the id, the e-mail address or the subject of exactly one user.
    pub certain: bool,
}

/// A position in the results: the way in which the last user was found, their sort key, and their
/// id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position(Way, Option<String>, Uuid);

impl Position {
    pub fn decode(text: &str) -> Option<Self> {
        cursor::decode(text).filter(|Self(way, key, _)| {
            way.key().is_some() == key.is_some() && key.as_deref().is_none_or(cursor::is_text)
        })
    }

    pub fn encode(&self) -> String {
        cursor::encode(self)
    }
}

/// The ways in which a text matches a user, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Way {
    /// It names the user: an id, an e-mail address or a subject.
    Whole,
    /// The user's e-mail address begins with it.
    Email,
    /// The user's name begins with it.
    Name,
    /// Each of its words begins a word of a name or of an e-mail address of the user.
    Words,
    /// Each of its words is in the user's e-mail address or name. This needs the optional indexes
    /// of trigrams.
    Parts,
}

/// A text as it is compared with what the database holds.
#[derive(Default)]
struct Text {
    email: String,
    name: String,
    /// The words, if there are any (PostgreSQL, "tsquery").
    words: Option<String>,
    /// The patterns of the words, if indexes serve a search for them.
    parts: Option<Vec<String>>,
    has_trigrams: bool,
    /// `true` if the database takes only ASCII letters for letters, so that trigrams hold no others.
    is_ascii: bool,
    named: Vec<Uuid>,
    remains: Option<Uuid>,
}

/// Returns one page of up to `size` users who match the text: users whom it names, users whose
/// e-mail address or name begins with it, and users who have all of its words in any order. Case
/// and accents count only in subjects. The text must not contain a NUL.
///
/// If no user matches, it searches for parts of the text that staff may have pasted along with
/// other text: an e-mail address, an id, or a text in quotes or brackets.
pub async fn search(
    database: &Database,
    text: &str,
    providers: &[String],
    filters: &Filters,
    start: Option<&Position>,
    size: usize,
) -> Result<Found, Error> {
    let found = search_whole(database, text, providers, filters, start, size).await?;
    if !found.users.is_empty() {
        return Ok(found);
    }
    for within in pasted(text) {
        let within = search_whole(database, &within, providers, filters, start, size).await?;
        if !within.users.is_empty() {
            return Ok(within);
        }
    }
    Ok(found)
}

/// Returns the parts of a pasted text that may name a user: the first e-mail address, also with its
/// domain in the other form (RFC 5890 §2.3.2.1), the first id, and the text without surrounding
/// quotes, brackets and punctuation, also in the characters that a keyboard has.
fn pasted(text: &str) -> Vec<String> {
    let address = Email::first_in(text).map(|email| email.folded().to_owned());
    let other_form = address.as_deref().and_then(|address| {
        let (mailbox, domain) = address.split_once('@')?;
        let other = if domain.is_ascii() {
            idna::domain_to_unicode(domain).0
        } else {
            idna::domain_to_ascii(domain).ok()?
        };
        (other != domain).then(|| format!("{mailbox}@{other}"))
    });
    let typed = as_typed(text);
    let id = typed
        .split(|letter: char| !letter.is_ascii_hexdigit() && letter != '-')
        .find(|word| word.len() >= 32 && Uuid::parse_str(word).is_ok())
        .map(str::to_owned);
    let is_around = |character: char| character.is_whitespace() || AROUND.contains(character);
    let bare = text.trim_matches(is_around).to_owned();
    let typed = typed.trim_matches(is_around).to_owned();
    let mut texts: Vec<_> = [address, other_form, id, Some(bare), Some(typed)]
        .into_iter()
        .flatten()
        .collect();
    texts.retain(|within| !within.is_empty() && within != text);
    texts.dedup();
    texts
}

async fn search_whole(
    database: &Database,
    text: &str,
    providers: &[String],
    filters: &Filters,
    start: Option<&Position>,
    size: usize,
) -> Result<Found, Error> {
    database
        .run(|_| async {
            // An extra row shows that there are more.
            let wanted = size + 1;
            let mut found = Vec::<(Way, Row)>::new();
            let text = Text::read(database, text, providers, size).await?;
            let first = start.map_or(Way::Whole, |position| position.0);
            for way in Way::ALL.into_iter().skip_while(|way| *way < first) {
                let start = start.filter(|position| position.0 == way);
                if found.len() < wanted && text.serves(way, start) {
                    let mut query = text.statement(way, filters, start, wanted - found.len());
                    let query = query.build_query_as::<Row>();
                    let rows = query
                        .persistent(false)
                        .fetch_all(database.planned_each_time())
                        .await?;
                    found.extend(rows.into_iter().map(|row| (way, row)));
                }
            }
            let more = found.len() > size;
            found.truncate(size);
            let after = found.last().filter(|_| more);
            Ok::<_, Error>(Found {
                after: after.map(|(way, row)| Position(*way, row.key.clone(), row.user.id)),
                users: found.into_iter().map(|(_, row)| row.user).collect(),
                remains: text.remains,
                certain: text.named.len() == 1 && text.remains.is_none(),
            })
        })
        .await
}

/// Returns the text with its typing mistakes corrected, if users match the result: the address at
/// another domain, or the text with the most similar word of a name in place of each word that no
/// user has. Needs the optional indexes of trigrams for names.
pub async fn suggest(database: &Database, text: &str) -> Result<Option<String>, Error> {
    let text = Text::read(database, text, &[], 1).await?;
    if let Some((mailbox, _)) = text.email.split_once('@') {
        let mut sql = QueryBuilder::new("SELECT u.email FROM users u WHERE ");
        push_beginning(&mut sql, "u.email", &format!("{mailbox}@"));
        let addresses = texts(database, sql).await?;
        return Ok(nearest(&text.email, addresses.iter().map(String::as_str)).map(str::to_owned));
    }
    let mut corrected = Vec::new();
    let mut changed = false;
    for word in split(&text.name) {
        if text.known(database, word).await? {
            corrected.push(word.to_owned());
            continue;
        }
        let is_long = word.chars().count() > TRIGRAM;
        if !(text.has_trigrams && is_long && word.chars().all(|letter| text.has_letter(letter))) {
            return Ok(None);
        }
        // If a word has one mistake, one of its halves is correct.
        let mut sql = QueryBuilder::new("SELECT u.folded_name FROM users u WHERE false");
        for half in halves(word) {
            sql.push(" OR u.folded_name LIKE ")
                .push_bind(containing(&half));
        }
        let names = texts(database, sql).await?;
        let Some(near) = nearest(word, names.iter().flat_map(|name| split(name))) else {
            return Ok(None);
        };
        corrected.push(near.to_owned());
        changed = true;
    }
    Ok(changed.then(|| corrected.join(" ")))
}

/// Returns the texts that a statement selects, up to some hundreds.
async fn texts(database: &Database, mut sql: QueryBuilder<Postgres>) -> Result<Vec<String>, Error> {
    sql.push(" LIMIT ").push_bind(CANDIDATES);
    let query = sql.build_query_scalar();
    Ok(query
        .persistent(false)
        .fetch_all(database.planned_each_time())
        .await?)
}

/// Returns the beginning and the end of a word, each long enough for the index.
fn halves(word: &str) -> [String; 2] {
    let length = word.chars().count();
    let half = (length / 2).max(TRIGRAM);
    [
        word.chars().take(half).collect(),
        word.chars().skip(length - half).collect(),
    ]
}

/// Returns the candidate with the fewest mistakes, if it has one in four letters at most.
fn nearest<'a>(text: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mistakes = |candidate: &'a str| (strsim::damerau_levenshtein(text, candidate), candidate);
    let (mistakes, nearest) = candidates.map(mistakes).min()?;
    (mistakes * 4 <= text.chars().count().max(4)).then_some(nearest)
}

impl Text {
    async fn read(
        database: &Database,
        text: &str,
        providers: &[String],
        limit: usize,
    ) -> Result<Self, Error> {
        let email = text.to_ascii_lowercase();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let id = Uuid::parse_str(text).ok();
        let query = sqlx::query_file!(
            "src/admin/lists/users/search.sql",
            text,
            id,
            email,
            providers,
            limit
        );
        let row = query.fetch_one(database).await?;
        let mut read = Self {
            words: words(&row.folded),
            parts: None,
            has_trigrams: row.has_trigrams,
            is_ascii: row.knows_ascii_only,
            email,
            name: row.folded,
            named: row.named,
            remains: row.remains,
        };
        let mut words = read.name.split(|letter| !read.has_letter(letter));
        let has_trigram = words.any(|word| word.chars().count() >= TRIGRAM);
        if read.has_trigrams && has_trigram && (read.named.is_empty() || text.len() < LONG) {
            read.parts = Some(read.name.split_whitespace().map(containing).collect());
        }
        Ok(read)
    }

    /// Returns `true` if trigrams have the character, since the database takes it for a letter or a
    /// digit.
    fn has_letter(&self, character: char) -> bool {
        if self.is_ascii {
            character.is_ascii_alphanumeric()
        } else {
            character.is_alphanumeric()
        }
    }

    /// Returns `true` if a user has a word that begins with this one.
    async fn known(&self, database: &Database, word: &str) -> Result<bool, Error> {
        let alone = Self {
            words: words(word),
            ..Self::default()
        };
        let mut sql = QueryBuilder::new("SELECT EXISTS (");
        alone.push_having_words(&mut sql);
        sql.push(")");
        let query = sql.build_query_scalar();
        Ok(query
            .persistent(false)
            .fetch_one(database.planned_each_time())
            .await?)
    }

    /// Returns `true` if users may be found in that way from the position on.
    fn serves(&self, way: Way, start: Option<&Position>) -> bool {
        match way {
            Way::Whole => start.is_none() && !self.named.is_empty(),
            Way::Email => true,
            // Several words match in any order, so their order must not make a difference.
            Way::Name => split(&self.name).count() == 1,
            Way::Words => self.words.is_some(),
            Way::Parts => self.parts.is_some(),
        }
    }

    fn statement(
        &self,
        way: Way,
        filters: &Filters,
        start: Option<&Position>,
        limit: usize,
    ) -> QueryBuilder<Postgres> {
        let mut sql = QueryBuilder::new("SELECT ");
        sql.push(COLUMNS)
            .push(", ")
            .push(way.key().unwrap_or("NULL::text"))
            .push(" AS key FROM users u WHERE ");
        self.push(&mut sql, way);
        filters.push(&mut sql);
        for better in Way::ALL
            .into_iter()
            .filter(|better| *better < way && self.serves(*better, None))
        {
            self.push(sql.push(" AND ("), better);
            sql.push(") IS NOT TRUE");
        }
        if let Some(Position(_, key, id)) = start {
            match way.key() {
                Some(column) => {
                    sql.push(" AND (")
                        .push(column)
                        .push(", u.id) > (")
                        .push_bind(key.clone());
                    sql.push(", ").push_bind(*id).push(")")
                }
                None => sql.push(" AND u.id < ").push_bind(*id),
            };
        }
        sql.push(" ORDER BY ");
        match way {
            Way::Whole => sql
                .push("array_position(")
                .push_bind(self.named.clone())
                .push(", u.id)"),
            Way::Email | Way::Name => sql.push(way.key().unwrap_or_default()).push(", u.id"),
            Way::Words | Way::Parts => sql.push("u.id DESC"),
        };
        sql.push(" LIMIT ")
            .push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
        sql
    }

    fn push(&self, sql: &mut QueryBuilder<Postgres>, way: Way) {
        match way {
            Way::Whole => {
                sql.push("u.id = ANY(")
                    .push_bind(self.named.clone())
                    .push(")");
            }
            Way::Email => push_beginning(sql, "u.email", &self.email),
            Way::Name => push_beginning(sql, "u.folded_name", &self.name),
            Way::Words => {
                sql.push("u.id IN (");
                self.push_having_words(sql);
                sql.push(")");
            }
            Way::Parts => {
                for (number, part) in self.parts.iter().flatten().enumerate() {
                    sql.push(if number > 0 { " AND " } else { "" });
                    sql.push("(u.email LIKE ").push_bind(part.clone());
                    sql.push(" OR u.folded_name LIKE ")
                        .push_bind(part.clone())
                        .push(")");
                }
            }
        }
    }

    fn push_having_words(&self, sql: &mut QueryBuilder<Postgres>) {
        sql.push("SELECT user_id AS id FROM identities WHERE ");
        sql.push("search_words(search_fold(name), search_fold(split_part(email, '@', 1))) @@ ");
        sql.push_bind(self.words.clone()).push("::tsquery");
        for others in ["seen_noted_on IS NULL", "own_name"] {
            sql.push(" UNION ALL SELECT id FROM users WHERE ")
                .push(others);
            sql.push(" AND search_words(folded_name, search_fold(split_part(email, '@', 1))) @@ ");
            sql.push_bind(self.words.clone()).push("::tsquery");
        }
    }
}

impl Way {
    const ALL: [Self; 5] = [
        Self::Whole,
        Self::Email,
        Self::Name,
        Self::Words,
        Self::Parts,
    ];

    /// Returns the sort key among users found in the same way. Without one, the newest come first.
    const fn key(self) -> Option<&'static str> {
        match self {
            Self::Email => Some("u.email"),
            Self::Name => Some("u.folded_name"),
            Self::Whole | Self::Words | Self::Parts => None,
        }
    }
}

/// Appends the condition that a text begins with another, as a range of its index.
fn push_beginning(sql: &mut QueryBuilder<Postgres>, column: &'static str, text: &str) {
    sql.push(column)
        .push(" >= ")
        .push_bind(text.to_owned())
        .push(" AND ");
    sql.push(column)
        .push(" < ")
        .push_bind(format!("{text}{}", char::MAX));
}

fn split(folded: &str) -> impl Iterator<Item = &str> {
    folded
        .split([' ', ',', '.', '-', '_', '+'])
        .filter(|word| !word.is_empty())
}

/// Returns the query for all words of a folded text, if it has any. Each may be the beginning of
/// another word, unless all are so short that too many begin with them.
fn words(folded: &str) -> Option<String> {
    let words: Vec<_> = split(folded).collect();
    let beginnings = words.iter().any(|word| word.len() >= BEGINNING);
    let quoted = words.iter().map(|word| {
        let word = word.replace('\\', "\\\\").replace('\'', "''");
        if beginnings {
            format!("'{word}':*")
        } else {
            format!("'{word}'")
        }
    });
    (!words.is_empty()).then(|| quoted.collect::<Vec<_>>().join(" & "))
}

/// Returns the pattern for everything that contains the text literally (PostgreSQL, "Pattern
/// Matching").
fn containing(text: &str) -> String {
    let literal = text
        .replace('\\', "\\\\")
        .replace('%', "\\%")
        .replace('_', "\\_");
    format!("%{literal}%")
}
