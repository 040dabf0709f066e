//! The codes and tokens of providers.
//!
//! A token is kept if its identity exists when the token is stored; otherwise, it is stored to be
//! revoked. The statement that stores it locks the identity first, as the identity's deletion does,
//! so that the later of the two sees the earlier. A statement that has locked a token first does
//! not wait for an identity.

use std::collections::BTreeMap;

use time::OffsetDateTime;
use uuid::Uuid;

use super::schedule::{LIFE_OF_CODE, PATIENCE};
use crate::database::{Database, Error};
pub use crate::queue::Summary;

#[derive(Debug, Clone)]
pub struct Owner {
    pub provider: String,
    pub subject: String,
    /// The client that it was issued to.
    pub client_id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum State {
    /// An authorization code to exchange.
    Code,
    /// A token whose identity exists.
    Kept,
    /// A token to revoke.
    Due,
}

/// A row that this instance has to deal with.
#[derive(Debug, Clone)]
pub struct Claimed {
    pub id: Uuid,
    pub owner: Owner,
    /// The state; [`State::Kept`] if the identity was linked again, so that nothing is to be done.
    pub state: State,
    /// The code or the token.
    pub sealed: Vec<u8>,
    pub access: bool,
    /// The attempts, including this one.
    pub attempts: i16,
}

/// Stores a code to exchange. The same code again changes nothing.
pub async fn keep_code(
    database: &Database,
    id: Uuid,
    owner: &Owner,
    sealed: &[u8],
) -> Result<(), Error> {
    let Owner {
        provider,
        subject,
        client_id,
    } = owner;
    sqlx::query!(
        "INSERT INTO provider_tokens (id, provider, subject, client_id, state, sealed, next_attempt_at)
         VALUES ($1, $2, $3, $4, 'code', $5, now())
         ON CONFLICT ON CONSTRAINT provider_tokens_pkey DO NOTHING",
        id,
        provider,
        subject,
        client_id,
        sealed,
    )
    .execute(database)
    .await?;
    Ok(())
}

/// Takes up to `limit` rows of a provider that are due, for `lease` seconds. A token whose identity
/// was linked again is kept. It looks at rows that are due since `since`, or at all rows. If the
/// connection is lost, rows may have been taken until their lease ends.
pub async fn claim(
    database: &Database,
    provider: &str,
    since: Option<OffsetDateTime>,
    limit: usize,
    lease: u32,
) -> Result<Vec<Claimed>, Error> {
    let rows = sqlx::query!(
        r#"WITH waiting AS MATERIALIZED (
               SELECT t.id, t.state, t.provider, t.subject FROM provider_tokens t
               WHERE t.provider = $1 AND t.state <> 'kept' AND t.parked_at IS NULL
                     AND t.next_attempt_at >= coalesce($4::timestamptz, '-infinity') AND t.next_attempt_at <= now()
               ORDER BY t.next_attempt_at LIMIT $2
               FOR UPDATE SKIP LOCKED
           ),
           -- An identity that is being deleted is in neither of these, and its token waits for another second.
           there AS MATERIALIZED (
               SELECT w.id FROM waiting w JOIN identities i ON i.provider = w.provider AND i.subject = w.subject
               WHERE w.state = 'due'
               FOR KEY SHARE OF i SKIP LOCKED
           ),
           gone AS MATERIALIZED (
               SELECT w.id FROM waiting w
               WHERE w.state = 'code'
                     OR NOT EXISTS (SELECT FROM identities i WHERE i.provider = w.provider AND i.subject = w.subject)
           ),
           kept AS (
               UPDATE provider_tokens t
               SET state = 'kept', due_at = NULL, next_attempt_at = NULL, attempts = 0, failure = NULL
               FROM there WHERE t.id = there.id
               RETURNING t.id, t.provider, t.subject, t.client_id, t.state, t.sealed, t.access, t.attempts
           ),
           taken AS (
               UPDATE provider_tokens t
               SET attempts = least(t.attempts, 32766) + 1, next_attempt_at = now() + $3 * interval '1 second'
               FROM gone WHERE t.id = gone.id
               RETURNING t.id, t.provider, t.subject, t.client_id, t.state, t.sealed, t.access, t.attempts
           )
           SELECT id AS "id!", provider AS "provider!", subject AS "subject!", client_id AS "client_id!",
                  state AS "state!", sealed AS "sealed!", access AS "access!", attempts AS "attempts!"
           FROM (SELECT * FROM kept UNION ALL SELECT * FROM taken) AS rows"#,
        provider,
        i64::try_from(limit).unwrap_or(i64::MAX),
        f64::from(lease),
        since,
    )
    .fetch_all(database)
    .await?;
    let claimed = rows.into_iter().map(|row| {
        let owner = Owner {
            provider: row.provider,
            subject: row.subject,
            client_id: row.client_id,
        };
        let state = row
            .state
            .parse()
            .map_err(|_| Error::unexpected(&row.state))?;
        let sealed = row.sealed;
        let access = row.access;
        Ok(Claimed {
            id: row.id,
            owner,
            state,
            sealed,
            access,
            attempts: row.attempts,
        })
    });
    claimed.collect()
}

