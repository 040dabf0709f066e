//! Batched sign-ins and refreshes: those that arrive together share a statement.

use std::sync::Arc;

use sqlx::PgPool;

use super::refresh_token::{REPEAT, Successors};
use crate::config;
use crate::secret::SecretKeys;
use crate::store::batch::Lanes;
use crate::store::sessions::{self, Exchange, Lifetimes, NotRefreshed, Refreshed};
use crate::store::users::{self, SignIn, SignedIn};

/// Number of lanes per statement. More would make smaller batches, and PostgreSQL's cost is per statement.
const LANES: u32 = 2;
/// Number of connections that the lanes use.
pub const CONNECTIONS: u32 = 3 * LANES;

/// The lanes of sign-ins and refreshes.
#[derive(Debug)]
pub struct SharedStatements {
    /// Sign-ins of identities that may be known.
    pub known: Lanes<Arc<SignIn>, SignedIn>,
    /// Sign-ins of identities that may be new.
    pub new: Lanes<Arc<SignIn>, SignedIn>,
    /// Refreshes.
    pub refresh: Lanes<Arc<Exchange>, Result<Refreshed, NotRefreshed>>,
    /// The lifetimes that the statements need.
    pub lifetimes: Lifetimes,
    /// The derivation of refresh tokens' successors.
    pub successors: Successors,
}

impl SharedStatements {
    /// Opens the lanes on a pool of [`CONNECTIONS`] connections.
    #[must_use]
    pub fn open(pool: &PgPool, session: &config::Session, secret_key: &SecretKeys) -> Self {
        let lifetimes = Lifetimes {
            refresh_token: session.refresh_token_ttl,
            session: session.absolute_ttl,
            repeat: REPEAT,
            grace: session.refresh_grace,
        };
        let (known, new, refresh) = (pool.clone(), pool.clone(), pool.clone());
        let ttl = lifetimes.refresh_token;
        Self {
            known: Lanes::open(LANES, move |items: Vec<Arc<SignIn>>| {
                let pool = known.clone();
                async move { users::sign_in_known(&pool, &items, ttl).await }
            }),
            new: Lanes::open(LANES, move |items: Vec<Arc<SignIn>>| {
                let pool = new.clone();
                async move { users::sign_in_new(&pool, &items, ttl).await }
            }),
            refresh: Lanes::open(LANES, move |items: Vec<Arc<Exchange>>| {
                let pool = refresh.clone();
                async move { sessions::refresh(&pool, &items, lifetimes).await }
            }),
            lifetimes,
            successors: Successors::new(secret_key),
        }
    }
}
