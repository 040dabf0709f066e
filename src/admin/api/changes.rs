//! `POST /api/v1/admin/users/<id>/<change>`: the changes of the pages. A dry run answers what the change would do, and the
//! fingerprint with which it is made to exactly these users, or not at all.

use rocket::http::Status;
use rocket::post;
use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;
use uuid::Uuid;

use super::guard::{Administrator, Supporter, no_longer_valid};
use super::parameters::wrong;
use super::users::{self, UserRecord};
use super::{reason, user};
use crate::accounts::{merging, sessions};
use crate::admin::changes::decision::Refused;
use crate::admin::changes::words::refused as words;
use crate::admin::changes::{Change, Outcome, Preview, make, preview};
use crate::database::Database;
use crate::domain::{Author, Object, Reason, merged};
use crate::web::guard::json_body::{only, optional, required};
use crate::web::guard::{ClientOrigin, JsonBody};
use crate::web::{Db, ErrorCode, Json, Problem, Problems, failures, resource};

resource!("Administration": disable_user, enable_user, end_user_sessions, end_user_session, unlink_user_identity,
    release_user_identity, move_user_identity, merge_users, delete_user);

failures!(
    /// The errors of a change, in addition to its guards' errors.
    Failures: ErrorCode::NoSuchUser, ErrorCode::UserChanged
);

failures!(
    /// The errors of a change to an identity or a session.
    PartFailures: ErrorCode::NoSuchUser, ErrorCode::UserChanged, ErrorCode::NotFound
);

failures!(
    UnlinkFailures: ErrorCode::NoSuchUser, ErrorCode::UserChanged, ErrorCode::NotFound, ErrorCode::LastIdentity
);

failures!(
    MoveFailures: ErrorCode::NoSuchUser, ErrorCode::UserChanged, ErrorCode::NotFound,
    ErrorCode::Refused(Reason::TooManyIdentities)
);

failures!(
    MergeFailures: ErrorCode::NoSuchUser, ErrorCode::UserChanged, ErrorCode::Refused(Reason::TooManyIdentities)
);

