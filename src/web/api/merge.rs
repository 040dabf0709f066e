//! `POST /api/v1/me/merge`: one person who has two users makes them one.

use rocket::http::Status;
use rocket::post;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::accounts::account;
use crate::accounts::account::{MergeRequest, Merging, NotMerged};
use crate::domain::{CustomClaims, LinkedIdentity, Reason, User};
use crate::web::guard::rate_limited::SignIn;
use crate::web::guard::reauthenticated::MergeMeRequest;
use crate::web::guard::{ClientOrigin, OtherAccount, RateLimited, bearer};
use crate::web::openapi::examples;
use crate::web::{Db, ErrorCode, Json, Problem, Problems, failures, resource};

resource!("Account": merge_me);

failures!(MergeFailures:
    ErrorCode::Refused(Reason::UserNotFound),
    ErrorCode::Refused(Reason::UserDisabled),
    ErrorCode::IdentityAlreadyLinked,
    ErrorCode::Refused(Reason::TooManyIdentities),
);

/// A merge of another user into the signed-in one: what it changed, or would change.
#[derive(Serialize, ToSchema)]
struct MergeResult {
    /// True if the users were merged; `false` for a dry run.
    applied: bool,
    /// The signed-in user afterwards: with their own data, and the other user's where theirs was
    /// missing.
    user: User,
    /// The claims in the user's access tokens afterwards: the user's own, and claims that only the
    /// other user had.
    #[schema(value_type = Object)]
    claims: CustomClaims,
    /// The other user's identities, with which this user signs in from then on. Their ids change.
    identities: Vec<MovedIdentity>,
    /// The number of the other user's sessions, all of which end.
    ended_sessions: i64,
    /// The other user, who no longer exists.
    merged: GoneUser,
}

/// An identity of the other user.
#[derive(Serialize, ToSchema)]
struct MovedIdentity {
    /// The provider's name, as in the path of the sign-in.
    provider: String,
    /// The account's `sub` at the provider.
    subject: String,
    /// The account's e-mail address at the last sign-in.
    #[schema(required = true)]
    email: Option<String>,
}

/// A user who is merged into another.
#[derive(Serialize, ToSchema)]
struct GoneUser {
    /// The id, which is never used again. Replace it by the signed-in user's wherever it is stored.
    user_id: Uuid,
    /// The claims in the other user's access tokens.
    #[schema(value_type = Object)]
    claims: CustomClaims,
}

impl MergeResult {
    fn new(merging: Merging, applied: bool) -> Self {
        let (user, claims) = merging.remaining();
        Self {
            applied,
            user,
            claims,
            ended_sessions: merging.from.sessions(),
            merged: GoneUser {
                user_id: merging.from.id,
                claims: merging.from.claims,
            },
            identities: merging
                .from
                .identities
                .into_iter()
                .map(MovedIdentity::from)
                .collect(),
        }
    }
}

impl From<LinkedIdentity> for MovedIdentity {
    fn from(identity: LinkedIdentity) -> Self {
        Self {
            provider: identity.provider,
            subject: identity.subject,
            email: identity.email,
        }
    }
}

/// Merge another account
///
/// Merges the user who has the identity of the `id_token` into the signed-in one, for a person who
/// has two accounts. The other user's identities move, their sessions end, and their id is gone: it
/// is `merged.user_id`. The signed-in user keeps e-mail address, name, picture and claims, and
/// takes over what is missing. Both accounts are proven within minutes: the session must have been
/// opened within the last ten minutes, or the body must contain a new `id_token` of one of the
/// user's identities; the `id_token` of the other account must not be older, either. This cannot be
/// undone, so let the user confirm what `dry_run` shows.
#[utoipa::path(
    security(("access_token" = [])),
    request_body(content = MergeMeRequest, description = "A new `id_token` of the other account.", examples(
        ("dry_run" = (summary = "What the merge would change", value = json!(examples::merge_me(true)))),
        ("merge" = (summary = "The merge", value = json!(examples::merge_me(false)))),
    )),
    responses(
        (status = 200, description = "The users were merged, or nothing was changed by a dry run.", body = MergeResult,
         examples(
            ("dry_run" = (summary = "What the merge would change", value = json!(examples::merge_result(false)))),
            ("merge" = (summary = "The merge", value = json!(examples::merge_result(true)))),
         )),
        Problems<(OtherAccount<'_>, MergeFailures)>,
    ),
)]
#[post("/me/merge", data = "<other>")]
async fn merge_me(
    _limit: RateLimited<SignIn>,
    other: OtherAccount<'_>,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Json<MergeResult>, Problem> {
    let OtherAccount {
        signed_in,
        provider,
        claims,
        dry_run,
    } = other;
    let request = MergeRequest {
        user: signed_in.user.id,
        session: signed_in.token.session,
        provider: &provider.name,
        subject: &claims.subject,
        issued_at: claims.issued_at,
        dry_run,
        origin: &origin.0,
    };
    match account::merge(db, request).await? {
        Ok(merging) => Ok(Json(Status::Ok, MergeResult::new(merging, !dry_run))),
        Err(NotMerged::Unknown) => {
            let detail = "nobody has this identity: link it instead";
            Err(Problem::new(
                ErrorCode::Refused(Reason::UserNotFound),
                detail,
            ))
        }
        Err(NotMerged::Own) => {
            let detail = "the identity is the user's own: there is nothing to merge";
            Err(Problem::new(ErrorCode::IdentityAlreadyLinked, detail))
        }
        Err(NotMerged::Disabled) => Err(Problem::new(
            ErrorCode::Refused(Reason::UserDisabled),
            "the other user is disabled",
        )),
        Err(NotMerged::Suspended) => Err(Reason::IdentitySuspended.into()),
        Err(NotMerged::Outdated) => Err(Problem::outdated().beside_a_bearer()),
        Err(NotMerged::TooManyIdentities) => Err(Problem::new(
            ErrorCode::Refused(Reason::TooManyIdentities),
            "both users together have more identities than a user may have",
        )),
        Err(NotMerged::ClaimsTooLong) => {
            let detail = "the claims of both users are too long for one: the backend has to set shorter ones first";
            Err(Problem::malformed(detail))
        }
        Err(NotMerged::NoUser) => Err(bearer::over(db, signed_in.token).await),
    }
}
