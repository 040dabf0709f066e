//! `POST /api/v1/admin/users/<id>/<change>`: the changes of the pages. A dry run answers what the change would do, and the
//! fingerprint with which it is made to exactly these users, or not at all.

use rocket::http::Status;
use rocket::{Route, post, routes};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::PgPool;
use time::OffsetDateTime;
use utoipa::{OpenApi, ToSchema};
use uuid::Uuid;

use super::guard::{Administrator, ApiKey, Supporter};
use super::{reason, unknown_user, user};
use crate::admin::changes::decision::Refused;
use crate::admin::changes::pages::refused as words;
use crate::admin::changes::{Change, Outcome, Preview, make, preview};
use crate::domain::custom_claims::CustomClaims;
use crate::domain::json::Object;
use crate::domain::merging::{LinkedIdentity, UserState, merged};
use crate::domain::refusal::Reason;
use crate::store::error::retrying;
use crate::store::{merging, sessions};
use crate::web::api::view::Json;
use crate::web::database::Db;
use crate::web::guard::json_body::{only, required};
use crate::web::guard::{ClientOrigin, JsonBody};
use crate::web::openapi::examples;
use crate::web::openapi::problems::{ErrorResponses, Problems};
use crate::web::problem::{ErrorCode, Problem};

pub(super) fn routes() -> Vec<Route> {
    routes![disable, enable, end_sessions, end_session, unlink, release, move_identity, merge, delete]
}

#[derive(OpenApi)]
#[openapi(paths(disable, enable, end_sessions, end_session, unlink, release, move_identity, merge, delete))]
pub(super) struct ApiDoc;

/// The errors of a change beside those of the guards.
enum Failures {}

impl ErrorResponses for Failures {
    fn kinds() -> impl Iterator<Item = ErrorCode> {
        [ErrorCode::Refused(Reason::UserNotFound), ErrorCode::UserChanged].into_iter()
    }
}

/// The errors of a change to an identity or a session.
enum PartFailures {}

impl ErrorResponses for PartFailures {
    fn kinds() -> impl Iterator<Item = ErrorCode> {
        Failures::kinds().chain([ErrorCode::NotFound])
    }
}

/// The errors of unlinking an identity.
enum UnlinkFailures {}

impl ErrorResponses for UnlinkFailures {
    fn kinds() -> impl Iterator<Item = ErrorCode> {
        PartFailures::kinds().chain([ErrorCode::LastIdentity])
    }
}

type Failing<Guard, Own> = Problems<((Guard, Db), JsonBody, Own)>;

