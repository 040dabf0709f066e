//! `POST /api/v1/admin/webhooks/<name>/…`: the replay of the pages and the test of the command line, for a backend whose
//! operators have no shell.

use rocket::http::Status;
use rocket::{State, post};
use serde::Serialize;
use utoipa::ToSchema;

use super::guard::{Administrator, no_longer_valid};
use super::reason;
use crate::web::guard::json_body::only;
use crate::web::guard::{ClientOrigin, JsonBody};
use crate::web::{Db, ErrorCode, Json, NotFoundOnly, Problem, Problems, resource};
use crate::webhooks::store::exists;
use crate::webhooks::{Replayed, Webhooks, replay};

resource!("Administration": replay_webhook, test_webhook);

fn unknown() -> Problem {
    Problem::new(
        ErrorCode::NotFound,
        "there is no webhook with the name in the path",
    )
}

/// A replay of a webhook's messages.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is parsed by hand, to report what is wrong")]
struct ReplayRequest {
    /// The reason, which the audit log keeps. Write nothing personal into it.
    #[schema(
        example = "the receiver is repaired",
        min_length = 1,
        max_length = 500,
        pattern = r"[^\s\x00-\x1f\x7f-\x9f]"
    )]
    reason: String,
}

/// The receiver's answer to a test.
#[derive(Serialize, ToSchema)]
struct WebhookTest {
    /// True if the receiver accepted the message.
    accepted: bool,
    /// The reason why it did not; `null` if it did.
    #[schema(required = true, example = "the answer is 401")]
    failure: Option<String>,
}

/// Send a webhook's messages again
///
/// Makes messages due that are parked or wait for a retry. A receiver that was down needs no replay
/// of waiting messages: they are due once it accepts a message. Needs the role `admin`.
#[utoipa::path(
    params(("name" = String, Path, description = "The webhook's name in the settings.")),
    request_body(content = ReplayRequest),
    responses(
        (status = 200, description = "The messages that are due now.", body = Replayed),
        Problems<(Administrator, JsonBody, NotFoundOnly)>,
    ),
)]
#[post("/webhooks/<name>/replay", data = "<body>")]
async fn replay_webhook(
    key: Administrator,
    name: &str,
    db: &Db,
    origin: ClientOrigin,
    body: JsonBody,
) -> Result<Json<Replayed>, Problem> {
    let reason = body.read(|body| {
        only(body, &["reason"], "the body")?;
        reason(body)
    })?;
    if !db.run(|_| exists(db, name)).await? {
        return Err(unknown());
    }
    let by = key.0.by(Some(&reason), &origin.0);
    let replayed = replay(db, name, None, by)
        .await?
        .ok_or_else(no_longer_valid)?;
    Ok(Json(Status::Ok, replayed))
}

/// Try a webhook
///
/// Sends a signed `webhook.test` message to the receiver now, and returns whether it accepted it.
/// The queue of messages does not change. Needs the role `admin`.
#[utoipa::path(
    params(("name" = String, Path, description = "The webhook's name in the settings.")),
    responses(
        (status = 200, description = "The receiver has answered, or not in time.", body = WebhookTest),
        Problems<(Administrator, NotFoundOnly)>,
    ),
)]
#[post("/webhooks/<name>/test")]
async fn test_webhook(
    _key: Administrator,
    name: &str,
    webhooks: &State<Webhooks>,
) -> Result<Json<WebhookTest>, Problem> {
    let sent = webhooks.test(name).await.ok_or_else(unknown)?;
    let failure = sent.err().map(|failed| failed.to_string());
    Ok(Json(
        Status::Ok,
        WebhookTest {
            accepted: failure.is_none(),
            failure,
        },
    ))
}