/// Stores the token that a code was exchanged for. Returns `false` if its identity is gone, so that
/// it is to be revoked. It replaces the token that the same client had before for the same user. An
/// access token is not stored beside a refresh token, which is valid for longer.
pub async fn keep_token(
    database: &Database,
    id: Uuid,
    owner: &Owner,
    sealed: &[u8],
    access: bool,
) -> Result<bool, Error> {
    let Owner {
        provider,
        subject,
        client_id,
    } = owner;
    let kept = sqlx::query_scalar!(
        r#"WITH identity AS MATERIALIZED (
               SELECT id FROM identities WHERE provider = $2 AND subject = $3 FOR KEY SHARE
           ),
           decision AS MATERIALIZED (
               SELECT EXISTS (SELECT FROM identity) AS kept,
                      $6 AND EXISTS (SELECT FROM provider_tokens
                                     WHERE provider = $2 AND subject = $3 AND client_id = $4 AND state = 'kept'
                                           AND NOT access AND id <> $1) AS superfluous
           ),
           stored AS (
               INSERT INTO provider_tokens
                      (id, provider, subject, client_id, state, sealed, access, due_at, next_attempt_at)
               SELECT $1, $2, $3, $4, CASE WHEN kept THEN 'kept' ELSE 'due' END, $5, $6,
                      CASE WHEN NOT kept THEN now() END, CASE WHEN NOT kept THEN now() END
               FROM decision WHERE NOT superfluous
               -- The row of the code is gone if another instance took that for an old one.
               ON CONFLICT ON CONSTRAINT provider_tokens_pkey DO UPDATE
               SET state = excluded.state, sealed = excluded.sealed, access = excluded.access, due_at = excluded.due_at,
                   next_attempt_at = excluded.next_attempt_at, attempts = 0, failure = NULL
           ),
           replaced AS (
               DELETE FROM provider_tokens t USING decision d
               WHERE d.kept AND NOT d.superfluous AND t.provider = $2 AND t.subject = $3 AND t.client_id = $4
                     AND t.state = 'kept' AND t.id <> $1
           ),
           dropped AS (
               DELETE FROM provider_tokens t USING decision d WHERE d.superfluous AND t.id = $1
           )
           SELECT kept AS "kept!" FROM decision"#,
        id,
        provider,
        subject,
        client_id,
        sealed,
        access,
    );
    Ok(kept.fetch_one(database).await?)
}