/// Defines the body of a change: the members of all changes, and its own.
macro_rules! request {
    ($(#[$meta:meta])+ $name:ident { $($(#[$doc:meta])+ $member:ident),* }) => {
        $(#[$meta])+
        // The derived parser is not used; its attribute says in the schema that there are no other members.
        #[derive(Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "it is parsed by hand, to report what is wrong")]
        struct $name {
            /// The reason, which the audit log keeps. Write nothing personal into it.
            #[schema(min_length = 1, max_length = 500, pattern = r"[^\s\x00-\x1f\x7f-\x9f]")]
            reason: String,
            /// `true` changes nothing and answers what the change would do. The default is `false`.
            #[schema(value_type = bool, required = false)]
            dry_run: Option<bool>,
            /// The `fingerprint` of a dry run. If one of the users has changed since, nothing is done.
            #[schema(value_type = String, required = false)]
            seen: Option<String>,
            $($(#[$doc])+ $member: Uuid,)*
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
        to
    }
}

request! {
    /// A merge of two users.
    MergeRequest {
        /// The id of the user who remains.
        into
    }
}

/// A change that was made, or that would be made.
#[derive(Serialize, ToSchema)]
struct ChangeResult {
    /// The name of the change, as in the path.
    change: &'static str,
    /// False for a dry run: nothing was changed.
    applied: bool,
    /// The fingerprint of the users as they are shown here, for `seen`.
    fingerprint: String,
    /// The rule that forbids the change; only in a dry run.
    #[schema(required = true)]
    refused: Option<ChangeRefusal>,
    /// The user in the path, before the change.
    user: ConcernedUser,
    /// The other user of a move or a merge, before the change.
    #[schema(required = true)]
    other: Option<ConcernedUser>,
    /// The number of sessions that end. Services that only verify access tokens accept theirs until they expire.
    ended_sessions: i64,
    /// The remaining user after a merge.
    #[schema(required = true)]
    merged: Option<MergedUser>,
}

/// A rule that forbids a change.
#[derive(Serialize, ToSchema)]
struct ChangeRefusal {
    /// The error with which the change is refused.
    #[schema(example = "last_identity")]
    error: &'static str,
    /// The rule in words.
    detail: &'static str,
}

/// A user whom a change concerns.
#[derive(Serialize, ToSchema)]
struct ConcernedUser {
    /// The user's id.
    id: Uuid,
    /// The e-mail address.
    #[schema(required = true)]
    email: Option<String>,
    /// True if a provider has verified the e-mail address.
    email_verified: bool,
    /// The user's name.
    #[schema(required = true)]
    name: Option<String>,
    /// The URL of a picture.
    #[schema(required = true)]
    picture: Option<String>,
    /// The time at which the user was created.
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// The time at which the user was disabled; `null` if the user is not.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required = true)]
    disabled_at: Option<OffsetDateTime>,
    /// The claims in the user's access tokens that a backend has set.
    #[schema(value_type = Object)]
    claims: CustomClaims,
    /// The user's identities, oldest first.
    identities: Vec<ConcernedIdentity>,
}

/// An identity of a user whom a change concerns.
#[derive(Serialize, ToSchema)]
struct ConcernedIdentity {
    /// The identity's id.
    id: Uuid,
    /// The provider's name.
    provider: String,
    /// The account's `sub` at the provider.
    subject: String,
    /// The account's e-mail address at the last sign-in.
    #[schema(required = true)]
    email: Option<String>,
    /// The number of active sessions that were opened with the identity.
    sessions: i64,
    /// True if the change is made to this identity: it is moved, unlinked or deleted.
    concerned: bool,
}

/// The remaining user after a merge.
#[derive(Serialize, ToSchema)]
struct MergedUser {
    /// The user's id.
    id: Uuid,
    /// The e-mail address: the user's own, otherwise the other's.
    #[schema(required = true)]
    email: Option<String>,
    /// True if a provider has verified the e-mail address.
    email_verified: bool,
    /// The name: the user's own, otherwise the other's.
    #[schema(required = true)]
    name: Option<String>,
    /// The picture: the user's own, otherwise the other's.
    #[schema(required = true)]
    picture: Option<String>,
    /// The time since which the user is disabled. A merge enables no disabled user.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required = true)]
    disabled_at: Option<OffsetDateTime>,
    /// The claims in access tokens: the user's own, and those that only the other has.
    #[schema(value_type = Object)]
    claims: CustomClaims,
}

impl ConcernedUser {
    fn new(user: &UserState, concerned: impl Fn(&LinkedIdentity) -> bool) -> Self {
        let identities = user.identities.iter().map(|identity| ConcernedIdentity {
            id: identity.id,
            provider: identity.provider.clone(),
            subject: identity.subject.clone(),
            email: identity.email.clone(),
            sessions: identity.sessions,
            concerned: concerned(identity),
        });
        Self {
            id: user.id,
            email: user.email.clone(),
            email_verified: user.email_verified,
            name: user.name.clone(),
            picture: user.picture.clone(),
            created_at: user.created_at,
            disabled_at: user.disabled_at,
            claims: user.claims.clone(),
            identities: identities.collect(),
        }
    }
}

impl ChangeResult {
    fn new(preview: &Preview, applied: bool) -> Self {
        let change = &preview.change;
        let concerned = |identity: &LinkedIdentity| match change {
            Change::Delete { .. } | Change::Merge { .. } => true,
            Change::Move { identity: one, .. }
            | Change::Unlink { identity: one, .. }
            | Change::Release { identity: one, .. } => one.id == identity.id,
            _ => false,
        };
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
        let remaining = match change {
            Change::Merge { from, into } => {
                let merged = merged(from, into);
                Some(MergedUser {
                    id: into.id,
                    email: merged.email,
                    email_verified: merged.email_verified,
                    name: merged.name,
                    picture: merged.picture,
                    disabled_at: merged.disabled_at,
                    claims: merged.claims,
                })
            }
            _ => None,
        };
        Self {
            change: change.name(),
            applied,
            fingerprint: preview.fingerprint(),
            refused: preview.refused.map(|why| {
                let problem = refusal(why);
                ChangeRefusal { error: problem.kind.entry().error, detail: words(why) }
            }),
            user: ConcernedUser::new(change.user(), concerned),
            other: change.other().map(|user| ConcernedUser::new(user, |_| false)),
            ended_sessions,
            merged: remaining,
        }
    }
}

fn refusal(why: Refused) -> Problem {
    match why {
        Refused::LastIdentity => Problem::new(ErrorCode::LastIdentity, words(why)),
        Refused::ClaimsTooLong => Problem::new(ErrorCode::InvalidRequest, words(why)),
        // An API key is nobody's account.
        Refused::OwnAccount => Problem::internal(),
    }
}

fn malformed(detail: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, detail)
}

/// Returns the id in the body's member of that name.
fn member(body: &Object, name: &str) -> Result<Uuid, Problem> {
    Uuid::parse_str(required(body, name)?).map_err(|_| malformed(format!("`{name}` must be a UUID")))
}

/// A request for a change, whoever it is about.
struct Visit<'r> {
    key: &'r ApiKey,
    db: &'r Db,
    origin: &'r ClientOrigin,
    body: &'r Object,
}

impl Visit<'_> {
    /// Makes a change, or answers what it would do.
    async fn make(&self, change: Change) -> Result<Json<ChangeResult>, Problem> {
        let pool = self.db.pool();
        let own: &[&str] = match change {
            Change::EndSession { .. } => &["session"],
            Change::Unlink { .. } | Change::Release { .. } => &["identity"],
            Change::Move { .. } => &["identity", "to"],
            Change::Merge { .. } => &["into"],
            _ => &[],
        };
        // A misspelt `dry_run` would make the change, and a `null` in its place is a mistake as well.
        only(self.body, &[&["reason", "dry_run", "seen"], own].concat(), "the body")?;
        if ["dry_run", "seen"].iter().any(|name| self.body.has(name) && self.body.get(name).is_none()) {
            return Err(malformed("`dry_run` and `seen` must not be null"));
        }
        let reason = reason(self.body)?;
        let dry_run = match self.body.get("dry_run") {
            None => false,
            Some(Value::Bool(dry_run)) => *dry_run,
            Some(_) => return Err(malformed("`dry_run` must be true or false")),
        };
        let seen = match self.body.get("seen") {
            None => None,
            Some(Value::String(seen)) => Some(seen.as_str()),
            Some(_) => return Err(malformed("`seen` must be a string")),
        };
        if change.other() == Some(change.user()) {
            return Err(malformed("the two users must not be the same"));
        }
        let Some(preview) = preview(pool, change, self.key.actor().name()).await? else {
            return Err(missing(pool, change).await?);
        };
        if let Change::EndSession { session, user } = change
            && retrying!(sessions::of_user(pool, user))?.iter().all(|live| live.id != session)
        {
            return Err(no_session());
        }
        if !dry_run {
            let by = self.key.by(Some(&reason), &self.origin.0);
            // What is answered is what was changed.
            match make(pool, &preview, seen, by).await? {
                Outcome::Done => {}
                Outcome::NotFound => return Err(missing(pool, change).await?),
                Outcome::Changed if matches!(change, Change::EndSession { .. }) && seen.is_none() => {
                    return Err(no_session());
                }
                Outcome::Changed => {
                    let detail = "one of the users has changed since the preview; nothing was done";
                    return Err(Problem::new(ErrorCode::UserChanged, detail));
                }
                Outcome::Refused(why) => return Err(refusal(why)),
                // The guard has checked the key's role, which never changes.
                Outcome::NotPermitted => return Err(Problem::internal()),
            }
        }
        Ok(Json(Status::Ok, ChangeResult::new(&preview, !dry_run)))
    }
}

fn no_session() -> Problem {
    Problem::new(ErrorCode::NotFound, "the user has no active session with this id")
}

/// Returns the problem that one of the users of a change, or the identity, does not exist.
async fn missing(pool: &PgPool, change: Change) -> Result<Problem, Problem> {
    let ids: Vec<_> = change.other().into_iter().chain([change.user()]).copied().collect();
    let users = retrying!(merging::users(pool, &ids))?;
    let exists = |id: &Uuid| users.iter().any(|user| user.id == *id);
    Ok(if !exists(change.user()) {
        unknown_user()
    } else if change.other().is_some_and(|other| !exists(other)) {
        Problem::new(ErrorCode::Refused(Reason::UserNotFound), "there is no user with the id in the body")
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

/// Disable a user
///
/// Refuses sign-ins with `user_disabled`, and ends all sessions. Needs the role `admin`.
#[utoipa::path(
    post,
    path = "/admin/users/{id}/disable",
    operation_id = "disableUser",
    tag = "Administration",
    security(("api_key" = [])),
    params(("id" = Uuid, Path, description = "The user's `id`.")),
    request_body(content = ChangeRequest, example = json!(examples::change())),
    responses(
        (status = 200, description = "The change, which was made unless `dry_run` is true.", body = ChangeResult,
         example = json!(examples::change_result("disable"))),
        Failing<Administrator, Failures>,
    ),
)]
#[post("/users/<id>/disable", data = "<body>")]
async fn disable(
    key: Administrator,
    id: &str,
    db: &Db,
    origin: ClientOrigin,
    body: JsonBody,
) -> Result<Json<ChangeResult>, Problem> {
    let (user, body) = (user(id)?, body.0);
    let change = Change::Disable { user };
    Visit { key: &key.0, db, origin: &origin, body: &body }.make(change).await
}

/// Enable a user
///
/// Permits sign-ins again, and ends sessions that are left. Needs the role `admin`.
#[utoipa::path(
    post,
    path = "/admin/users/{id}/enable",
    operation_id = "enableUser",
    tag = "Administration",
    security(("api_key" = [])),
    params(("id" = Uuid, Path, description = "The user's `id`.")),
    request_body(content = ChangeRequest, example = json!(examples::change())),
    responses(
        (status = 200, description = "The change, which was made unless `dry_run` is true.", body = ChangeResult,
         example = json!(examples::change_result("enable"))),
        Failing<Administrator, Failures>,
    ),
)]
#[post("/users/<id>/enable", data = "<body>")]
async fn enable(
    key: Administrator,
    id: &str,
    db: &Db,
    origin: ClientOrigin,
    body: JsonBody,
) -> Result<Json<ChangeResult>, Problem> {
    let (user, body) = (user(id)?, body.0);
    let change = Change::Enable { user };
    Visit { key: &key.0, db, origin: &origin, body: &body }.make(change).await
}

/// End a user's sessions
///
/// Signs the user out everywhere. Needs the role `support`.
#[utoipa::path(
    post,
    path = "/admin/users/{id}/end-sessions",
    operation_id = "endUserSessions",
    tag = "Administration",
    security(("api_key" = [])),
    params(("id" = Uuid, Path, description = "The user's `id`.")),
    request_body(content = ChangeRequest, example = json!(examples::change())),
    responses(
        (status = 200, description = "The change, which was made unless `dry_run` is true.", body = ChangeResult,
         example = json!(examples::change_result("end-sessions"))),
        Failing<Supporter, Failures>,
    ),
)]
#[post("/users/<id>/end-sessions", data = "<body>")]
async fn end_sessions(
    key: Supporter,
    id: &str,
    db: &Db,
    origin: ClientOrigin,
    body: JsonBody,
) -> Result<Json<ChangeResult>, Problem> {
    let (user, body) = (user(id)?, body.0);
    let change = Change::EndSessions { user };
    Visit { key: &key.0, db, origin: &origin, body: &body }.make(change).await
}

