//! Who signs out: by access token, or by refresh token when that one has expired.

use rocket::data::{Data, FromData, Outcome};
use rocket::request::Request;
use utoipa::ToSchema;
use uuid::Uuid;

use super::bearer::Bearer;
use super::json_body::{self, JsonBody};
use crate::web::openapi::problems::Fails;
use crate::web::problem::{Kind, Problem};

/// Proof enough to end a session.
///
/// - **Succeeds** with the session of a valid access token, though it may have ended, or else with
///   the refresh token in the body.
/// - **Fails** when there is neither.
/// - **Forwards** never.
#[derive(Debug)]
pub enum Departing {
    /// The session of the access token.
    Session(Uuid),
    /// A refresh token; whose is not known yet.
    Token(String),
}

/// A session to end, by its refresh token.
#[derive(Debug, ToSchema)]
pub struct SignOutRequest {
    /// The one of the latest answer. One that is unknown or used up is no error: there is nothing left to end.
    pub refresh_token: String,
}

impl Fails for Departing {
    fn kinds() -> impl Iterator<Item = Kind> {
        <(Bearer, JsonBody)>::kinds()
    }
}

#[rocket::async_trait]
impl<'r> FromData<'r> for Departing {
    type Error = ();

    async fn from_data(request: &'r Request<'_>, data: Data<'r>) -> Outcome<'r, Self> {
        match identify(request, data).await {
            Ok(departing) => Outcome::Success(departing),
            Err(problem) => Outcome::Error((problem.keep(request).status(), ())),
        }
    }
}

async fn identify(request: &Request<'_>, data: Data<'_>) -> Result<Departing, Problem> {
    match Bearer::of(request).await {
        Ok(bearer) => Ok(Departing::Session(bearer.0.session)),
        Err(problem) if request.content_type().is_none() => Err(problem),
        Err(_) => {
            let body = json_body::read(request, data).await?;
            let token = body.str("refresh_token").map(str::to_owned);
            let missing = || Problem::new(Kind::InvalidRequest, "`refresh_token` must be a string");
            token.map(Departing::Token).ok_or_else(missing)
        }
    }
}