/// Deletes a code that was refused, or a token that was revoked. A token that another instance has
/// got for the code meanwhile stays.
pub async fn delete(database: &Database, row: &Claimed) -> Result<(), Error> {
    sqlx::query!(
        "DELETE FROM provider_tokens WHERE id = $1 AND state = $2 AND (state = 'due' OR attempts = $3)",
        row.id,
        <&str>::from(row.state),
        row.attempts,
    )
    .execute(database)
    .await?;
    Ok(())
}

/// Records a failed attempt. A code is deleted after `LIFE_OF_CODE`, and a token parked that has
/// been due for `PATIENCE`. Returns true then, since there is no further attempt.
pub async fn fail(
    database: &Database,
    row: &Claimed,
    failure: &str,
    pause: u32,
) -> Result<bool, Error> {
    let given_up = sqlx::query_scalar!(
        r#"WITH expired AS (
               DELETE FROM provider_tokens
               WHERE id = $1 AND attempts = $2 AND state = 'code' AND created_at < now() - $5 * interval '1 second'
               RETURNING true AS given_up
           ),
           failed AS (
               UPDATE provider_tokens
               SET failure = $3,
                   next_attempt_at = CASE WHEN due_at < now() - $6 * interval '1 second' THEN 'infinity'
                                          ELSE now() + $4 * (0.9 + 0.2 * random()) * interval '1 second' END,
                   parked_at = CASE WHEN due_at < now() - $6 * interval '1 second' THEN now() END
               WHERE id = $1 AND attempts = $2
                     AND (state = 'due' OR state = 'code' AND created_at >= now() - $5 * interval '1 second')
               RETURNING parked_at IS NOT NULL AS given_up
           )
           SELECT coalesce((SELECT given_up FROM expired), (SELECT given_up FROM failed), false) AS "given_up!""#,
        row.id,
        row.attempts,
        failure,
        f64::from(pause),
        f64::from(LIFE_OF_CODE),
        f64::from(PATIENCE),
    );
    Ok(given_up.fetch_one(database).await?)
}

/// Makes up to `batch` parked tokens of these providers due. Returns their number.
pub async fn unpark(database: &Database, providers: &[String], batch: i64) -> Result<u64, Error> {
    let unparked = sqlx::query!(
        "UPDATE provider_tokens SET parked_at = NULL, next_attempt_at = now()
         WHERE id IN (
             SELECT id FROM provider_tokens
             WHERE state <> 'kept' AND parked_at IS NOT NULL AND provider = ANY ($1)
             LIMIT $2
             FOR UPDATE SKIP LOCKED
         )",
        providers,
        batch,
    );
    Ok(unparked.execute(database).await?.rows_affected())
}

/// Returns the tokens that these providers have to revoke. `known` are the previous states: rows
/// that were due before a state's `since` are not read again. Without any `since`, it reads all
/// providers with codes or tokens.
pub async fn summaries(database: &Database, known: &[Summary]) -> Result<Vec<Summary>, Error> {
    let mut names: BTreeMap<_, _> = known
        .iter()
        .map(|queue| (queue.name.clone(), queue.since))
        .collect();
    if names.values().all(Option::is_none) {
        names.extend(
            providers(database)
                .await?
                .into_iter()
                .map(|name| (name, None)),
        );
    }
    let (names, since): (Vec<_>, Vec<_>) = names.into_iter().unzip();
    let summaries = sqlx::query_as!(
        Summary,
        r#"SELECT known.name AS "name!", queue.waiting AS "waiting!", queue.oldest_at, queue.parked AS "parked!", queue.failure,
                  least(now() - interval '30 seconds', queue.first_at) AS since
           FROM unnest($2::text[], $3::timestamptz[]) AS known (name, since)
           CROSS JOIN LATERAL (
               SELECT count(*) FILTER (WHERE state = 'due' AND parked_at IS NULL) AS waiting,
                      count(*) FILTER (WHERE parked_at IS NOT NULL) AS parked,
                      min(due_at) FILTER (WHERE parked_at IS NULL) AS oldest_at,
                      max(failure) FILTER (WHERE state = 'due') AS failure,
                      min(next_attempt_at) AS first_at
               FROM (SELECT state, due_at, next_attempt_at, parked_at, failure FROM provider_tokens t
                     WHERE t.provider = known.name AND t.state <> 'kept'
                           AND t.next_attempt_at >= coalesce(known.since, '-infinity')
                     ORDER BY t.next_attempt_at LIMIT $1) AS capped
           ) AS queue
           ORDER BY known.name"#,
        Summary::COUNTED,
        &names,
        &since as &[Option<OffsetDateTime>],
    );
    Ok(summaries.fetch_all(database).await?)
}

