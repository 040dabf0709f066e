//! Changes that staff make to users. The preview of a change carries a fingerprint of the users
//! that it shows. A change that cannot be undone, or gives identities away, is made to exactly
//! those users, or not at all.

pub mod decision;

pub mod store;
pub(in crate::admin) mod words;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use self::decision::Refused;
use crate::accounts::identities::Unlinked;
use crate::accounts::merging::Merge;
use crate::accounts::users::Deletion;
use crate::accounts::{identities, merging, users};
use crate::database::{Database, Error};
use crate::domain::{Actor, Author, LinkedIdentity, Role, UserState};
use crate::events::{EventKind, erasure};

/// A change to one or two users, who are named by their ids, or [`Loaded`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Change<User = Uuid, Identity = Uuid> {
    /// Deletes the user with all of their data, as `DELETE /api/v1/me` does.
    Delete {
        user: User,
    },
    /// Links all identities of `from` to `into`, and deletes `from`. Sessions of `from` end.
    Merge {
        from: User,
        into: User,
    },
    /// Links an identity of `from` to `to` instead. Its sessions end; the users' e-mail addresses
    /// stay as they are.
    Move {
        identity: Identity,
        from: User,
        to: User,
    },
    /// Unlinks an identity, and ends its sessions. It then counts as unknown at its next sign-in.
    Unlink {
        identity: Identity,
        user: User,
    },
    /// Permits sign-ins with an identity that may be a hijacker's.
    Release {
        identity: Identity,
        user: User,
    },
    Disable {
        user: User,
    },
    Enable {
        user: User,
    },
    EndSessions {
        user: User,
    },
    EndSession {
        session: Uuid,
        user: User,
    },
}

/// A change with its users and its identity as of one moment.
pub type Loaded = Change<UserState, LinkedIdentity>;

impl<User, Identity> Change<User, Identity> {
    /// Returns the name, as in the URLs of the API.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Delete { .. } => "delete",
            Self::Merge { .. } => "merge",
            Self::Move { .. } => "move",
            Self::Unlink { .. } => "unlink",
            Self::Release { .. } => "release",
            Self::Disable { .. } => "disable",
            Self::Enable { .. } => "enable",
            Self::EndSessions { .. } => "end-sessions",
            Self::EndSession { .. } => "end-session",
        }
    }

    /// Returns true if the change is made only to users who are as its preview showed them.
    pub const fn needs_preview(&self) -> bool {
        matches!(
            self,
            Self::Delete { .. } | Self::Merge { .. } | Self::Move { .. } | Self::Unlink { .. }
        )
    }

    /// Returns the role that a member of staff needs for it.
    pub const fn role(&self) -> Role {
        match self {
            Self::EndSessions { .. } | Self::EndSession { .. } => Role::Support,
            _ => Role::Admin,
        }
    }

    pub const fn user(&self) -> &User {
        match self {
            Self::Delete { user }
            | Self::Merge { from: user, .. }
            | Self::Move { from: user, .. }
            | Self::Unlink { user, .. }
            | Self::Release { user, .. }
            | Self::Disable { user }
            | Self::Enable { user }
            | Self::EndSessions { user }
            | Self::EndSession { user, .. } => user,
        }
    }

    /// Returns the user who gets the identities.
    pub const fn other(&self) -> Option<&User> {
        match self {
            Self::Merge { into: user, .. } | Self::Move { to: user, .. } => Some(user),
            _ => None,
        }
    }

    /// Returns the identity, if the change is made to a single one.
    pub const fn identity(&self) -> Option<&Identity> {
        match self {
            Self::Move { identity, .. }
            | Self::Unlink { identity, .. }
            | Self::Release { identity, .. } => Some(identity),
            _ => None,
        }
    }
}

impl Change {
    /// Returns the change with its users. Returns `None` if a user does not exist, if the user does
    /// not have the identity, or if an identity to release is not held.
    async fn load(self, database: &Database) -> Result<Option<Loaded>, Error> {
        let ids: Vec<_> = self
            .other()
            .into_iter()
            .chain([self.user()])
            .copied()
            .collect();
        let mut users = database.run(|_| merging::users(database, &ids)).await?;
        let mut take = |id| Some(users.swap_remove(users.iter().position(|user| user.id == id)?));
        Ok(match self {
            Self::Delete { user } => take(user).map(|user| Loaded::Delete { user }),
            Self::Disable { user } => take(user).map(|user| Loaded::Disable { user }),
            Self::Enable { user } => take(user).map(|user| Loaded::Enable { user }),
            Self::EndSessions { user } => take(user).map(|user| Loaded::EndSessions { user }),
            Self::EndSession { session, user } => {
                take(user).map(|user| Loaded::EndSession { session, user })
            }
            Self::Merge { from, into } => take(from)
                .zip(take(into))
                .map(|(from, into)| Loaded::Merge { from, into }),
            Self::Move { identity, from, to } => take(from).zip(take(to)).and_then(|(from, to)| {
                from.identity(identity)
                    .cloned()
                    .map(|identity| Loaded::Move { identity, from, to })
            }),
            Self::Unlink { identity, user } => take(user).and_then(|user| {
                user.identity(identity)
                    .cloned()
                    .map(|identity| Loaded::Unlink { identity, user })
            }),
            Self::Release { identity, user } => take(user).and_then(|user| {
                let held = user
                    .identity(identity)
                    .filter(|identity| identity.held)
                    .cloned();
                held.map(|identity| Loaded::Release { identity, user })
            }),
        })
    }
}

