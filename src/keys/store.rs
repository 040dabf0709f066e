//! Storage of the signing keys of access tokens. All times are the database's.
//!
//! Keys have unique numbers: if several instances create the next key at once, one succeeds and the
//! others do nothing.

use time::OffsetDateTime;

use super::life::{KEEP, KeyLife};
use crate::database::{Database, Error};
use crate::domain::{Author, Role};
use crate::events::SqlAuthor;

#[derive(Debug, Clone)]
pub struct NewKey {
    /// Key id, as in the tokens' header.
    pub kid: String,
    /// An uncompressed point.
    pub public_key: Vec<u8>,
    /// Sealed PKCS #8.
    pub sealed_private_key: Vec<u8>,
}

#[derive(Debug, Clone)]
pub struct StoredKey {
    /// Key id, as in the tokens' header.
    pub kid: String,
    /// Sealed PKCS #8. Only this part is trusted; the stored public part is informative.
    pub sealed_private_key: Vec<u8>,
    pub life: KeyLife,
}

#[derive(Debug, Clone)]
pub struct StoredKeys {
    /// By number; never empty.
    pub keys: Vec<StoredKey>,
    pub now: OffsetDateTime,
}

impl StoredKeys {
    /// Returns the keys whose tokens are accepted.
    pub fn published(&self) -> impl Iterator<Item = &StoredKey> {
        self.keys
            .iter()
            .filter(|key| key.life.state(self.now).is_published())
    }
}

pub async fn all(database: &Database) -> Result<Option<StoredKeys>, Error> {
    // A key's successor is the next key that was not retired early.
    let rows = sqlx::query!(
        r#"SELECT kid, sealed_private_key, created_at, signs_from, retired_at,
                  (SELECT min(newer.signs_from) FROM signing_keys AS newer
                   WHERE newer.number > signing_keys.number AND newer.retired_at IS NULL) AS succeeded_at,
                  now() AS "now!"
           FROM signing_keys ORDER BY number"#,
    )
    .fetch_all(database)
    .await?;
    let Some(now) = rows.first().map(|row| row.now) else {
        return Ok(None);
    };
    let keys = rows.into_iter().map(|row| StoredKey {
        kid: row.kid,
        sealed_private_key: row.sealed_private_key,
        life: KeyLife {
            created_at: row.created_at,
            signs_from: row.signs_from,
            succeeded_at: row.succeeded_at,
            retired_at: row.retired_at,
        },
    });
    Ok(Some(StoredKeys {
        keys: keys.collect(),
        now,
    }))
}

/// Stores a key that signs at once, unless a key exists that was not retired.
pub async fn insert_first(database: &Database, key: &NewKey) -> Result<(), Error> {
    sqlx::query!(
        "INSERT INTO signing_keys (kid, number, public_key, sealed_private_key)
         SELECT $1, coalesce(max(number), 0) + 1, $2, $3 FROM signing_keys
         HAVING count(*) FILTER (WHERE retired_at IS NULL) = 0
         ON CONFLICT (number) DO NOTHING",
        key.kid,
        key.public_key,
        key.sealed_private_key,
    )
    .execute(database)
    .await?;
    Ok(())
}

/// Stores a key that signs in `announce` seconds, unless the newest one has not signed for `age`
/// seconds yet. Returns `true` if it was stored. Records an operator's command; without an author,
/// it was due.
pub async fn insert_next(
    database: &Database,
    key: &NewKey,
    announce: u32,
    age: u32,
    by: Option<Author<'_>>,
) -> Result<bool, Error> {
    let author = by.map(|by| SqlAuthor::needing(Role::Admin, by));
    let done = sqlx::query_scalar!(
        r#"WITH made AS (
               INSERT INTO signing_keys (kid, number, public_key, sealed_private_key, signs_from)
               SELECT $1, newest.number + 1, $2, $3, now() + make_interval(secs => $4)
               FROM (SELECT number, signs_from FROM signing_keys ORDER BY number DESC LIMIT 1) AS newest
               WHERE newest.signs_from + make_interval(secs => $5) <= now()
               ON CONFLICT (number) DO NOTHING
               RETURNING kid
           ), recorded AS (
               INSERT INTO events
               SELECT e.* FROM made m, event_row($6, 'signing_key_announced', detail => jsonb_build_object('key', m.kid)) AS e
               WHERE ($6::author).actor IS NOT NULL
           )
           SELECT EXISTS (SELECT FROM made) AS "done!""#,
        key.kid,
        key.public_key,
        key.sealed_private_key,
        f64::from(announce),
        f64::from(age),
        author as Option<SqlAuthor<'_>>,
    );
    Ok(done.fetch_one(database).await?)
}

/// Stores a key that signs at once, retires all others, and records that. Does nothing if an
/// earlier attempt has stored this key. Returns [`Error::Raced`], without retiring a key, if
/// another key was created at the same time.
pub async fn replace_all(database: &Database, key: &NewKey, by: Author<'_>) -> Result<(), Error> {
    // The insertion decides: if it did nothing, no key is retired.
    let stored = sqlx::query_scalar!(
        r#"WITH made AS (
               INSERT INTO signing_keys (kid, number, public_key, sealed_private_key)
               SELECT $1, coalesce(max(number), 0) + 1, $2, $3 FROM signing_keys
               ON CONFLICT DO NOTHING
               RETURNING number, kid
           ), retired AS (
               UPDATE signing_keys SET retired_at = now() FROM made
               WHERE signing_keys.number < made.number AND signing_keys.retired_at IS NULL
           ), recorded AS (
               INSERT INTO events
               SELECT e.* FROM made m, event_row($4, 'signing_keys_replaced', detail => jsonb_build_object('key', m.kid)) AS e
           )
           SELECT EXISTS (SELECT FROM made) OR EXISTS (SELECT FROM signing_keys WHERE kid = $1) AS "stored!""#,
        key.kid,
        key.public_key,
        key.sealed_private_key,
        SqlAuthor::needing(Role::Admin, by) as SqlAuthor<'_>,
    )
    .fetch_one(database)
    .await?;
    if stored {
        Ok(())
    } else {
        Err(Error::Raced(None))
    }
}

/// Replaces a key's seal, unless another instance has just done so.
pub async fn replace_seal(
    database: &Database,
    key: &StoredKey,
    sealed: &[u8],
) -> Result<(), Error> {
    sqlx::query!(
        "UPDATE signing_keys SET sealed_private_key = $3 WHERE kid = $1 AND sealed_private_key = $2",
        key.kid,
        key.sealed_private_key,
        sealed,
    )
    .execute(database)
    .await?;
    Ok(())
}

/// Deletes the keys that stopped signing so long ago that their last token has expired.
pub async fn prune(database: &Database) -> Result<(), Error> {
    sqlx::query!(
        "DELETE FROM signing_keys AS old
         WHERE coalesce(old.retired_at, (SELECT min(newer.signs_from) FROM signing_keys AS newer
                                         WHERE newer.number > old.number AND newer.retired_at IS NULL))
               + make_interval(secs => $1) <= now()",
        f64::from(KEEP),
    )
    .execute(database)
    .await?;
    Ok(())
}
