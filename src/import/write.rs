//! Bulk import of users from another system.
//!
//! One statement (`import.sql`) classifies the rows of a batch, and the same transaction copies new users into the
//! tables. A batch is written completely or not at all, and writing it again changes nothing.

use std::collections::HashSet;
use std::fmt::Display;

use sqlx::{Connection, Executor, PgConnection, PgPool};
use time::OffsetDateTime;
use uuid::Uuid;

use super::row::{Identity, Person, Refused};
use crate::domain::email::Email;
use crate::store::Error;
use crate::store::copy::Rows;

/// A row to import.
#[derive(Debug)]
pub struct Arrival {
    /// The user.
    pub person: Person,
    /// True if an earlier row of the batch has the same id, e-mail address or identity.
    pub repeats: bool,
}

/// The result of a batch. Rows are given by their index in it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Number of users created.
    pub users: u64,
    /// Number of identities created.
    pub identities: u64,
    /// Number of rows that linked an identity to an existing user.
    pub linked: u64,
    /// Number of rows whose data all existed.
    pub already: u64,
    /// Refused rows.
    pub refused: Vec<(usize, Refused)>,
    /// Rows to import again, after those that they repeat.
    pub later: Vec<usize>,
}

/// The action for a row.
#[derive(Debug, Clone, Copy)]
enum Plan {
    Create,
    /// Adds the row's identities to this user.
    Link(Uuid),
    Nothing,
}

/// The actions for a batch.
#[derive(Debug)]
struct Plans {
    rows: Vec<Plan>,
    /// Existing identities of the rows to link, by their index in the batch.
    known: HashSet<usize>,
}

/// Settings for a transaction that takes longer than a request and looks up row by row.
const PATIENCE: &str =
    "SET LOCAL statement_timeout = '10min'; SET LOCAL lock_timeout = '1min'; SET LOCAL jit = off";
const USERS: &str =
    "COPY users (id, email, email_verified, name, picture, created_at, updated_at, disabled_at, imported_at)
    FROM STDIN";
const IDENTITIES: &str =
    "COPY identities (id, user_id, provider, subject, email, email_verified, name, picture, created_at,
                     updated_at)
    FROM STDIN";

/// Imports rows, and adds their number to the event with that id.
///
/// With `unseen`, it assumes that all rows are new and looks nothing up. A row that exists after all fails with
/// [`Error::Raced`], as does one that a sign-in creates meanwhile.
///
/// # Errors
/// See [`Error`]. Nothing was written, unless the connection broke: then everything may have been.
pub async fn bring_in(
    pool: &PgPool,
    arrivals: &[Arrival],
    unseen: bool,
    event: Uuid,
    actor: &str,
) -> Result<Judged, Error> {
    let mut connection = pool.acquire().await?;
    let mut transaction = connection.begin().await?;
    transaction.execute(PATIENCE).await?;
    let (mut judged, plans) =
        if unseen { assume(arrivals) } else { judge(&mut transaction, arrivals).await? };
    let planned = arrivals.iter().zip(&plans.rows);
    let linked: Vec<_> =
        planned.filter_map(|(arrival, plan)| Some((plan.user()?, joins(&arrival.person)))).collect();
    let ours = if linked.is_empty() { HashSet::new() } else { touch(&mut transaction, linked).await? };
    let (users, identities) = {
        let now = timestamp(now(&mut transaction).await?);
        rows(arrivals, &plans, &ours, &now, &mut judged)
    };
    if judged.users > 0 {
        users.send(&mut transaction, USERS).await?;
    }
    if judged.identities > 0 {
        identities.send(&mut transaction, IDENTITIES).await?;
    }
    if judged.users + judged.identities > 0 {
        record(&mut transaction, event, actor, &judged).await?;
    }
    transaction.commit().await?;
    Ok(judged)
}

impl Plan {
    const fn user(self) -> Option<Uuid> {
        match self {
            Self::Link(user) => Some(user),
            Self::Create | Self::Nothing => None,
        }
    }
}