#[derive(Debug, Clone)]
pub struct Preview {
    pub change: Loaded,
    pub refused: Option<Refused>,
}

impl Preview {
    /// Returns the fingerprint that confirms this preview: the SHA-256 of what the API shows of it.
    /// Sessions, notes and the day last seen are not in it, since they change often.
    pub fn fingerprint(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest(&SHA256, json!(self.change).to_string().as_bytes()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Stale,
    /// Not made: a rule forbids it.
    Refused(Refused),
    /// Not made: the actor no longer has the role.
    NotPermitted,
}

pub async fn preview(
    database: &Database,
    change: Change,
    actor: Actor<'_>,
) -> Result<Option<Preview>, Error> {
    let change = change.load(database).await?;
    Ok(change.map(|change| Preview {
        refused: decision::refusal(&change, actor),
        change,
    }))
}

/// Makes a change, and records it with author and reason. If `seen` is given, it must be the
/// fingerprint of the preview as it is now. After an error nothing was written, unless a connection
/// broke: then everything may have been.
pub async fn make(
    database: &Database,
    preview: &Preview,
    seen: Option<&str>,
    by: Author<'_>,
) -> Result<Outcome, Error> {
    if let Some(refused) = preview.refused {
        return Ok(Outcome::Refused(refused));
    }
    if seen.is_some_and(|seen| seen != preview.fingerprint()) {
        return Ok(Outcome::Stale);
    }
    let act = async |user: &UserState, session, event| {
        let seen = seen.map(|_| user.updated_at);
        let role = preview.change.role();
        let act = || store::act(database, (user.id, seen), session, event, role, by);
        let is_undone = |done: &Outcome| matches!(done, Outcome::Stale);
        database.change(act, is_undone).await
    };
    match &preview.change {
        Change::Delete { user } => {
            let seen = Some(user.updated_at);
            let delete = || users::delete(database, user.id, seen, by);
            let is_undone = |done: &Deletion| matches!(done, Deletion::NotFound);
            let deletion = database.change(delete, is_undone);
            match deletion.await? {
                Deletion::Done(traces) => {
                    erasure::begin(database, &traces).await;
                    Ok(Outcome::Done)
                }
                Deletion::NotFound | Deletion::Hijacked => Ok(Outcome::Stale),
                Deletion::NotPermitted => Ok(Outcome::NotPermitted),
            }
        }
        Change::Merge { from, into } => {
            let merge = || merging::merge(database, from, into, by);
            let is_undone = |done: &Merge| matches!(done, Merge::Stale);
            let merged = database.change(merge, is_undone);
            Ok(match merged.await? {
                Merge::Done => Outcome::Done,
                Merge::Stale => Outcome::Stale,
                Merge::NotPermitted => Outcome::NotPermitted,
            })
        }
        Change::Move { identity, from, to } => {
            let move_identity = || store::move_identity(database, identity.id, from, to, by);
            let is_undone = |done: &Outcome| matches!(done, Outcome::Stale);
            let moved = database.change(move_identity, is_undone);
            moved.await
        }
        Change::Unlink { identity, user } => {
            let seen = Some(user.updated_at);
            let author = by;
            let unlink = || identities::unlink(database, user.id, identity.id, seen, author);
            let is_undone =
                |done: &Unlinked| matches!(done, Unlinked::NotFound | Unlinked::Over { .. });
            let unlinked = database.change(unlink, is_undone);
            Ok(match unlinked.await? {
                Unlinked::Done => Outcome::Done,
                Unlinked::NotPermitted => Outcome::NotPermitted,
                _ => Outcome::Stale,
            })
        }
        Change::Release { identity, user } => {
            let release = || store::release(database, identity.id, user.id, by);
            let is_undone = |done: &Outcome| matches!(done, Outcome::Stale);
            let released = database.change(release, is_undone);
            released.await
        }
        Change::Disable { user } => act(user, None, EventKind::UserDisabled).await,
        Change::Enable { user } => act(user, None, EventKind::UserEnabled).await,
        Change::EndSessions { user } => act(user, None, EventKind::SessionsEnded).await,
        Change::EndSession { session, user } => {
            act(user, Some(*session), EventKind::SessionEnded).await
        }
    }
}
