//! `POST /api/v1/providers/<name>/events`: providers' reports about their accounts.

use rocket::data::{Data, FromData, Outcome, ToByteUnit};
use rocket::http::Status;
use rocket::request::Request;
use rocket::response::{self, Responder};
use rocket::{State, post};
use serde::Serialize;
use utoipa::ToSchema;

use crate::clock;
use crate::domain::presets::Sender;
use crate::domain::security_event::Refused;
use crate::provider::Providers;
use crate::provider_events::{self, Error, MAX_LENGTH};
use crate::web::guard::shared::named;
use crate::web::guard::{ClientOrigin, EventSender, json_body};
use crate::web::http::fields;
use crate::web::openapi::examples;
use crate::web::{Cached, Db, ErrorCode, ErrorResponses, Json, Problem, Problems, resource};

resource!("Providers": receive_provider_events);

/// The body of any media type, and its media type in lower case without parameters.
///
/// - **Succeeds** when the body has at most `MOST` bytes.
/// - **Fails** otherwise, with a [`Problem`].
#[derive(Debug)]
pub(super) struct Message<const MOST: usize> {
    pub media_type: String,
    pub body: Vec<u8>,
}

#[rocket::async_trait]
impl<'r, const MOST: usize> FromData<'r> for Message<MOST> {
    type Error = Problem;

    async fn from_data(request: &'r Request<'_>, data: Data<'r>) -> Outcome<'r, Self> {
        let media_type = fields::media_type(request).map(str::to_ascii_lowercase);
        match json_body::whole(request, data, MOST.bytes()).await {
            Ok(body) => Outcome::Success(Self {
                media_type: media_type.unwrap_or_default(),
                body,
            }),
            Err(problem) => Outcome::Error((problem.status(), problem)),
        }
    }
}

/// The body in which a provider sends events.
type Events = Message<MAX_LENGTH>;

/// The errors of every callback. A message that is at fault is answered as its sender expects.
impl<const MOST: usize> ErrorResponses for Message<MOST> {
    fn kinds() -> impl Iterator<Item = ErrorCode> {
        [
            ErrorCode::ProviderNotFound,
            ErrorCode::NotFound,
            ErrorCode::PayloadTooLarge,
            ErrorCode::UnsupportedMediaType,
            ErrorCode::ProviderUnavailable,
            ErrorCode::ServiceUnavailable,
        ]
        .into_iter()
    }
}

/// A refused message (RFC 8935 §2.3).
#[derive(Serialize, ToSchema)]
struct EventError {
    /// The error's name (RFC 8935 §2.4).
    #[schema(value_type = String, example = "invalid_audience")]
    err: &'static str,
    /// The check that failed, for developers.
    #[schema(example = "`aud` is not a client id that is configured for this provider")]
    description: &'static str,
}

/// A failure, in the form of RFC 8935 where the message is at fault, else a problem.
#[derive(Debug)]
enum Failure {
    Refused(Sender, Refused),
    Problem(Problem),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl<'r> Responder<'r, 'static> for Failure {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'static> {
        match self {
            Self::Refused(sender, refused) => {
                let log = refused
                    .log
                    .as_ref()
                    .map_or(String::new(), |log| format!("; {log}"));
                let logged = format!("{refused}{log}");
                let problem = Problem::malformed(refused.detail)
                    .logged(logged)
                    .keep(request);
                if sender == Sender::SecurityEvents {
                    let body = EventError {
                        err: refused.fault.into(),
                        description: refused.detail,
                    };
                    let mut response = Json(Status::BadRequest, body).respond_to(request)?;
                    response.set_raw_header("Content-Language", "en");
                    Ok(response)
                } else {
                    problem.clone().respond_to(request)
                }
            }
            Self::Problem(problem) => problem.keep(request).clone().respond_to(request),
        }
    }
}

/// Receive a provider's events
///
/// Identity providers report here that an account was hijacked, disabled or deleted, or that its
/// owner no longer uses it for the app. The address is registered with the provider, as
/// docs/provider-events.md describes. A message is judged by the provider's published keys and
/// applied once; a repeat is acknowledged and does nothing.
#[utoipa::path(
    path = "/providers/{provider}/events",
    params(("provider" = String, Path, description = "The configured name of the identity provider, in lower case.",
            example = "google")),
    request_body(content = String, content_type = "application/secevent+jwt",
                 description = "A signed Security Event Token (RFC 8417), or the message as the provider documents it.",
                 example = json!(examples::SECURITY_EVENT)),
    responses(
        (status = 202, description = "The message is stored and applied, or was before."),
        (status = 200, description = "The same, for providers that expect this status."),
        (status = 400, description = "The message is refused (RFC 8935 §2.4).", body = EventError,
         headers(("Content-Language" = String, description = "`en`"))),
        Problems<(EventSender<'_>, Events, Db)>,
    ),
)]
#[post("/providers/<name>/events", data = "<message>")]
async fn receive_provider_events(
    from: EventSender<'_>,
    name: &str,
    message: Result<Events, Problem>,
    db: &Db,
    providers: &State<Providers>,
    origin: ClientOrigin,
) -> Result<Cached<(Status, ())>, Failure> {
    let provider = named(providers, name)?;
    let sender = provider.settings.preset.sender;
    if sender == Sender::SecurityEvents && !provider.signs_events() {
        return Err(Problem::new(
            ErrorCode::NotFound,
            "this provider publishes no keys to sign events with",
        )
        .into());
    }
    let Message { media_type, body } = message?;
    let report = provider_events::read(provider, &media_type, body, clock::now()).await;
    let report = report.map_err(|error| match error {
        Error::Refused(refused) => Failure::Refused(sender, refused),
        Error::Unavailable(unavailable) => Problem::from(crate::provider::Error::from(unavailable))
            .about(name)
            .into(),
    })?;
    from.is_genuine();
    let others = providers.others_of_issuer(provider);
    let applied = provider_events::apply(db, name, &others, &report, &origin.0.request_id).await;
    applied.map_err(Problem::from)?;
    let status = match sender {
        Sender::SecurityEvents => Status::Accepted,
        Sender::Apple | Sender::Facebook => Status::Ok,
    };
    Ok(Cached::never((status, ())))
}