/// Returns the names of the providers with codes or tokens. It reads the index once for each of
/// them.
async fn providers(database: &Database) -> Result<Vec<String>, Error> {
    let providers = sqlx::query_scalar!(
        r#"WITH RECURSIVE names AS (
               SELECT min(provider) AS name FROM provider_tokens
               UNION ALL
               SELECT (SELECT min(t.provider) FROM provider_tokens t WHERE t.provider > n.name)
               FROM names n WHERE n.name IS NOT NULL
           )
           SELECT name AS "name!" FROM names WHERE name IS NOT NULL"#,
    );
    Ok(providers.fetch_all(database).await?)
}

/// Returns the identities of a user with a token to be revoked when they are gone.
pub async fn of_user(database: &Database, user: Uuid) -> Result<Vec<Uuid>, Error> {
    let identities = sqlx::query_scalar!(
        "SELECT i.id FROM identities i
         WHERE i.user_id = $1
               AND EXISTS (SELECT FROM provider_tokens t WHERE t.provider = i.provider AND t.subject = i.subject)",
        user,
    );
    Ok(identities.fetch_all(database).await?)
}

#[derive(Debug, Clone)]
pub struct Stored {
    pub id: Uuid,
    /// The code or the token.
    pub sealed: Vec<u8>,
}

pub async fn stored(database: &Database, after: Uuid, limit: i64) -> Result<Vec<Stored>, Error> {
    let rows = sqlx::query_as!(
        Stored,
        "SELECT id, sealed FROM provider_tokens WHERE id > $1 ORDER BY id LIMIT $2",
        after,
        limit,
    );
    Ok(rows.fetch_all(database).await?)
}

/// Replaces the encryption of codes and tokens that have not changed since and are not locked.
pub async fn replace_seals(
    database: &Database,
    old: &[Stored],
    new: &[Vec<u8>],
) -> Result<(), Error> {
    sqlx::query!(
        "WITH free AS MATERIALIZED (
             SELECT id FROM provider_tokens WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
         )
         UPDATE provider_tokens t SET sealed = n.new
         FROM free JOIN unnest($1::uuid[], $2::bytea[], $3::bytea[]) AS n (id, old, new) ON n.id = free.id
         WHERE t.id = n.id AND t.sealed = n.old",
        &old.iter().map(|row| row.id).collect::<Vec<_>>(),
        &old.iter().map(|row| row.sealed.clone()).collect::<Vec<_>>(),
        new,
    )
    .execute(database)
    .await?;
    Ok(())
}

/// Deletes up to `batch` rows: tokens that have been due for 60 days, and codes that are a day old.
/// Returns their number.
pub async fn prune(database: &Database, batch: i64) -> Result<usize, Error> {
    let deleted = sqlx::query!(
        "DELETE FROM provider_tokens WHERE id IN (
             SELECT id FROM provider_tokens
             WHERE state <> 'kept' AND (due_at < now() - interval '60 days'
                                        OR state = 'code' AND created_at < now() - interval '1 day')
             LIMIT $1
             FOR UPDATE SKIP LOCKED
         )",
        batch,
    );
    Ok(usize::try_from(deleted.execute(database).await?.rows_affected()).unwrap_or(usize::MAX))
}
