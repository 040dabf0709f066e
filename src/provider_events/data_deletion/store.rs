//! The statements of requests to delete data.

use time::OffsetDateTime;
use uuid::Uuid;

use super::Outcome;
use crate::database::{Database, Error};
use crate::domain::{Author, Role};
use crate::events::SqlAuthor;

/// A registered request, and its account.
#[derive(Debug)]
pub(super) struct Registered {
    /// The code under which its owner sees its outcome.
    pub code: Uuid,
    pub outcome: Option<Outcome>,
    pub account: Option<Account>,
}

/// An identity and its user.
#[derive(Debug)]
pub(super) struct Account {
    pub identity: Uuid,
    pub user: Uuid,
    pub updated_at: OffsetDateTime,
    pub disabled: bool,
    pub others: bool,
}

/// Registers a request, or finds it; see `register.sql`.
pub(super) async fn register(
    database: &Database,
    provider: &str,
    id: &str,
    subject: &str,
    at: i64,
) -> Result<Registered, Error> {
    let row = sqlx::query_file!(
        "src/provider_events/data_deletion/register.sql",
        // Random, unlike an id, which grows with time: it cannot be guessed.
        Uuid::new_v4(),
        provider,
        id,
        subject,
        OffsetDateTime::from_unix_timestamp(at).unwrap_or(OffsetDateTime::UNIX_EPOCH),
    );
    let row = row.fetch_one(database).await?;
    let disabled = row.disabled;
    let others = row.others;
    let account =
        row.identity
            .zip(row.user)
            .zip(row.updated_at)
            .map(|((identity, user), updated_at)| Account {
                identity,
                user,
                updated_at,
                disabled,
                others,
            });
    Ok(Registered {
        code: row.code,
        outcome: read(row.outcome.as_deref())?,
        account,
    })
}

/// Unlinks an identity and settles the request; see `unlink.sql`. Returns false, and changes
/// nothing, if the user has changed since the request was registered.
pub(super) async fn unlink(
    database: &Database,
    code: Uuid,
    account: &Account,
    by: Author<'_>,
) -> Result<bool, Error> {
    let done = sqlx::query_file_scalar!(
        "src/provider_events/data_deletion/unlink.sql",
        code,
        account.identity,
        account.user,
        account.updated_at,
        SqlAuthor::needing(Role::Admin, by) as SqlAuthor<'_>,
    );
    Ok(done.fetch_one(database).await?)
}

pub(super) async fn settle_deleted(database: &Database, code: Uuid) -> Result<(), Error> {
    let settled = sqlx::query!(
        "UPDATE provider_events SET outcome = 'deleted' WHERE code = $1 AND outcome IS NULL",
        code,
    );
    settled.execute(database).await?;
    Ok(())
}

/// Settles a request that is not carried out, and records that for staff.
pub(super) async fn settle_kept(
    database: &Database,
    code: Uuid,
    provider: &str,
    account: &Account,
    request_id: &str,
) -> Result<(), Error> {
    let settled = sqlx::query!(
        "WITH settled AS (
             UPDATE provider_events SET outcome = 'kept' WHERE code = $1 AND outcome IS NULL RETURNING code
         )
         INSERT INTO events (id, kind, provider, user_id, request_id, detail)
         SELECT $2, 'data_deletion_kept', $3, $4, $5, jsonb_build_object('identity_id', $6::uuid)
         FROM settled",
        code,
        Uuid::now_v7(),
        provider,
        account.user,
        request_id,
        account.identity,
    );
    settled.execute(database).await?;
    Ok(())
}

#[derive(Debug, Clone)]
pub struct Status {
    pub received_at: OffsetDateTime,
    /// `None` if it was not carried out yet.
    pub outcome: Option<Outcome>,
}

pub async fn status(
    database: &Database,
    provider: &str,
    code: Uuid,
) -> Result<Option<Status>, Error> {
    let row = sqlx::query!(
        "SELECT received_at, outcome FROM provider_events WHERE code = $1 AND provider = $2",
        code,
        provider,
    );
    let Some(row) = row.fetch_optional(database).await? else {
        return Ok(None);
    };
    Ok(Some(Status {
        received_at: row.received_at,
        outcome: read(row.outcome.as_deref())?,
    }))
}

fn read(outcome: Option<&str>) -> Result<Option<Outcome>, Error> {
    outcome
        .map(|name| name.parse().map_err(|_| Error::unexpected(name)))
        .transpose()
}
