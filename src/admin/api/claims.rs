//! `PUT /api/v1/admin/users/<id>/claims`: the claims that the backend adds to a user's access
//! tokens.

use rocket::http::Status;
use rocket::put;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::guard::{Administrator, no_longer_valid};
use super::parameters::wrong;
use super::store::{self, ClaimsSet};
use super::users::{NoSuchUser, missing};
use super::{reason, user};
use crate::domain::{CustomClaims, Object};
use crate::web::guard::json_body::only;
use crate::web::guard::{ClientOrigin, JsonBody};
use crate::web::{Db, Json, Problem, Problems, resource};

resource!("Administration": set_user_claims);

/// New claims of a user.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is parsed by hand, to report what is wrong")]
struct ClaimsRequest {
    /// All claims of the user; `{}` removes them. At most 1,000 bytes of compact JSON, without the
    /// names of claims that have a meaning of their own, such as `sub` or `scope`; `roles`,
    /// `groups` and `entitlements` are free.
    #[schema(value_type = Object)]
    claims: Value,
    /// The reason, which the audit log keeps. Write nothing personal into it.
    #[schema(
        example = "promoted",
        min_length = 1,
        max_length = 500,
        pattern = r"[^\s\x00-\x1f\x7f-\x9f]"
    )]
    reason: String,
}

/// Reads a [`ClaimsRequest`].
fn read(body: &Object) -> Result<(String, CustomClaims), Problem> {
    only(body, &["claims", "reason"], "the body")?;
    let reason = reason(body)?;
    let claims = match body.get("claims") {
        Some(claims @ Value::Object(_)) => CustomClaims::parse(&claims.to_string())
            .map_err(|mistake| wrong(mistake.to_string()))?,
        Some(_) => return Err(wrong("`claims` must be an object".into())),
        None => return Err(wrong("`claims` is missing".into())),
    };
    Ok((reason, claims))
}

/// The claims of a user.
#[derive(Serialize, ToSchema)]
struct UserClaims {
    /// The claims, which are members of the user's access tokens.
    #[schema(value_type = Object)]
    claims: CustomClaims,
}

/// Set the claims of a user
///
/// Replaces the claims in the user's access tokens, except this service's own claims. They are in
/// the tokens of the next sign-in or refresh; tokens that were issued before keep theirs until they
/// expire. Needs the role `admin`.
#[utoipa::path(
    params(("id" = Uuid, Path, description = "The user's `id`.")),
    request_body(content = ClaimsRequest),
    responses(
        (status = 200, description = "The claims, as they are now.", body = UserClaims),
        Problems<(Administrator, JsonBody, NoSuchUser)>,
    ),
)]
#[put("/users/<id>/claims", data = "<body>")]
async fn set_user_claims(
    key: Administrator,
    id: &str,
    db: &Db,
    origin: ClientOrigin,
    body: JsonBody,
) -> Result<Json<UserClaims>, Problem> {
    let user = user(id)?;
    let (reason, claims) = body.read(read)?;
    let by = key.0.by(Some(&reason), &origin.0);
    match db.run(|_| store::set_claims(db, user, &claims, by)).await? {
        ClaimsSet::Done => Ok(Json(Status::Ok, UserClaims { claims })),
        ClaimsSet::NoSuchUser => Err(missing(db, user).await),
        ClaimsSet::NotPermitted => Err(no_longer_valid()),
    }
}
