//! The commands for signing keys, which need no running service.

use time::OffsetDateTime;

use super::rotation::Rotation;
use crate::app::{Error, database};
use crate::config::Maintenance;

/// The public data of a key.
#[derive(Debug, Clone)]
pub struct Key {
    /// The id.
    pub kid: String,
    /// The state in one word.
    pub state: &'static str,
    /// The time at which it was made.
    pub created_at: OffsetDateTime,
    /// The time from which it signs.
    pub signs_from: OffsetDateTime,
    /// The end of its publication; `None` while it is not known.
    pub published_until: Option<OffsetDateTime>,
}

/// A kind of key rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotate {
    /// Publishes a new key, which signs later.
    Announce,
    /// Makes a new key that signs at once, and retires all others.
    Now {
        /// If true, the others may be encrypted with another `secret_key`.
        any_secret: bool,
    },
}

/// Returns the keys, the oldest first.
///
/// # Errors
/// The database cannot be used.
pub async fn list(settings: &Maintenance) -> Result<Vec<Key>, Error> {
    told(&rotation(settings).await?).await
}

/// Rotates the keys and returns them. Returns `None` if the next key is already published.
///
/// # Errors
/// The database cannot be used, or holds keys of another `secret_key`.
pub async fn rotate(settings: &Maintenance, how: Rotate) -> Result<Option<Vec<Key>>, Error> {
    let rotation = rotation(settings).await?;
    let done = match how {
        Rotate::Announce => rotation.rotate().await?,
        Rotate::Now { any_secret } => {
            rotation.replace_all(any_secret).await?;
            true
        }
    };
    if done { told(&rotation).await.map(Some) } else { Ok(None) }
}

async fn rotation(settings: &Maintenance) -> Result<Rotation, Error> {
    let pool = database(&settings.figment).await?;
    let ttl = settings.session.access_token_ttl;
    Ok(Rotation::new(pool, &settings.secret_key()?, settings.keys, ttl)?)
}

async fn told(rotation: &Rotation) -> Result<Vec<Key>, Error> {
    let Some(stored) = rotation.stored().await? else { return Ok(Vec::new()) };
    let keys = stored.keys.into_iter().map(|key| Key {
        state: key.life.state(stored.now, rotation.keep()).name(),
        kid: key.kid,
        created_at: key.life.created_at,
        signs_from: key.life.signs_from,
        published_until: key.life.published_until(rotation.keep()),
    });
    Ok(keys.collect())
}
