//! Writes imported users by one statement, `write.sql`. A batch is written completely or not at
//! all, and writing it again changes nothing.

use std::collections::HashSet;
use std::time::Duration;

use sqlx::{Connection, Executor};
use time::OffsetDateTime;
use uuid::Uuid;

use super::batch::Summary;
use super::row::{Identity, ImportRow, ImportedUser, RowError};
use crate::database::{Database, Error};
use crate::domain::user::MAX_IDENTITIES;
use crate::domain::{Actor, Email};

/// Settings for a statement that takes longer than a request, and whose best plan depends on the
/// number of rows.
const SETTINGS: &str = "SET LOCAL statement_timeout = '10min'; SET LOCAL lock_timeout = '1min';
    SET LOCAL jit = off; SET LOCAL plan_cache_mode = force_custom_plan";

/// The time limit for the attempts to write a batch. It is longer than the statement's.
const LIMIT: Duration = Duration::from_mins(15);

/// Writes the rows of one import, which is recorded as one event.
pub struct Writer {
    database: Database,
    event: Uuid,
}

impl Writer {
    pub fn new(database: Database) -> Self {
        Self {
            database,
            event: Uuid::now_v7(),
        }
    }

    /// Writes rows and counts them. Returns the refused rows, by line. After an error, some of the
    /// rows may have been written.
    pub(super) async fn write(
        &self,
        mut rows: Vec<ImportRow>,
        summary: &mut Summary,
    ) -> Result<Vec<(u64, RowError)>, Error> {
        let mut refused = Vec::new();
        while !rows.is_empty() {
            // If a sign-in creates one of the users meanwhile, nothing is written, and the next
            // attempt finds them.
            let (outcomes, identities) = self
                .database
                .run_within(LIMIT, |_| self.write_batch(&rows))
                .await?;
            summary.identities += identities.cast_unsigned();
            let mut deferred = Vec::new();
            for (row, outcome) in rows.into_iter().zip(outcomes) {
                match outcome.as_str() {
                    "created" => summary.users += 1,
                    "linked" => summary.linked += 1,
                    "already" => summary.already += 1,
                    "deferred" => deferred.push(row),
                    "deleted" => refused.push((row.line, RowError::Deleted)),
                    "merged" => refused.push((row.line, RowError::Merged)),
                    "no_user" => refused.push((row.line, RowError::NoUser)),
                    "suspended" => refused.push((row.line, RowError::Suspended)),
                    "too_many" => refused.push((row.line, RowError::TooManyIdentities)),
                    "id_of_another" => refused.push((row.line, RowError::IdOfAnother)),
                    "email_of_another" => refused.push((row.line, RowError::EmailOfAnother)),
                    "identity_of_another" => refused.push((row.line, RowError::IdentityOfAnother)),
                    "not_ours" => refused.push((row.line, RowError::NotOurs)),
                    "unproven" => refused.push((row.line, RowError::Unproven)),
                    other => return Err(Error::unexpected(other)),
                }
            }
            rows = deferred;
        }
        Ok(refused)
    }