/// Returns the actions for a batch of new rows.
fn assume(arrivals: &[Arrival]) -> (Judged, Plans) {
    let plan = |arrival: &Arrival| if arrival.repeats { Plan::Nothing } else { Plan::Create };
    let plans = Plans { rows: arrivals.iter().map(plan).collect(), known: HashSet::new() };
    let numbered = arrivals.iter().enumerate();
    let later = numbered.filter_map(|(number, arrival)| arrival.repeats.then_some(number)).collect();
    (Judged { later, ..Judged::default() }, plans)
}

async fn judge(connection: &mut PgConnection, arrivals: &[Arrival]) -> Result<(Judged, Plans), Error> {
    fn each<T>(arrivals: &[Arrival], read: impl Fn(&Arrival) -> T) -> Vec<T> {
        arrivals.iter().map(read).collect()
    }
    let identities = || {
        let numbered = (1_i64..).zip(arrivals);
        numbered.flat_map(|(number, arrival)| arrival.person.identities.iter().map(move |it| (number, it)))
    };
    let emails = each(arrivals, |it| it.person.email.as_ref().map(|email| email.folded().to_owned()));
    let verdicts = sqlx::query_file!(
        "src/import/write.sql",
        &each(arrivals, |it| it.person.id) as &[Option<Uuid>],
        &emails as &[Option<String>],
        &each(arrivals, |it| it.person.email_verified),
        &each(arrivals, |it| it.repeats),
        &each(arrivals, |it| i64::try_from(it.person.identities.len()).unwrap_or(i64::MAX)),
        &identities().map(|(number, _)| number).collect::<Vec<_>>(),
        &identities().map(|(_, it)| it.provider.clone()).collect::<Vec<_>>(),
        &identities().map(|(_, it)| it.subject.clone()).collect::<Vec<_>>(),
        &each(arrivals, |it| joins(&it.person).is_some()),
    )
    .fetch_all(connection)
    .await?;
    // PostgreSQL counts from 1.
    let place = |number: i64| usize::try_from(number - 1).unwrap_or(usize::MAX);
    let mut judged = Judged::default();
    let mut plans = Plans { rows: vec![Plan::Create; arrivals.len()], known: HashSet::new() };
    for verdict in verdicts {
        plans.known.extend(verdict.known.into_iter().map(place));
        let numbers: Vec<_> = verdict.numbers.into_iter().map(place).collect();
        for number in &numbers {
            plans.rows[*number] = Plan::Nothing;
        }
        let refused = match verdict.verdict.as_str() {
            "already" => {
                judged.already = numbers.len() as u64;
                continue;
            }
            "linked" => {
                for (number, user) in numbers.into_iter().zip(verdict.people) {
                    plans.rows[number] = Plan::Link(user);
                }
                continue;
            }
            "later" => {
                judged.later = numbers;
                continue;
            }
            "id_of_another" => Refused::IdOfAnother,
            "email_of_another" => Refused::EmailOfAnother,
            "identity_of_another" => Refused::IdentityOfAnother,
            "not_ours" => Refused::NotOurs,
            "unproven" => Refused::Unproven,
            other => return Err(Error::unexpected(other)),
        };
        judged.refused.extend(numbers.into_iter().map(|number| (number, refused.clone())));
    }
    Ok((judged, plans))
}

/// Returns the verified e-mail address by which a row without an id is linked to the user who has proved it. A disabled
/// row is never linked by it.
fn joins(person: &Person) -> Option<&str> {
    let email = person.email.as_ref().map(Email::folded);
    email.filter(|_| person.id.is_none() && person.email_verified && !person.disabled)
}

/// Marks users as changed if they still are as an import left them, or still have the e-mail address that links them.
/// Returns these users.
async fn touch(
    connection: &mut PgConnection,
    linked: Vec<(Uuid, Option<&str>)>,
) -> Result<HashSet<Uuid>, Error> {
    let (users, emails): (Vec<_>, Vec<_>) =
        linked.into_iter().map(|(user, email)| (user, email.map(str::to_owned))).unzip();
    let ours = sqlx::query_scalar!(
        "UPDATE users u
         SET updated_at = now(),
             imported_at = CASE WHEN u.imported_at = u.updated_at AND u.last_seen_on IS NULL THEN now()
                                ELSE u.imported_at END
         FROM unnest($1::uuid[], $2::text[]) AS l (id, email)
         WHERE u.id = l.id AND (u.imported_at = u.updated_at AND u.last_seen_on IS NULL
                                OR u.email = l.email AND u.email_verified)
         RETURNING u.id",
        &users,
        &emails as &[Option<String>],
    );
    Ok(ours.fetch_all(connection).await?.into_iter().collect())
}

