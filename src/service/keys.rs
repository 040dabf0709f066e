//! An operator's view of the signing keys, without a running service.

use time::OffsetDateTime;

use super::{Error, database};
use crate::config::Maintenance;
use crate::session::key_rotation::Rotation;

/// What may be told of a key.
#[derive(Debug, Clone)]
pub struct Key {
    /// Its id.
    pub kid: String,
    /// What it is good for, in one word.
    pub state: &'static str,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it signs, from then on.
    pub signs_from: OffsetDateTime,
    /// When it stops being published, once that is known.
    pub published_until: Option<OffsetDateTime>,
}

/// How the keys are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotate {
    /// A new key is announced, and signs later.
    Announce,
    /// A new key signs at once, and the others are retired.
    Now {
        /// The others need not be of this `secret_key`.
        any_secret: bool,
    },
}

/// The keys, the oldest first.
///
/// # Errors
/// The database cannot be used.
pub async fn list(settings: &Maintenance) -> Result<Vec<Key>, Error> {
    told(&rotation(settings).await?).await
}

/// Changes the keys, and tells what they are then. `None` when the next key is announced already.
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
