//! Batched sign-ins, refreshes and look-ups of sessions: requests that arrive together share a
//! statement.

use std::slice;
use std::sync::Arc;

use uuid::Uuid;

use crate::accounts::sessions::{Exchange, Lifetimes, NotRefreshed, Refreshed, SessionUser};
use crate::accounts::tokens::access_token::AccessToken;
use crate::accounts::tokens::refresh_token::{REPEAT, Successors};
use crate::accounts::users::{SignIn, SignedIn};
use crate::accounts::{sessions, users};
use crate::config;
use crate::database::batch::{Held, Lanes};
use crate::database::{Database, Error};
use crate::secret::SecretKeys;

/// Number of lanes per statement. More would make smaller batches, and PostgreSQL's cost is per
/// statement.
const LANES: u32 = 2;
/// Number of connections that the lanes use.
pub const CONNECTIONS: u32 = 4 * LANES;

/// Opens lanes that run a statement on a connection.
macro_rules! lanes {
    ($name:literal, $database:expr, |$connection:ident, $items:ident| $statement:expr) => {{
        let database = $database.clone();
        Lanes::open($name, LANES, move |kept, $items: Vec<_>| {
            let database = database.clone();
            async move {
                let mut held = Held::again(kept, &database).await?;
                let $connection = &mut *held.connection;
                let results = $statement.await;
                held.keep(results, &database)
            }
        })
    }};
}

/// The lanes of sign-ins, refreshes and look-ups of sessions.
#[derive(Debug)]
pub struct SharedStatements {
    /// Sign-ins of identities that may be known.
    pub known: Lanes<Arc<SignIn>, SignedIn>,
    /// Sign-ins of identities that may be new.
    pub new: Lanes<Arc<SignIn>, SignedIn>,
    pub refresh: Lanes<Arc<Exchange>, Result<Refreshed, NotRefreshed>>,
    /// Look-ups of sessions with their users.
    pub signed_in: Lanes<(Uuid, Uuid), Option<SessionUser>>,
    /// The lifetimes that the statements need.
    pub lifetimes: Lifetimes,
    /// The derivation of refresh tokens' successors.
    pub successors: Successors,
}

impl SharedStatements {
    /// Opens the lanes on a database with [`CONNECTIONS`] connections for them.
    pub fn open(database: &Database, session: &config::Session, secret_key: &SecretKeys) -> Self {
        let lifetimes = Lifetimes {
            refresh_token_ttl: session.refresh_token_ttl,
            absolute_ttl: session.absolute_ttl,
            repeat: REPEAT,
            refresh_grace: session.refresh_grace,
        };
        let ttl = lifetimes.refresh_token_ttl;
        Self {
            known: lanes!(
                "sign-ins of known identities",
                database,
                |connection, items| { users::sign_in_known(connection, &items, ttl) }
            ),
            new: lanes!(
                "sign-ins of new identities",
                database,
                |connection, items| { users::sign_in_new(connection, &items, ttl) }
            ),
            refresh: lanes!("refreshes", database, |connection, items| {
                sessions::refresh(connection, &items, lifetimes)
            }),
            signed_in: lanes!(
                "look-ups of sessions",
                database,
                |connection, items| async {
                    let found = sessions::signed_in(connection, &items).await?;
                    Ok::<_, Error>(found.into_iter().map(Some).collect())
                }
            ),
            lifetimes,
            successors: Successors::new(secret_key),
        }
    }

    /// Finds the user of the session that an access token names. Returns `None` if the session has
    /// ended, the user is disabled or the identity is suspended.
    pub async fn user(
        &self,
        database: &Database,
        token: AccessToken,
    ) -> Result<Option<SessionUser>, Error> {
        let item = (token.session, token.user);
        let alone = async {
            let mut alone = database
                .run(|_| sessions::signed_in(database, slice::from_ref(&item)))
                .await?;
            Ok(alone.pop().flatten())
        };
        self.signed_in.run(item, alone).await
    }
}
