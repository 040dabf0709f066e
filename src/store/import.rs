//! Users who existed elsewhere, written many at once.
//!
//! A batch is copied into tables of its own transaction and judged there; see `import.sql`. It is all or nothing,
//! and the same batch again finds everybody there already.

use std::fmt::Display;

use sqlx::{Connection, Executor, PgConnection, PgPool};
use time::OffsetDateTime;
use uuid::Uuid;

use super::Error;
use super::copy::Rows;
use crate::domain::email::Email;
use crate::domain::import::{Person, Refused};

/// Somebody to bring in.
#[derive(Debug)]
pub struct Arrival {
    /// Who.
    pub person: Person,
    /// Whether an arrival before this one in the batch has the same id, address or identity.
    pub repeats: bool,
}

/// What became of a batch. Rows are told by their place in it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Users that were created.
    pub users: u64,
    /// Identities that were created.
    pub identities: u64,
    /// Rows that brought an identity to a user of an earlier one.
    pub linked: u64,
    /// Rows of which everything was there.
    pub already: u64,
    /// Rows that are refused.
    pub refused: Vec<(usize, Refused)>,
    /// Rows that have to come again, after those that they repeat.
    pub later: Vec<usize>,
}

/// Tables for one transaction. The addresses' collation is that of the columns that they are looked up in.
const TABLES: &str = r#"
SET LOCAL jit = off;
SET LOCAL statement_timeout = '10min';
SET LOCAL lock_timeout = '1min';
CREATE TEMPORARY TABLE arriving (
    number integer, repeats boolean, given_id uuid, new_id uuid, email text COLLATE "C", email_verified boolean,
    name text, picture text, created_at timestamptz, disabled boolean, identities bigint
) ON COMMIT DROP;
CREATE TEMPORARY TABLE arriving_identities (
    number integer, id uuid, provider text, subject text, email text, email_verified boolean
) ON COMMIT DROP"#;

/// Brings people in, and adds their number to the event of that id.
///
/// # Errors
/// Nothing was written, or, where the connection broke, perhaps all of it; see [`Error`].
pub async fn bring_in(
    pool: &PgPool,
    arrivals: &[Arrival],
    event: Uuid,
    actor: &str,
) -> Result<Judged, Error> {
    let (people, identities) = rows(arrivals);
    let mut connection = pool.acquire().await?;
    let mut transaction = connection.begin().await?;
    transaction.execute(TABLES).await?;
    people.send(&mut transaction, "COPY pg_temp.arriving FROM STDIN").await?;
    identities.send(&mut transaction, "COPY pg_temp.arriving_identities FROM STDIN").await?;
    let judged = judge(&mut transaction).await?;
    if judged.users + judged.identities > 0 {
        record(&mut transaction, event, actor, &judged).await?;
    }
    transaction.commit().await?;
    Ok(judged)
}

/// The arrivals as they are copied.
fn rows(arrivals: &[Arrival]) -> (Rows, Rows) {
    let (mut people, mut identities) = (Rows::default(), Rows::default());
    for (number, Arrival { person, repeats }) in arrivals.iter().enumerate() {
        let created = person.created_at.map(|at| format!("{} {}+00", at.date(), at.time()));
        let (id, count) = (new_id(person.created_at), person.identities.len());
        people.push(&[
            Some(&number),
            Some(repeats),
            text(person.id.as_ref()),
            Some(&id),
            text(person.email.as_ref().map(Email::folded).as_ref()),
            Some(&person.email_verified),
            text(person.name.as_ref()),
            text(person.picture.as_ref()),
            text(created.as_ref()),
            Some(&person.disabled),
            Some(&count),
        ]);
        for identity in &person.identities {
            let id = new_id(person.created_at);
            identities.push(&[
                Some(&number),
                Some(&id),
                Some(&identity.provider),
                Some(&identity.subject),
                text(identity.email.as_ref().map(Email::as_given).as_ref()),
                Some(&identity.email_verified),
            ]);
        }
    }
    (people, identities)
}

/// Ids tell the time (UUID version 7, RFC 9562 §5.7), by which the newest users are found.
fn new_id(created: Option<OffsetDateTime>) -> Uuid {
    let time = created.and_then(|at| Some((u64::try_from(at.unix_timestamp()).ok()?, at.nanosecond())));
    time.map_or_else(Uuid::now_v7, |(seconds, nanoseconds)| {
        Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanoseconds))
    })
}

fn text<T: Display>(value: Option<&T>) -> Option<&dyn Display> {
    value.map(|value| value as &dyn Display)
}

async fn judge(transaction: &mut PgConnection) -> Result<Judged, Error> {
    // The tables are new each time, so that there is nothing to prepare for another.
    let rows: Vec<(String, i64, Vec<i32>, i64)> =
        sqlx::query_as(include_str!("import.sql")).persistent(false).fetch_all(transaction).await?;
    let mut judged = Judged::default();
    for (verdict, count, numbers, identities) in rows {
        let (count, numbers) =
            (count.unsigned_abs(), numbers.into_iter().filter_map(|n| usize::try_from(n).ok()));
        judged.identities = identities.unsigned_abs();
        let refused = match verdict.as_str() {
            "created" => {
                judged.users = count;
                continue;
            }
            "linked" => {
                judged.linked = count;
                continue;
            }
            "already" => {
                judged.already = count;
                continue;
            }
            "later" => {
                judged.later = numbers.collect();
                continue;
            }
            "id_of_another" => Refused::IdOfAnother,
            "email_of_another" => Refused::EmailOfAnother,
            "identity_of_another" => Refused::IdentityOfAnother,
            "not_ours" => Refused::NotOurs,
            "unproven" => Refused::Unproven,
            other => return Err(Error::unexpected(other)),
        };
        judged.refused.extend(numbers.map(|number| (number, refused.clone())));
    }
    // In the order of the file, so that those that come again do so in theirs.
    judged.refused.sort_unstable_by_key(|(number, _)| *number);
    judged.later.sort_unstable();
    Ok(judged)
}

/// One event an import, however many batches it has: each adds its own.
async fn record(
    connection: &mut PgConnection,
    event: Uuid,
    actor: &str,
    judged: &Judged,
) -> Result<(), Error> {
    sqlx::query!(
        "INSERT INTO events (id, kind, actor, detail)
         VALUES ($1, 'users_imported', $2, jsonb_build_object('users', $3::bigint, 'identities', $4::bigint))
         ON CONFLICT ON CONSTRAINT events_pkey DO UPDATE
         SET detail = jsonb_build_object('users', (events.detail->>'users')::bigint + $3,
                                         'identities', (events.detail->>'identities')::bigint + $4)",
        event,
        actor,
        judged.users.cast_signed(),
        judged.identities.cast_signed(),
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Tells the planner what the tables hold now.
///
/// # Errors
/// See [`Error`].
pub async fn analyze(pool: &PgPool) -> Result<(), Error> {
    let mut connection = pool.acquire().await?;
    let mut transaction = connection.begin().await?;
    transaction.execute("SET LOCAL statement_timeout = 0; ANALYZE users, identities").await?;
    Ok(transaction.commit().await?)
}
