//! `POST /api/v1/auth/logout`: end this session, the others, or all.

use rocket::http::Status;
use rocket::{Route, post, routes};

use crate::session::sign_out::{Scope, sign_out, sign_out_by_token};
use crate::web::database::Db;
use crate::web::guard::rate_limited::Refresh;
use crate::web::guard::{ClientOrigin, Departing, RateLimited};
use crate::web::problem::{Kind, Problem};

pub(super) fn routes() -> Vec<Route> {
    routes![logout]
}

/// 204 also for what has ended already: there is nothing that an app could do about it
/// (RFC 7009 §2.2).
#[post("/auth/logout?<scope>", data = "<departing>")]
async fn logout(
    _limit: RateLimited<Refresh>,
    departing: Departing,
    scope: Option<&str>,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Status, Problem> {
    let scope = match scope {
        None | Some("local") => Scope::Local,
        Some("others") => Scope::Others,
        Some("global") => Scope::Global,
        Some(_) => return Err(Problem::new(Kind::InvalidRequest, "`scope` must be local, others or global")),
    };
    match departing {
        Departing::Session(session) => sign_out(db.pool(), session, scope, &origin.0).await?,
        Departing::Token(token) => sign_out_by_token(db.pool(), &token, scope, &origin.0).await?,
    }
    Ok(Status::NoContent)
}
