//! `POST /api/v1/providers/<name>/data-deletion`: Facebook's data deletion request callback.

use rocket::http::Status;
use rocket::{State, post};
use serde::Serialize;
use utoipa::ToSchema;

use super::provider_events::Message;
use crate::accounts::Issuer;
use crate::clock;
use crate::domain::presets::Sender;
use crate::provider::Providers;
use crate::provider_events::data_deletion::carry_out;
use crate::provider_events::signed_request;
use crate::web::guard::shared::named;
use crate::web::guard::{ClientOrigin, EventSender};
use crate::web::{Db, ErrorCode, Json, Problem, Problems, failures, resource};

resource!("Providers": request_data_deletion);

/// A form with a signed request.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "it describes what `presets::facebook` reads by hand"
)]
struct DeletionRequest {
    /// The signature and the payload, each in base64url, separated by a dot.
    #[schema(example = "c2lnbmF0dXJl.eyJ1c2VyX2lkIjoiMjE4NDcxIn0")]
    signed_request: String,
}

/// The page on which the account's owner sees the outcome of a request.
#[derive(Serialize, ToSchema)]
struct DeletionReceipt {
    /// The address of a page for people.
    #[schema(
        format = "uri",
        example = "https://id.example.com/providers/facebook/data-deletion/0b3f6c1e5d2a4f7e9c8b1a2d3e4f5a6b"
    )]
    url: String,
    /// The code in that address. It does not identify a person.
    #[schema(example = "0b3f6c1e5d2a4f7e9c8b1a2d3e4f5a6b")]
    confirmation_code: String,
}

/// A form, which is small.
type SignedRequest = Message<{ 64 << 10 }>;

failures!(Malformed: ErrorCode::InvalidRequest);

/// Receive a request to delete data
///
/// Facebook's data deletion request callback: the owner of a Facebook account has asked Facebook to
/// have this app delete what came from it. The identity is unlinked, and a user who has no other
/// one is deleted. It is done before the answer. A repeat does nothing and gets the same answer.
#[utoipa::path(
    path = "/providers/{provider}/data-deletion",
    params(("provider" = String, Path, description = "The configured name of a provider with the preset `facebook`.",
            example = "facebook")),
    request_body(content = DeletionRequest, content_type = "application/x-www-form-urlencoded",
                 description = "The request, signed with the app secret."),
    responses(
        (status = 200, description = "The request was carried out.", body = DeletionReceipt),
        Problems<(EventSender<'_>, (SignedRequest, Malformed), Db)>,
    ),
)]
#[post("/providers/<name>/data-deletion", data = "<message>")]
async fn request_data_deletion(
    from: EventSender<'_>,
    name: &str,
    message: Result<SignedRequest, Problem>,
    db: &Db,
    providers: &State<Providers>,
    issuer: &State<Issuer>,
    origin: ClientOrigin,
) -> Result<Json<DeletionReceipt>, Problem> {
    let provider = named(providers, name)?;
    if provider.settings.preset.sender != Sender::Facebook {
        return Err(Problem::new(
            ErrorCode::NotFound,
            "this provider sends no requests to delete data",
        ));
    }
    let Message { media_type, body } = message?;
    let request = signed_request(provider, &media_type, &body, clock::now());
    let request = request.map_err(|error| Problem::from(error).about(name))?;
    from.is_genuine();
    let others = providers.others_of_issuer(provider);
    let code = carry_out(db, name, &others, &request, &origin.0).await?;
    let confirmation_code = code.simple().to_string();
    let url = format!(
        "{}/providers/{name}/data-deletion/{confirmation_code}",
        issuer.name
    );
    Ok(Json(
        Status::Ok,
        DeletionReceipt {
            url,
            confirmation_code,
        },
    ))
}