/// End one session of a user
///
/// Signs the user out on one device. Needs the role `support`.
#[utoipa::path(
    post,
    path = "/admin/users/{id}/end-session",
    operation_id = "endUserSession",
    tag = "Administration",
    security(("api_key" = [])),
    params(("id" = Uuid, Path, description = "The user's `id`.")),
    request_body(content = SessionEndRequest, example = json!(examples::change_to("session"))),
    responses(
        (status = 200, description = "The change, which was made unless `dry_run` is true.", body = ChangeResult,
         example = json!(examples::change_result("end-session"))),
        Failing<Supporter, PartFailures>,
    ),
)]
#[post("/users/<id>/end-session", data = "<body>")]
async fn end_session(
    key: Supporter,
    id: &str,
    db: &Db,
    origin: ClientOrigin,
    body: JsonBody,
) -> Result<Json<ChangeResult>, Problem> {
    let (user, body) = (user(id)?, body.0);
    let change = Change::EndSession { session: member(&body, "session")?, user };
    Visit { key: &key.0, db, origin: &origin, body: &body }.make(change).await
}

/// Unlink an identity of a user
///
/// Ends the identity's sessions. The next sign-in with it counts as new. An e-mail address that only this identity proves
/// is no longer verified. The last identity cannot be unlinked, except where the backend or an import vouches for the
/// user's e-mail address. Needs the role `admin`.
#[utoipa::path(
    post,
    path = "/admin/users/{id}/unlink",
    operation_id = "unlinkUserIdentity",
    tag = "Administration",
    security(("api_key" = [])),
    params(("id" = Uuid, Path, description = "The user's `id`.")),
    request_body(content = IdentityRequest, example = json!(examples::change_to("identity"))),
    responses(
        (status = 200, description = "The change, which was made unless `dry_run` is true.", body = ChangeResult,
         example = json!(examples::change_result("unlink"))),
        Failing<Administrator, UnlinkFailures>,
    ),
)]
#[post("/users/<id>/unlink", data = "<body>")]
async fn unlink(
    key: Administrator,
    id: &str,
    db: &Db,
    origin: ClientOrigin,
    body: JsonBody,
) -> Result<Json<ChangeResult>, Problem> {
    let (user, body) = (user(id)?, body.0);
    let change = Change::Unlink { identity: member(&body, "identity")?, user };
    Visit { key: &key.0, db, origin: &origin, body: &body }.make(change).await
}

