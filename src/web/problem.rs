//! RFC 9457 problem details: a closed catalogue of errors, and one way to answer with them.
//!
//! Rocket's catchers never see why a guard failed. So a problem is kept with its request as soon as
//! it is known, and the catcher and the log read it from there.

mod catalogue;
pub mod pages;

use std::borrow::Cow;

use rocket::http::{ContentType, Header, Status};
use rocket::request::Request;
use rocket::response::{self, Responder, Response};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use self::catalogue::any_name;
pub use self::catalogue::{Entry, ErrorCode, names};
use super::http::request_id::RequestId;
use crate::accounts::sessions::NotRefreshed;
use crate::accounts::{refresh, sign_in};
use crate::domain::dpop::Refused;
use crate::domain::id_token::Malformed;
use crate::domain::{EndReason, Reason, Refusal};
use crate::{causes, database, provider, provider_events};

/// An error on its way to the client and the log.
#[derive(Debug, Clone, Default)]
pub struct Problem {
    pub kind: ErrorCode,
    /// The check that failed. It never contains a token, a person's name or anything else from the
    /// request but the name of a member.
    pub detail: Cow<'static, str>,
    /// The seconds to wait before a retry.
    pub retry_after: Option<u32>,
    /// The value of the `WWW-Authenticate` header.
    pub challenge: Option<&'static str>,
    /// The value of the `Allow` header.
    pub allow: Option<String>,
    /// The reason why the session is over, if a token proved that it was the caller's.
    pub reason: Option<EndReason>,
    /// The user who remains after a merge: of the user in the path, in a response to a backend, or
    /// of the session's user.
    pub merged_into: Option<Uuid>,
    /// The cause, for the log only.
    pub log: Option<String>,
    /// True if the caller may have caused the error, by the token for one, so that it does not
    /// count as a failure of the provider.
    pub by_token: bool,
    /// The reason of a refused refresh, for the metrics.
    pub not_refreshed: Option<NotRefreshed>,
    /// The rule for proofs that the request breaks.
    pub proof: Option<Refused>,
}

impl Problem {
    pub fn new(kind: ErrorCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            ..Self::default()
        }
    }

    pub fn malformed(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::InvalidRequest, detail)
    }

    /// Returns the problem of a service that may be available after so many seconds.
    pub fn unavailable(seconds: u32, detail: &'static str) -> Self {
        Self {
            retry_after: Some(seconds),
            ..Self::new(ErrorCode::ServiceUnavailable, detail)
        }
    }

    /// Adds the cause, which only the log may show.
    pub fn logged(self, log: impl Into<String>) -> Self {
        Self {
            log: Some(log.into()),
            ..self
        }
    }

    /// Returns the problem with the reason why the session is over, if the caller may know it.
    pub fn because(self, reason: Option<EndReason>) -> Self {
        match reason {
            Some(told) => Self {
                reason,
                detail: told.sentence().into(),
                ..self
            },
            None => self,
        }
    }

    /// Prefixes the logged cause with the provider's name, which neither the route nor the cause
    /// contains.
    pub fn about(self, provider: &str) -> Self {
        Self {
            log: self.log.map(|log| format!("{provider}: {log}")),
            ..self
        }
    }

    /// Returns the problem for a request whose credential is an access token: see
    /// [`ErrorCode::beside_a_bearer`].
    pub fn beside_a_bearer(self) -> Self {
        Self {
            kind: self.kind.beside_a_bearer(),
            ..self
        }
    }

    pub const fn status(&self) -> Status {
        Status {
            code: self.kind.entry().status,
        }
    }

    /// Keeps the problem with its request. If the request has a problem already, the first stays.
    pub fn keep<'r>(self, request: &'r Request<'_>) -> &'r Self {
        request.local_cache(|| self)
    }
}

/// An error (RFC 9457).
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct Body<'a> {
    /// The URL of a page with the cause and the remedy of this error, relative to the service's
    /// origin.
    #[serde(rename = "type")]
    #[schema(format = "uri-reference")]
    type_: String,
    /// A short summary, which is the same for every occurrence of this error.
    title: &'a str,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// The check that failed, for developers. It contains no data from the request but names of
    /// members.
    detail: &'a str,
    #[schema(schema_with = any_name)]
    error: &'a str,
    // The errors that have it describe it.
    #[schema(ignore)]
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<EndReason>,
    #[schema(ignore)]
    #[serde(skip_serializing_if = "Option::is_none")]
    merged_into: Option<Uuid>,
    /// The id of the request in the service's log, equal to the `X-Request-Id` header.
    request_id: &'a str,
}

