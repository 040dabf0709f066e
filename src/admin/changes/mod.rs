//! Changes that staff make to users. All but the simple actions (`act`) have a preview, which carries a fingerprint of
//! the data that it shows. The change is made to exactly that data, or not at all.

mod act;
pub mod decision;
pub mod delete;
pub mod merge;
pub mod move_identity;
pub(super) mod pages;
pub mod store;
pub mod unlink;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;

pub use self::act::{Action, act};
use crate::admin::changes::decision::{Person, Refused};
use crate::admin::staff::store::Made;
use crate::store::error::{Error, retrying};

/// The result of a confirmed change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The change was made and recorded.
    Done,
    /// Not made: there is no such user or identity.
    NotFound,
    /// Not made: a user concerned has changed since the preview.
    Changed,
    /// Not made: a rule forbids it.
    Refused(Refused),
    /// Not made: the actor no longer has the role.
    NotPermitted,
}

impl From<Made> for Outcome {
    fn from(made: Made) -> Self {
        match made {
            Made::Done => Self::Done,
            Made::Changed => Self::Changed,
            Made::NotPermitted => Self::NotPermitted,
        }
    }
}

/// Returns a user.
async fn person(pool: &PgPool, id: Uuid) -> Result<Option<Person>, Error> {
    retrying!(store::people(pool, &[id])).map(|people| people.into_iter().next())
}

/// Returns two different users, as of one moment.
async fn pair(pool: &PgPool, first: Uuid, second: Uuid) -> Result<Option<(Person, Person)>, Error> {
    let people = retrying!(store::people(pool, &[first, second]))?;
    Ok(match <[Person; 2]>::try_from(people) {
        Ok([one, other]) if one.id() == first => Some((one, other)),
        Ok([one, other]) => Some((other, one)),
        Err(_) => None,
    })
}

/// Returns the SHA-256 of the data in a preview, except the number of sessions, which changes often.
fn fingerprint(change: &str, people: &[&Person], identity: Option<Uuid>) -> String {
    let people: Vec<_> = people.iter().map(|person| shown(person)).collect();
    let shown = json!([change, people, identity]);
    URL_SAFE_NO_PAD.encode(digest(&SHA256, shown.to_string().as_bytes()))
}

fn shown(person: &Person) -> Value {
    let identities: Vec<_> = person.identities.iter().map(|linked| &linked.identity).collect();
    let identities: Vec<_> = identities
        .into_iter()
        .map(|identity| json!([identity.id, identity.provider, identity.subject, identity.email]))
        .collect();
    let user = &person.user;
    let disabled_at = person.disabled_at.map(|at| at.unix_timestamp_nanos().to_string());
    json!([
        user.id,
        // It changes whenever the row does; the other columns are included for safety.
        person.updated_at.unix_timestamp_nanos().to_string(),
        [&user.email, &user.name, &user.picture],
        user.email_verified,
        disabled_at,
        identities,
    ])
}