/// Release a held identity
///
/// Permits sign-ins with an identity that was held because a hijacker of the user's account may have linked it: its
/// `suspended_reason` is `held`. Needs the role `admin`.
#[utoipa::path(
    post,
    path = "/admin/users/{id}/release",
    operation_id = "releaseUserIdentity",
    tag = "Administration",
    security(("api_key" = [])),
    params(("id" = Uuid, Path, description = "The user's `id`.")),
    request_body(content = IdentityRequest, example = json!(examples::change_to("identity"))),
    responses(
        (status = 200, description = "The change, which was made unless `dry_run` is true.", body = ChangeResult,
         example = json!(examples::change_result("release"))),
        Failing<Administrator, PartFailures>,
    ),
)]
#[post("/users/<id>/release", data = "<body>")]
async fn release(
    key: Administrator,
    id: &str,
    db: &Db,
    origin: ClientOrigin,
    body: JsonBody,
) -> Result<Json<ChangeResult>, Problem> {
    let (user, body) = (user(id)?, body.0);
    let change = Change::Release { identity: member(&body, "identity")?, user };
    Visit { key: &key.0, db, origin: &origin, body: &body }.make(change).await
}

/// Move an identity to another user
///
/// Ends the identity's sessions. The e-mail addresses of both users stay as they are; whether they are verified goes with
/// the identity that proves it. Needs the role `admin`.
#[utoipa::path(
    post,
    path = "/admin/users/{id}/move",
    operation_id = "moveUserIdentity",
    tag = "Administration",
    security(("api_key" = [])),
    params(("id" = Uuid, Path, description = "The user's `id`.")),
    request_body(content = MoveRequest, example = json!(examples::move_identity())),
    responses(
        (status = 200, description = "The change, which was made unless `dry_run` is true.", body = ChangeResult,
         example = json!(examples::change_result("move"))),
        Failing<Administrator, PartFailures>,
    ),
)]
#[post("/users/<id>/move", data = "<body>")]
async fn move_identity(
    key: Administrator,
    id: &str,
    db: &Db,
    origin: ClientOrigin,
    body: JsonBody,
) -> Result<Json<ChangeResult>, Problem> {
    let (user, body) = (user(id)?, body.0);
    let change = Change::Move { identity: member(&body, "identity")?, from: user, to: member(&body, "to")? };
    Visit { key: &key.0, db, origin: &origin, body: &body }.make(change).await
}