impl<'r> Responder<'r, 'static> for Problem {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'static> {
        let problem = self.keep(request);
        let Entry {
            status,
            error,
            title,
            ..
        } = problem.kind.entry();
        let request_id = RequestId::of(request).as_str();
        let body = Body {
            type_: format!("/problems/{error}"),
            title,
            status,
            detail: &problem.detail,
            error,
            reason: problem.reason,
            merged_into: problem.merged_into,
            request_id,
        };
        let json = serde_json::to_vec(&body).map_err(|_| Status::InternalServerError)?;
        let mut response = Response::build();
        response
            .status(problem.status())
            .header(
                ContentType::new("application", "problem+json").with_params(("charset", "utf-8")),
            )
            .header(Header::new("Cache-Control", "no-store"))
            // Rocket runs no fairing for a request whose method or target it does not understand.
            .header(Header::new("X-Content-Type-Options", "nosniff"))
            .header(Header::new("X-Request-Id", request_id.to_owned()))
            .sized_body(json.len(), std::io::Cursor::new(json));
        if let Some(seconds) = problem.retry_after {
            response.header(Header::new("Retry-After", seconds.to_string()));
        }
        if let Some(challenge) = problem.challenge {
            response.header(Header::new("WWW-Authenticate", challenge));
        }
        if let Some(methods) = &problem.allow {
            response.header(Header::new("Allow", methods.clone()));
        }
        response.ok()
    }
}

impl From<Malformed> for Problem {
    fn from(malformed: Malformed) -> Self {
        Self::malformed(malformed.to_string())
    }
}

impl From<Reason> for Problem {
    fn from(reason: Reason) -> Self {
        let kind = ErrorCode::Refused(reason);
        Self::new(kind, kind.entry().cause)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self {
            log: refusal.log,
            ..Self::new(ErrorCode::Refused(refusal.reason), refusal.detail)
        }
    }
}

impl From<provider::Error> for Problem {
    fn from(error: provider::Error) -> Self {
        match error {
            provider::Error::Refused(refusal) => refusal.into(),
            provider::Error::Unavailable(unavailable) => Self {
                retry_after: Some(unavailable.retry_after),
                by_token: unavailable.by_token,
                ..Self::new(
                    ErrorCode::ProviderUnavailable,
                    "the identity provider is unavailable or its answer was unusable",
                )
                .logged(unavailable.to_string())
            },
        }
    }
}

impl From<provider_events::Error> for Problem {
    fn from(error: provider_events::Error) -> Self {
        use provider_events::Error;
        match error {
            Error::Refused(refused) => Self {
                log: refused.log,
                ..Self::malformed(refused.detail)
            },
            Error::Unavailable(unavailable) => provider::Error::from(unavailable).into(),
        }
    }
}

impl From<database::Error> for Problem {
    fn from(error: database::Error) -> Self {
        let log = error.to_string();
        match error {
            database::Error::Raced(_)
            | database::Error::Disconnected(_)
            | database::Error::Unavailable(_) => {
                Self::unavailable(1, "the database is unavailable").logged(log)
            }
            database::Error::Broken(_) => Self::internal().logged(log),
        }
    }
}

impl From<sign_in::Error> for Problem {
    fn from(error: sign_in::Error) -> Self {
        use sign_in::Error;
        match error {
            Error::Refused(Reason::TokenExpired) => Self::outdated(),
            Error::Refused(reason) => reason.into(),
            Error::Store(error) => error.into(),
            Error::Sign(error) => Self::internal().logged(causes::line(&error)),
        }
    }
}

impl From<refresh::Error> for Problem {
    fn from(error: refresh::Error) -> Self {
        use refresh::Error;
        match error {
            Error::Refused(why) => {
                let detail = "the refresh token is unknown, expired or already used, or its session has ended";
                let problem = Self::new(ErrorCode::InvalidRefreshToken, detail)
                    .because(why.told())
                    .logged(why.to_string());
                Self {
                    not_refreshed: Some(why),
                    ..problem
                }
            }
            Error::Unproven(_) => Refused::OtherKey.into(),
            Error::Store(error) => error.into(),
            Error::Sign(error) => Self::internal().logged(causes::line(&error)),
        }
    }
}

impl Problem {
    /// Returns the problem for a status that no code explained. Below 500, the request is at fault.
    pub fn unexplained(status: u16) -> Self {
        if status < 500 {
            Self::malformed("the request was refused")
        } else {
            Self::internal()
        }
    }

    /// Returns the problem of a token from before an event that ended the account's sessions, or
    /// the user's deletion.
    pub fn outdated() -> Self {
        let detail = "since the token was issued, the provider has ended the account's sessions, or the user was deleted";
        Self::new(ErrorCode::Refused(Reason::TokenExpired), detail)
    }

    pub fn internal() -> Self {
        Self::new(
            ErrorCode::InternalError,
            "internal error; the request itself may be valid",
        )
    }
}