/// Defines the body of a change: the members of all changes, and its own, which are ids.
macro_rules! request {
    ($(#[$meta:meta])+ $name:ident { $($(#[$doc:meta])+ $member:ident),* }) => {
        $(#[$meta])+
        #[derive(ToSchema)]
        #[serde(deny_unknown_fields)]
        struct $name {
            /// The reason, which the audit log keeps. Write nothing personal into it.
            #[schema(example = "ticket 4711", min_length = 1, max_length = 500, pattern = r"[^\s\x00-\x1f\x7f-\x9f]")]
            reason: String,
            /// `true` changes nothing and answers what the change would do. The default is `false`.
            #[schema(value_type = bool, required = false)]
            dry_run: Option<bool>,
            /// The `fingerprint` of a dry run. If one of the users has changed since, nothing is
            /// done.
            #[schema(value_type = String, required = false)]
            seen: Option<String>,
            $($(#[$doc])+ $member: Uuid,)*
        }

        impl $name {
            fn read(body: &Object) -> Result<Self, Problem> {
                only(body, &["reason", "dry_run", "seen", $(stringify!($member)),*], "the body")?;
                Ok(Self {
                    reason: reason(body)?,
                    dry_run: given(body, "dry_run", "must be true or false")?,
                    seen: given(body, "seen", "must be a string")?,
                    $($member: id(body, stringify!($member))?,)*
                })
            }
        }
    };
}

request! {
    /// A change to a user.
    ChangeRequest {}
}

request! {
    /// The end of one session.
    SessionEndRequest {
        /// The id of the user's session.
        session
    }
}

request! {
    /// A change to an identity of the user.
    IdentityRequest {
        /// The id of the user's identity.
        identity
    }
}

request! {
    /// A move of an identity to another user.
    MoveRequest {
        /// The id of the user's identity.
        identity,
        /// The id of the user who gets the identity.
        #[schema(example = "0199a6c2-f0c4-7d51-b3c5-9c8d2f6a7e14")]
        to
    }
}

request! {
    /// A merge of two users.
    MergeRequest {
        /// The id of the user who remains.
        #[schema(example = "0199a6c2-f0c4-7d51-b3c5-9c8d2f6a7e14")]
        into
    }
}

/// A change that was made, or that would be made.
#[derive(Serialize, ToSchema)]
struct ChangeResult {
    /// False for a dry run: nothing was changed.
    applied: bool,
    /// The fingerprint of the users as they are shown here, for `seen`.
    #[schema(example = "bmV2ZXItY2hhbmdlLWEtcnVubmluZy1zeXN0ZW0uLi4")]
    fingerprint: String,
    /// The rule that forbids the change; only in a dry run.
    #[schema(required = true)]
    refused: Option<ChangeRefusal>,
    /// The user in the path, before the change.
    user: UserRecord,
    /// The other user of a move or a merge, before the change.
    #[schema(required = true)]
    other: Option<UserRecord>,
    /// The number of sessions that end. Services that only verify access tokens accept theirs until
    /// they expire.
    ended_sessions: i64,
    /// The remaining user after the merge, except `updated_at` and the new ids of the identities
    /// that move.
    #[schema(required = true)]
    merged: Option<UserRecord>,
}

/// A rule that forbids a change.
#[derive(Serialize, ToSchema)]
struct ChangeRefusal {
    /// The error with which the change is refused.
    #[schema(example = "last_identity")]
    error: &'static str,
    /// The rule in words.
    #[schema(example = "nobody could sign in any more")]
    detail: &'static str,
}

impl ChangeResult {
    fn new(preview: &Preview, applied: bool) -> Self {
        let change = &preview.change;
        let ended_sessions = match change {
            Change::Delete { user }
            | Change::Disable { user }
            | Change::Enable { user }
            | Change::EndSessions { user } => user.sessions(),
            Change::Merge { from, into } => {
                let disables = merged(from, into).disabled_at.is_some();
                from.sessions() + if disables { into.sessions() } else { 0 }
            }
            Change::Move { identity, .. } | Change::Unlink { identity, .. } => identity.sessions,
            Change::EndSession { .. } => 1,
            Change::Release { .. } => 0,
        };
        let merged = match change {
            Change::Merge { from, into } => Some(merged(from, into).into()),
            _ => None,
        };
        Self {
            applied,
            fingerprint: preview.fingerprint(),
            refused: preview.refused.map(|why| {
                let problem = refusal(why);
                ChangeRefusal {
                    error: problem.kind.entry().error,
                    detail: words(why),
                }
            }),
            user: change.user().clone().into(),
            other: change.other().cloned().map(UserRecord::from),
            ended_sessions,
            merged,
        }
    }
}

fn refusal(why: Refused) -> Problem {
    match why {
        Refused::LastIdentity => Problem::new(ErrorCode::LastIdentity, words(why)),
        Refused::TooManyIdentities => {
            Problem::new(ErrorCode::Refused(Reason::TooManyIdentities), words(why))
        }
        Refused::ClaimsTooLong => Problem::malformed(words(why)),
        // An API key has no account of its own.
        Refused::OwnAccount => Problem::internal(),
    }
}

/// Returns an optional member. A `null` in place of `dry_run` or `seen` is a mistake: without them,
/// the change is made.
fn given<T: DeserializeOwned>(body: &Object, name: &str, rule: &str) -> Result<Option<T>, Problem> {
    let given = optional(body, name, rule)?;
    if given.is_none() && body.has(name) {
        Err(wrong(format!("`{name}` {rule}")))
    } else {
        Ok(given)
    }
}

fn id(body: &Object, name: &str) -> Result<Uuid, Problem> {
    Uuid::parse_str(required(body, name)?).map_err(|_| wrong(format!("`{name}` must be a UUID")))
}

/// Makes a change, or answers what it would do. If `seen` is given, it must be the fingerprint of
/// the users as they are.
async fn change(
    database: &Database,
    change: Change,
    dry_run: bool,
    seen: Option<&str>,
    by: Author<'_>,
) -> Result<Json<ChangeResult>, Problem> {
    if change.other() == Some(change.user()) {
        return Err(wrong("the two users must not be the same".into()));
    }
    let Some(preview) = preview(database, change, by.actor).await? else {
        return Err(missing(database, change).await?);
    };
    if let Change::EndSession { session, user } = change
        && database
            .run(|_| sessions::of_user(database, user))
            .await?
            .iter()
            .all(|live| live.id != session)
    {
        return Err(no_session());
    }
    if !dry_run {
        // The response shows the change as it was made.
        match make(database, &preview, seen, by).await? {
            Outcome::Done => {}
            Outcome::Stale if matches!(change, Change::EndSession { .. }) && seen.is_none() => {
                return Err(no_session());
            }
            Outcome::Stale => {
                let detail = "one of the users has changed since the preview; nothing was done";
                return Err(Problem::new(ErrorCode::UserChanged, detail));
            }
            Outcome::Refused(why) => return Err(refusal(why)),
            Outcome::NotPermitted => return Err(no_longer_valid()),
        }
    }
    Ok(Json(Status::Ok, ChangeResult::new(&preview, !dry_run)))
}

fn no_session() -> Problem {
    Problem::new(
        ErrorCode::NotFound,
        "the user has no active session with this id",
    )
}

async fn missing(database: &Database, change: Change) -> Result<Problem, Problem> {
    let ids: Vec<_> = change
        .other()
        .into_iter()
        .chain([change.user()])
        .copied()
        .collect();
    let users = database.run(|_| merging::users(database, &ids)).await?;
    let exists = |id: &Uuid| users.iter().any(|user| user.id == *id);
    Ok(if !exists(change.user()) {
        users::missing(database, *change.user()).await
    } else if change.other().is_some_and(|other| !exists(other)) {
        Problem::new(
            ErrorCode::NoSuchUser,
            "there is no user with the id in the body",
        )
    } else {
        Problem::new(
            ErrorCode::NotFound,
            match change {
                Change::Release { .. } => "the user has no held identity with this id",
                _ => "the user has no identity with this id",
            },
        )
    })
}

/// Rocket takes an argument's place in the source from its type, and refuses a place in a call of
/// `route!`. This alias gives the argument a place outside it.
type Guard<G> = G;

/// Defines the route of a change: its name, its path, the least role of the key, the body, the
/// errors that not all such routes have, and the change that the body requests for the user in the
/// path.
macro_rules! route {
    (
        $(#[$doc:meta])+
        fn $name:ident($path:tt, $role:ident, $body:ident) -> $failures:ident { $change:expr }
    ) => {
        $(#[$doc])+
        #[utoipa::path(
            params(("id" = Uuid, Path, description = "The user's `id`.")),
            request_body(content = $body),
            responses(
                (status = 200, description = "The change, which was made unless `dry_run` is true.", body = ChangeResult),
                Problems<(($role, Db), JsonBody, $failures)>,
            ),
        )]
        #[post($path, data = "<body>")]
        async fn $name(
            key: Guard<$role>,
            id: &str,
            db: &Db,
            origin: ClientOrigin,
            body: JsonBody,
        ) -> Result<Json<ChangeResult>, Problem> {
            let user = user(id)?;
            let body = body.read($body::read)?;
            let read: fn(Uuid, &$body) -> Change = $change;
            let wanted = read(user, &body);
            let by = key.0.by(Some(&body.reason), &origin.0);
            change(db, wanted, body.dry_run.unwrap_or(false), body.seen.as_deref(), by).await
        }
    };
}

route! {
    /// Disable a user
    ///
    /// Refuses sign-ins with `user_disabled`, and ends all sessions. Needs the role `admin`.
    fn disable_user("/users/<id>/disable", Administrator, ChangeRequest) -> Failures {
        |user, _| Change::Disable { user }
    }
}

route! {
    /// Enable a user
    ///
    /// Permits sign-ins again, and ends sessions that are left. Needs the role `admin`.
    fn enable_user("/users/<id>/enable", Administrator, ChangeRequest) -> Failures {
        |user, _| Change::Enable { user }
    }
}

route! {
    /// End a user's sessions
    ///
    /// Signs the user out everywhere. Needs the role `support`.
    fn end_user_sessions("/users/<id>/end-sessions", Supporter, ChangeRequest) -> Failures {
        |user, _| Change::EndSessions { user }
    }
}

route! {
    /// End one session of a user
    ///
    /// Signs the user out on one device. Needs the role `support`.
    fn end_user_session("/users/<id>/end-session", Supporter, SessionEndRequest) -> PartFailures {
        |user, body| Change::EndSession { session: body.session, user }
    }
}

route! {
    /// Unlink an identity of a user
    ///
    /// Ends the identity's sessions. The next sign-in with it counts as new. An e-mail address that
    /// only this identity proves is no longer verified. The last identity cannot be unlinked,
    /// except where the backend or an import vouches for the user's e-mail address. Needs the role
    /// `admin`.
    fn unlink_user_identity("/users/<id>/unlink", Administrator, IdentityRequest) -> UnlinkFailures {
        |user, body| Change::Unlink { identity: body.identity, user }
    }
}

route! {
    /// Release a held identity
    ///
    /// Permits sign-ins with an identity that was held because it may be a hijacker's: its
    /// `suspended_reason` is `held`. Needs the role `admin`.
    fn release_user_identity("/users/<id>/release", Administrator, IdentityRequest) -> PartFailures {
        |user, body| Change::Release { identity: body.identity, user }
    }
}

route! {
    /// Move an identity to another user
    ///
    /// Ends the identity's sessions. The e-mail addresses of both users stay as they are; whether
    /// they are verified goes with the identity that proves it. Needs the role `admin`.
    fn move_user_identity("/users/<id>/move", Administrator, MoveRequest) -> MoveFailures {
        |user, body| Change::Move { identity: body.identity, from: user, to: body.to }
    }
}

route! {
    /// Merge a user into another one
    ///
    /// Links all identities of the user in the path to the user `into`, and deletes the user in the
    /// path. Wherever you have stored the deleted user's id, replace it by `into`. This cannot be
    /// undone. Needs the role `admin`.
    fn merge_users("/users/<id>/merge", Administrator, MergeRequest) -> MergeFailures {
        |user, body| Change::Merge { from: user, into: body.into }
    }
}

route! {
    /// Delete a user
    ///
    /// Deletes the user with all identities and sessions, as `DELETE /api/v1/me` does. This cannot
    /// be undone. The user in the response no longer exists. Needs the role `admin`.
    fn delete_user("/users/<id>/delete", Administrator, ChangeRequest) -> Failures {
        |user, _| Change::Delete { user }
    }
}
