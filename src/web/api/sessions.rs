//! `/api/v1/me/sessions`: where the user is signed in.

use std::net::IpAddr;

use rocket::http::Status;
use rocket::{Route, delete, get, routes};
use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

use super::view::Json;
use crate::session::sign_out::end_session;
use crate::store::sessions;
use crate::web::database::Db;
use crate::web::guard::{ClientOrigin, SignedIn};
use crate::web::problem::{Kind, Problem};

pub(super) fn routes() -> Vec<Route> {
    routes![list, end]
}

#[derive(Serialize)]
struct Sessions {
    sessions: Vec<Session>,
}

#[derive(Serialize)]
struct Session {
    id: Uuid,
    current: bool,
    provider: String,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    last_used_at: OffsetDateTime,
    ip: Option<IpAddr>,
    user_agent: Option<String>,
    device: Device,
}

#[derive(Serialize)]
struct Device {
    name: Option<String>,
    platform: Option<String>,
}

#[get("/me/sessions")]
async fn list(signed_in: SignedIn, db: &Db) -> Result<Json<Sessions>, Problem> {
    let rows = sessions::of_user(db.pool(), signed_in.user.id).await?.into_iter();
    let sessions = rows
        .map(|row| Session {
            id: row.id,
            current: row.id == signed_in.token.session,
            provider: row.provider,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
            ip: row.ip,
            user_agent: row.user_agent,
            device: Device { name: row.device_name, platform: row.device_platform },
        })
        .collect();
    Ok(Json(Status::Ok, Sessions { sessions }))
}

#[delete("/me/sessions/<id>")]
async fn end(signed_in: SignedIn, id: &str, db: &Db, origin: ClientOrigin) -> Result<Status, Problem> {
    let not_found = || Problem::new(Kind::NotFound, "the user has no session of this id");
    let session = Uuid::parse_str(id).map_err(|_| not_found())?;
    let ended = end_session(db.pool(), signed_in.user.id, session, &origin.0).await?;
    ended.then_some(Status::NoContent).ok_or_else(not_found)
}