/// Returns the transaction's time.
async fn now(connection: &mut PgConnection) -> Result<OffsetDateTime, Error> {
    Ok(sqlx::query_scalar!(r#"SELECT now() AS "now!""#).fetch_one(connection).await?)
}

/// Returns the rows to copy into the tables, and counts them in `judged`.
fn rows(
    arrivals: &[Arrival],
    plans: &Plans,
    ours: &HashSet<Uuid>,
    now: &str,
    judged: &mut Judged,
) -> (Rows, Rows) {
    let (mut users, mut identities) = (Rows::default(), Rows::default());
    let mut place = 0;
    for (number, (Arrival { person, .. }, plan)) in arrivals.iter().zip(&plans.rows).enumerate() {
        let places = place..;
        place += person.identities.len();
        let created = person.created_at.map_or_else(|| now.to_owned(), timestamp);
        let id = match plan {
            Plan::Nothing => continue,
            // The user has changed since the classification.
            Plan::Link(user) if !ours.contains(user) => {
                judged.later.push(number);
                continue;
            }
            Plan::Link(user) => {
                judged.linked += 1;
                *user
            }
            Plan::Create => {
                judged.users += 1;
                let id = person.id.unwrap_or_else(|| new_id(person.created_at));
                user(&mut users, id, person, &created, now);
                id
            }
        };
        for (given, place) in person.identities.iter().zip(places) {
            if !plans.known.contains(&place) {
                judged.identities += 1;
                identity(&mut identities, id, person, given, &created, now);
            }
        }
    }
    judged.later.sort_unstable();
    (users, identities)
}

fn user(rows: &mut Rows, id: Uuid, person: &Person, created: &str, now: &str) {
    rows.push(&[
        Some(&id),
        text(person.email.as_ref().map(Email::folded).as_ref()),
        Some(&person.email_verified),
        text(person.name.as_ref()),
        text(person.picture.as_ref()),
        Some(&created),
        Some(&now),
        text(person.disabled.then_some(now).as_ref()),
        Some(&now),
    ]);
}

fn identity(rows: &mut Rows, user: Uuid, person: &Person, identity: &Identity, created: &str, now: &str) {
    rows.push(&[
        Some(&new_id(person.created_at)),
        Some(&user),
        Some(&identity.provider),
        Some(&identity.subject),
        text(identity.email.as_ref().map(Email::as_given).as_ref()),
        Some(&identity.email_verified),
        text(person.name.as_ref()),
        text(person.picture.as_ref()),
        Some(&created),
        Some(&now),
    ]);
}

/// Returns an id that contains the time of creation (UUID version 7, RFC 9562 §5.7), by which lists order users.
fn new_id(created: Option<OffsetDateTime>) -> Uuid {
    let time = created.and_then(|at| Some((u64::try_from(at.unix_timestamp()).ok()?, at.nanosecond())));
    time.map_or_else(Uuid::now_v7, |(seconds, nanoseconds)| {
        Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanoseconds))
    })
}

/// Formats a time for PostgreSQL.
fn timestamp(at: OffsetDateTime) -> String {
    let at = at.to_utc();
    format!("{} {}+00", at.date(), at.time())
}

fn text<T: Display>(value: Option<&T>) -> Option<&dyn Display> {
    value.map(|value| value as &dyn Display)
}

/// Adds a batch to the single event of its import.
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

/// Updates the planner's statistics.
///
/// # Errors
/// See [`Error`].
pub async fn analyze(pool: &PgPool) -> Result<(), Error> {
    let mut connection = pool.acquire().await?;
    let mut transaction = connection.begin().await?;
    transaction.execute("SET LOCAL statement_timeout = 0; ANALYZE users, identities").await?;
    Ok(transaction.commit().await?)
}