    /// Returns an outcome for each row, and the number of identities created.
    async fn write_batch(&self, rows: &[ImportRow]) -> Result<(Vec<String>, i64), Error> {
        let users = || rows.iter().map(|row| &row.user);
        let emails: Vec<_> = users()
            .map(|user| user.email.as_ref().map(Email::folded))
            .collect();
        let names: Vec<_> = users().map(|user| user.name.as_deref()).collect();
        let pictures: Vec<_> = users().map(|user| user.picture.as_deref()).collect();
        let owned =
            || users().flat_map(|user| user.identities.iter().map(move |it| (user.created_at, it)));
        let old = |user: &'_ ImportedUser| vec![user.old_subject.clone(); user.identities.len()];
        let identity =
            |read: fn(&Identity) -> &str| owned().map(|(_, it)| read(it)).collect::<Vec<_>>();
        let identity_emails: Vec<_> = owned()
            .map(|(_, it)| it.email.as_ref().map(Email::as_given))
            .collect();
        let numbered = (1..).zip(users());
        let owners: Vec<i64> = numbered
            .flat_map(|(number, user)| user.identities.iter().map(move |_| number))
            .collect();
        let statement = sqlx::query_file!(
            "src/import/write.sql",
            &users().map(|user| user.id).collect::<Vec<_>>() as &[Option<Uuid>],
            &users()
                .map(|user| user.id.unwrap_or_else(|| new_id(user.created_at)))
                .collect::<Vec<_>>(),
            &emails as &[Option<&str>],
            &users().map(|user| user.email_verified).collect::<Vec<_>>(),
            &names as &[Option<&str>],
            &pictures as &[Option<&str>],
            &users().map(|user| user.created_at).collect::<Vec<_>>() as &[Option<OffsetDateTime>],
            &users().map(|user| user.disabled).collect::<Vec<_>>(),
            &repeats(rows),
            &owners,
            &owned()
                .map(|(created_at, _)| new_id(created_at))
                .collect::<Vec<_>>(),
            &identity(|it| &it.provider) as &[&str],
            &identity(|it| &it.subject) as &[&str],
            &identity_emails as &[Option<&str>],
            &users().flat_map(old).collect::<Vec<_>>() as &[Option<String>],
            self.event,
            Actor::COMMAND_LINE.name(),
            i64::from(MAX_IDENTITIES),
        );
        let mut connection = self.database.acquire().await?;
        let mut transaction = connection.begin().await?;
        transaction.execute(SETTINGS).await?;
        let done = statement.fetch_one(&mut *transaction).await?;
        transaction.commit().await?;
        connection.release();
        Ok((done.outcomes, done.identities))
    }

    /// Updates the planner's statistics if rows were imported, and closes the database.
    pub(super) async fn finish(self, summary: &Summary) {
        if summary.users + summary.linked > 0
            && let Err(error) = analyze(&self.database).await
        {
            // All rows are imported all the same, and autovacuum will analyze the tables later.
            tracing::warn!(%error, "updating the planner's statistics failed; run ANALYZE users, identities");
        }
        self.database.close().await;
    }
}

/// Returns for each row whether an earlier one has the same id, e-mail address or identity.
fn repeats(rows: &[ImportRow]) -> Vec<bool> {
    #[derive(PartialEq, Eq, Hash)]
    enum Key<'a> {
        Id(Uuid),
        Email(&'a str),
        Identity(&'a str, &'a str),
    }
    fn keys(user: &ImportedUser) -> impl Iterator<Item = Key<'_>> {
        let email = user.email.as_ref().map(|email| Key::Email(email.folded()));
        let old = user.old_subject.as_deref();
        let identities = user.identities.iter().flat_map(move |it| {
            let subjects = [Some(it.subject.as_str()), old].into_iter().flatten();
            subjects.map(|subject| Key::Identity(&it.provider, subject))
        });
        user.id
            .map(Key::Id)
            .into_iter()
            .chain(email)
            .chain(identities)
    }
    let mut seen = HashSet::with_capacity(rows.len() * 3);
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        let mut repeats = false;
        // All keys of a row are noted, also the keys after a repeated one.
        for key in keys(&row.user) {
            repeats |= !seen.insert(key);
        }
        all.push(repeats);
    }
    all
}

/// Returns an id that contains the time of creation (UUID version 7, RFC 9562 §5.7), by which lists
/// order users.
fn new_id(created: Option<OffsetDateTime>) -> Uuid {
    let time =
        created.and_then(|at| Some((u64::try_from(at.unix_timestamp()).ok()?, at.nanosecond())));
    time.map_or_else(Uuid::now_v7, |(seconds, nanoseconds)| {
        Uuid::new_v7(uuid::Timestamp::from_unix(
            uuid::NoContext,
            seconds,
            nanoseconds,
        ))
    })
}

async fn analyze(database: &Database) -> Result<(), Error> {
    let mut connection = database.acquire().await?;
    // Without the privilege, ANALYZE only sends a warning and does nothing.
    let own = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'users'::regclass";
    if !sqlx::query_scalar(own).fetch_one(&mut *connection).await? {
        tracing::warn!(
            "this role may not update the planner's statistics; run ANALYZE users, identities as their owner"
        );
        return Ok(());
    }
    let mut transaction = connection.begin().await?;
    transaction
        .execute("SET LOCAL statement_timeout = 0; ANALYZE users, identities")
        .await?;
    transaction.commit().await?;
    connection.release();
    Ok(())
}