/// Merge a user into another one
///
/// Links all identities of the user in the path to the user `into`, and deletes the user in the path. Replace the id of the
/// one by that of the other wherever it is stored. This cannot be undone. Needs the role `admin`.
#[utoipa::path(
    post,
    path = "/admin/users/{id}/merge",
    operation_id = "mergeUsers",
    tag = "Administration",
    security(("api_key" = [])),
    params(("id" = Uuid, Path, description = "The user's `id`.")),
    request_body(content = MergeRequest, example = json!(examples::change_to("into"))),
    responses(
        (status = 200, description = "The change, which was made unless `dry_run` is true.", body = ChangeResult,
         example = json!(examples::change_result("merge"))),
        Failing<Administrator, Failures>,
    ),
)]
#[post("/users/<id>/merge", data = "<body>")]
async fn merge(
    key: Administrator,
    id: &str,
    db: &Db,
    origin: ClientOrigin,
    body: JsonBody,
) -> Result<Json<ChangeResult>, Problem> {
    let (user, body) = (user(id)?, body.0);
    let change = Change::Merge { from: user, into: member(&body, "into")? };
    Visit { key: &key.0, db, origin: &origin, body: &body }.make(change).await
}

/// Delete a user
///
/// Deletes the user with all identities and sessions, as `DELETE /api/v1/me` does. This cannot be undone. The user in the
/// answer is not there any more. Needs the role `admin`.
#[utoipa::path(
    post,
    path = "/admin/users/{id}/delete",
    operation_id = "deleteUser",
    tag = "Administration",
    security(("api_key" = [])),
    params(("id" = Uuid, Path, description = "The user's `id`.")),
    request_body(content = ChangeRequest, example = json!(examples::change())),
    responses(
        (status = 200, description = "The change, which was made unless `dry_run` is true.", body = ChangeResult,
         example = json!(examples::change_result("delete"))),
        Failing<Administrator, Failures>,
    ),
)]
#[post("/users/<id>/delete", data = "<body>")]
async fn delete(
    key: Administrator,
    id: &str,
    db: &Db,
    origin: ClientOrigin,
    body: JsonBody,
) -> Result<Json<ChangeResult>, Problem> {
    let (user, body) = (user(id)?, body.0);
    let change = Change::Delete { user };
    Visit { key: &key.0, db, origin: &origin, body: &body }.make(change).await
}
