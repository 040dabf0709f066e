//! Requests to delete what came from an account at a provider, as Facebook sends them. They are
//! carried out at once.
//!
//! A user who signs in with this account alone is deleted, as by `DELETE /api/v1/me`. A user with
//! other identities loses this one, and what they had from it. A disabled user is kept, or deleting
//! the account at the provider would be the way back in: staff see the request, and decide.

mod store;

use serde::Serialize;
use strum::{EnumString, IntoStaticStr};
use uuid::Uuid;

use self::store::{Account, Registered};
pub use self::store::{Status, status};
use crate::accounts::users;
use crate::accounts::users::Deletion;
use crate::database::{Database, Error};
use crate::domain::presets::facebook::SignedRequest;
use crate::domain::{Actor, Author, Origin};
use crate::events::erasure;

/// The reason in the events of a request.
const REASON: &str = "The user asked the provider to have the data deleted.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, Serialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    /// Nothing is left of the account as of the request: its user was deleted, or there was none.
    /// An identity that was linked after the request stays.
    Deleted,
    /// The identity was unlinked from a user who has others.
    Unlinked,
    /// The user is disabled, and was kept.
    Kept,
}

/// Carries out a request, unless that has been done before, for its account and for the same
/// account at `others`, the other names of the provider's issuer. Returns the code of the request
/// at `provider`. After an error, the caller must not acknowledge the request: when the provider
/// sends it again, the work goes on where it failed.
pub async fn carry_out(
    database: &Database,
    provider: &str,
    others: &[&str],
    request: &SignedRequest,
    origin: &Origin,
) -> Result<Uuid, Error> {
    for other in others {
        database
            .run(|_| once(database, other, request, origin))
            .await?;
    }
    database
        .run(|_| once(database, provider, request, origin))
        .await
}

async fn once(
    database: &Database,
    provider: &str,
    request: &SignedRequest,
    origin: &Origin,
) -> Result<Uuid, Error> {
    let Registered {
        code,
        outcome,
        account,
    } = store::register(
        database,
        provider,
        &request.id,
        &request.subject,
        request.at,
    )
    .await?;
    match account {
        _ if outcome.is_some() => {}
        None => store::settle_deleted(database, code).await?,
        Some(account) if account.disabled => {
            store::settle_kept(database, code, provider, &account, &origin.request_id).await?;
        }
        Some(account) => remove(database, provider, code, &account, origin).await?,
    }
    Ok(code)
}

async fn remove(
    database: &Database,
    provider: &str,
    code: Uuid,
    account: &Account,
    origin: &Origin,
) -> Result<(), Error> {
    let actor = format!("provider:{provider}");
    // The address is the provider's, not the user's.
    let origin = Origin {
        ip: None,
        user_agent: None,
        request_id: origin.request_id.clone(),
    };
    let by = Author {
        actor: Actor::Provider(&actor),
        reason: Some(REASON),
        origin: &origin,
    };
    if account.others {
        let done = store::unlink(database, code, account, by).await?;
        return if done {
            Ok(())
        } else {
            Err(Error::Raced(None))
        };
    }
    match users::delete(database, account.user, Some(account.updated_at), by).await? {
        Deletion::Done(traces) => erasure::begin(database, &traces).await,
        // The user has changed since the request was registered.
        Deletion::NotFound | Deletion::NotPermitted | Deletion::Hijacked => {
            return Err(Error::Raced(None));
        }
    }
    store::settle_deleted(database, code).await
}
