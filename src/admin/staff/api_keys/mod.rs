//! API keys: they are added and revoked, and found by the text in a request. A key is shown once,
//! when it is added.

pub mod store;

use time::OffsetDateTime;

use crate::accounts::OpaqueToken;
use crate::admin::staff::api_keys::store::KeyRow;
use crate::admin::staff::store::Changed;
use crate::database::{Database, Error};
use crate::domain::{Author, KeyName, KeyRole};
use crate::secret::Secret;

/// The first characters of every key, by which scanners of source code recognise one.
const PREFIX: &str = "vst_";

/// The SHA-256 of a key's random part.
pub type KeyHash = [u8; 32];

/// Returns the hash of a text that may be an API key, or `None` if it is malformed.
pub fn parse(text: &str) -> Option<KeyHash> {
    OpaqueToken::parse(text.strip_prefix(PREFIX)?)
}

/// Adds an API key and returns it. If a connection broke, a key may be stored whose text is lost.
pub async fn add(
    database: &Database,
    name: &KeyName,
    role: KeyRole,
    expires_at: Option<OffsetDateTime>,
    by: Author<'_>,
) -> Result<Result<Secret<String>, Changed>, Error> {
    let token = OpaqueToken::generate();
    let add = || store::add(database, name, &token.hash, role, expires_at, by);
    let added = database.change(add, |done| *done == Changed::Already);
    let added = added.await?;
    let secret = || Secret::new(format!("{PREFIX}{}", token.text.expose()));
    Ok(if added == Changed::Done {
        Ok(secret())
    } else {
        Err(added)
    })
}

pub async fn revoke(database: &Database, name: &KeyName, by: Author<'_>) -> Result<Changed, Error> {
    let revoke = || store::revoke(database, name, by);
    database
        .change(revoke, |done| *done == Changed::Already)
        .await
}

/// Returns the key with that hash, or `None` if it was revoked or has expired. Records its use.
pub async fn find(database: &Database, hash: &KeyHash) -> Result<Option<KeyRow>, Error> {
    database.run(|_| store::find(database, hash)).await
}
