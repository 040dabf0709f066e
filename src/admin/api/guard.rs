//! Guards of the admin API: an API key and its role. No guard forwards.
//!
//! A key is looked up for each request, so that it is refused at once when it is revoked. Requests
//! with keys that this instance has seen to be valid are counted by key. All others are counted by
//! IP address before the query, so that forged keys cannot keep the database busy, and take nothing
//! from a backend behind the same address.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use rocket::request::Request;
use uuid::Uuid;

use crate::admin::staff::api_keys;
use crate::admin::staff::api_keys::KeyHash;
use crate::domain::{Actor, Author, KeyName, KeyRole, Origin};
use crate::web::guard::bearer::{Challenge, credentials};
use crate::web::guard::rate_limited::{UnknownApiKey, admit_address, admit_api_key};
use crate::web::guard::shared::request_guard;
use crate::web::{Db, ErrorCode, Problem, errors};

/// The ids of the keys that were valid at their latest request, by hash.
#[derive(Debug, Default)]
pub struct KnownKeys(Mutex<HashMap<KeyHash, Uuid>>);

impl KnownKeys {
    fn id(&self, hash: &KeyHash) -> Option<Uuid> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(hash)
            .copied()
    }

    fn learn(&self, hash: &KeyHash, valid: Option<Uuid>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match valid {
            Some(id) => known.insert(*hash, id),
            None => known.remove(hash),
        };
    }
}

#[derive(Debug, Clone)]
pub struct ApiKey {
    id: Uuid,
    actor: String,
}

impl ApiKey {
    pub fn actor(&self) -> Actor<'_> {
        Actor::ApiKey {
            name: &self.actor,
            id: self.id,
        }
    }

    pub fn by<'a>(&'a self, reason: Option<&'a str>, origin: &'a Origin) -> Author<'a> {
        Author {
            actor: self.actor(),
            reason,
            origin,
        }
    }
}

/// A request with an API key, which may read.
///
/// - **Succeeds** when the one `Authorization` header carries an API key that is neither revoked
///   nor expired.
/// - **Fails** with 401 when it does not, with 400 when there are several headers, and with 429
///   beyond the limit of the key, or of the IP address if the key is unknown.
///
/// A key in the query or the body is ignored.
#[derive(Debug, Clone)]
pub struct Reader(pub ApiKey);

/// A request with an API key that may end sessions.
///
/// - **Succeeds** when [`Reader`] does, and the key's role is [`KeyRole::Support`] or
///   [`KeyRole::Admin`].
/// - **Fails** as [`Reader`] does, and with 403 for any other role.
#[derive(Debug, Clone)]
pub struct Supporter(pub ApiKey);

/// A request with an API key that may do everything.
///
/// - **Succeeds** when [`Reader`] does, and the key's role is [`KeyRole::Admin`].
/// - **Fails** as [`Reader`] does, and with 403 for any other role.
#[derive(Debug, Clone)]
pub struct Administrator(pub ApiKey);

fn challenged(challenge: Challenge) -> Problem {
    let (kind, detail) = match challenge {
        Challenge::Missing => (
            ErrorCode::InvalidApiKey,
            "the `Authorization` header must contain an API key as a bearer token",
        ),
        Challenge::Repeated => (
            ErrorCode::InvalidRequest,
            "there must be exactly one `Authorization` header",
        ),
        Challenge::Invalid => (
            ErrorCode::InvalidApiKey,
            "the API key is malformed, unknown, expired or revoked",
        ),
    };
    Problem {
        challenge: Some(challenge.header()),
        ..Problem::new(kind, detail)
    }
}

/// Returns the answer to a change whose key was revoked or has expired since the guard admitted it.
pub(super) fn no_longer_valid() -> Problem {
    challenged(Challenge::Invalid)
}

/// Finds the key of a request, and checks that its role is at least `least`.
async fn key(request: &Request<'_>, least: KeyRole) -> Result<ApiKey, Problem> {
    let state = request
        .rocket()
        .state::<Db>()
        .zip(request.rocket().state::<KnownKeys>());
    let (db, known) = state.ok_or_else(Problem::internal)?;
    let hash = api_keys::parse(credentials(request).map_err(challenged)?);
    // Before the query: beyond its limit, a backend in a loop must not take the database from the
    // sign-ins.
    let id = hash.and_then(|hash| known.id(&hash));
    match id {
        Some(id) => admit_api_key(request, id)?,
        None => admit_address::<UnknownApiKey>(request)?,
    }
    let hash = hash.ok_or_else(|| challenged(Challenge::Invalid))?;
    let found = api_keys::find(db, &hash).await?;
    known.learn(&hash, found.as_ref().map(|key| key.id));
    let found = found.ok_or_else(|| challenged(Challenge::Invalid))?;
    if id.is_none() {
        admit_api_key(request, found.id)?;
    }
    if found.role < least {
        let detail = match least {
            KeyRole::Admin => "this needs an API key with the role `admin`",
            KeyRole::Reader | KeyRole::Support => {
                "this needs an API key with the role `support` or `admin`"
            }
        };
        return Err(Problem::new(ErrorCode::InsufficientRole, detail));
    }
    Ok(ApiKey {
        id: found.id,
        actor: format!("{}{}", KeyName::ACTOR_PREFIX, found.name),
    })
}

macro_rules! guard {
    ($guard:ident, $least:expr, $kinds:expr) => {
        errors!($guard: $kinds);
        request_guard!($guard, |request| key(request, $least).await.map(Self));
    };
}

guard!(
    Reader,
    KeyRole::Reader,
    Db::kinds().chain([
        ErrorCode::InvalidRequest,
        ErrorCode::InvalidApiKey,
        ErrorCode::RateLimited
    ])
);
guard!(
    Supporter,
    KeyRole::Support,
    Reader::kinds().chain([ErrorCode::InsufficientRole])
);
guard!(Administrator, KeyRole::Admin, Supporter::kinds());
