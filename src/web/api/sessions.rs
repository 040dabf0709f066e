//! `/api/v1/me/sessions`: the user's sessions.

use std::cmp::Reverse;
use std::net::IpAddr;

use rocket::http::Status;
use rocket::{delete, get};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::accounts::{sessions, sign_out};
use crate::web::guard::{ClientOrigin, SignedIn};
use crate::web::{Db, ErrorCode, Json, NotFoundOnly, Problem, Problems, resource};

resource!("Session": list_sessions, end_session);

/// A user's sessions.
#[derive(Serialize, ToSchema)]
struct Sessions {
    /// The sessions, by `last_used_at`, the latest first.
    sessions: Vec<Session>,
}

/// A session of the user.
#[derive(Serialize, ToSchema)]
struct Session {
    /// The session's id, which is the `sid` of its access tokens.
    id: Uuid,
    /// True for the session of this request.
    #[schema(example = true)]
    current: bool,
    /// The name of the provider that the user signed in with.
    #[schema(example = "google")]
    provider: String,
    /// The time at which the session was opened.
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// The hour of the last refresh before this hour, or the time of the sign-in if that was later.
    /// A refresh that showed at once, or its minute, would tell a thief who has copied the
    /// session's tokens when to use them.
    #[serde(with = "time::serde::rfc3339")]
    last_used_at: OffsetDateTime,
    /// The IPv4 or IPv6 address that the session was opened from.
    #[schema(required = true, value_type = Option<String>, example = "203.0.113.7")]
    ip: Option<IpAddr>,
    /// The `User-Agent` header of the sign-in.
    #[schema(required = true, example = "VestibuleDemo/1.4 (Android 17)")]
    user_agent: Option<String>,
    device: Device,
}

/// The device, as the sign-in described it.
#[derive(Serialize, ToSchema)]
struct Device {
    /// The owner's name for the device.
    #[schema(required = true, example = "Ada's phone")]
    name: Option<String>,
    /// The platform that the device runs.
    #[schema(required = true, example = "Android 17")]
    platform: Option<String>,
}

/// List the user's sessions
#[utoipa::path(
    security(("access_token" = [])),
    responses(
        (status = 200, description = "The active sessions, by `last_used_at`, the latest first.", body = Sessions),
        Problems<SignedIn>,
    ),
)]
#[get("/me/sessions")]
async fn list_sessions(signed_in: SignedIn, db: &Db) -> Result<Json<Sessions>, Problem> {
    let rows = db
        .run(|_| sessions::of_user(db, signed_in.user.id))
        .await?
        .into_iter();
    let mut sessions: Vec<_> = rows
        .map(|row| Session {
            id: row.id,
            current: row.id == signed_in.token.session,
            provider: row.provider,
            created_at: row.created_at,
            last_used_at: row
                .used_before_this_hour
                .truncate_to_hour()
                .max(row.created_at),
            ip: row.ip,
            user_agent: row.user_agent,
            device: Device {
                name: row.device_name,
                platform: row.device_platform,
            },
        })
        .collect();
    // The order must not reveal more than the hours do.
    sessions.sort_by_key(|session| Reverse((session.last_used_at, session.id)));
    Ok(Json(Status::Ok, Sessions { sessions }))
}

/// End one session
///
/// Ends one of the user's sessions, for example the session of a lost phone. To end the current
/// session, sign out.
#[utoipa::path(
    security(("access_token" = [])),
    params(("id" = Uuid, Path, description = "The session's `id`.")),
    responses(
        (status = 204, description = "The session has ended. Its refresh token is invalid, and this service refuses its access \
                                      token. Services that only verify access tokens accept it until it expires."),
        Problems<(SignedIn, NotFoundOnly)>,
    ),
)]
#[delete("/me/sessions/<id>")]
async fn end_session(
    signed_in: SignedIn,
    id: &str,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Status, Problem> {
    let not_found = || Problem::new(ErrorCode::NotFound, "the user has no session with this id");
    let session = Uuid::parse_str(id).map_err(|_| not_found())?;
    let ended = sign_out::end_session(db, signed_in.user.id, session, &origin.0).await?;
    ended.then_some(Status::NoContent).ok_or_else(not_found)
}
