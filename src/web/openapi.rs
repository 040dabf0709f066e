//! `GET /api/v1/openapi.json`: the OpenAPI description, generated from the code that answers.
//!
//! Each resource describes its routes next to them, with the structs that it serialises and the
//! errors of its guards. [`description`] adds what they share.

pub mod examples;
pub mod headers;
pub mod page;
pub mod problems;

use std::sync::OnceLock;

use rocket::http::ContentType;
use rocket::{State, get};
use serde_json::{Value, json};
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::tag::{Tag, TagBuilder};
use utoipa::openapi::{
    Components, ComponentsBuilder, Content, Info, InfoBuilder, LicenseBuilder, OpenApi,
    OpenApiBuilder, PathsBuilder, RefOr, Required, Server,
};

use self::problems::{NoErrors, Problems};
use super::api::view::Cached;
use super::problem::{self, Problem};
use super::resource::{operations, resource};

/// The name of the security scheme in the descriptions of the routes.
const ACCESS_TOKEN: &str = "access_token";

/// The operations with optional bodies. utoipa treats a body as optional only if it may be `null`.
const OPTIONAL_BODIES: [&str; 3] = ["deleteMe", "logout", "unlinkIdentity"];

/// The text before the table of errors.
const INTRODUCTION: &str = include_str!("openapi/description.md");

/// The document, which is written when it is first read and never changes afterwards.
#[derive(Debug)]
pub struct Document {
    describe: fn() -> OpenApi,
    json: OnceLock<Result<String, String>>,
}

impl Document {
    pub const fn new(describe: fn() -> OpenApi) -> Self {
        Self {
            describe,
            json: OnceLock::new(),
        }
    }
}

resource!("Description": get_open_api);

/// Returns the description of the whole service: of the routes under `/api/v1`, and of the other
/// routes, whose paths are complete.
pub fn description(api: OpenApi, outside: impl IntoIterator<Item = OpenApi>) -> OpenApi {
    let frame = OpenApiBuilder::new()
        .info(info())
        .servers(Some([Server::new("/")]))
        .tags(Some(tags()))
        .paths(PathsBuilder::new())
        .components(Some(components()))
        .build();
    let mut whole = frame.nest("/api/v1", api);
    for routes in outside {
        whole.merge(routes);
    }
    let schemas = json!(
        whole
            .components
            .as_ref()
            .map(|components| &components.schemas)
    );
    for operation in whole.paths.paths.values_mut().flat_map(operations) {
        complete(operation, &schemas);
    }
    whole
}

fn info() -> Info {
    let licence = env!("CARGO_PKG_LICENSE");
    InfoBuilder::new()
        .title("Vestibule")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(format!("{INTRODUCTION}{}", problems::table())))
        .license(Some(
            LicenseBuilder::new()
                .name(licence)
                .identifier(Some(licence))
                .build(),
        ))
        .build()
}

fn tags() -> [Tag; 7] {
    let tag = |name, description| {
        TagBuilder::new()
            .name(name)
            .description(Some(description))
            .build()
    };
    [
        tag("Session", "Sign in, stay signed in, sign out."),
        tag("Account", "Read or delete the signed-in user."),
        tag(
            "Identities",
            "List, link and unlink the user's accounts at identity providers.",
        ),
        tag(
            "Providers",
            "For identity providers, which report changes of their accounts.",
        ),
        tag("Verification", "For services that verify access tokens."),
        tag(
            "Operation",
            "For operators and monitoring: liveness, readiness and metrics.",
        ),
        tag("Description", "The API description and its error pages."),
    ]
}

fn components() -> Components {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").description(Some(
        "The `access_token` of the latest sign-in or refresh. Send exactly one `Authorization` header.",
    ));
    let mut components = ComponentsBuilder::new()
        .schema_from::<problem::Body<'_>>()
        .security_scheme(ACCESS_TOKEN, SecurityScheme::Http(bearer.build()))
        .build();
    let headers = headers::all().into_iter();
    components.headers = headers
        .map(|(name, header)| (name.to_owned(), header.into()))
        .collect();
    components.examples = problems::examples()
        .map(|(name, example)| (name.to_owned(), example.into()))
        .collect();
    components
}

/// Adds the parts that all routes share, and the parts that utoipa cannot express.
fn complete(operation: &mut Operation, schemas: &Value) {
    // Without this member, the operation would not state that it needs no authentication.
    operation.security.get_or_insert_default();
    let id = operation.operation_id.as_deref().unwrap_or_default();
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        if OPTIONAL_BODIES.contains(&id) {
            body.required = Some(Required::False);
        }
        body.content
            .values_mut()
            .for_each(|content| illustrate(content, schemas));
    }
    // `RequestLog` adds the header to every answer.
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            let name = headers::REQUEST_ID_HEADER;
            response
                .headers
                .insert(name.to_owned(), headers::reference(name));
            response
                .content
                .values_mut()
                .for_each(|content| illustrate(content, schemas));
        }
    }
}

/// Adds the example of the content's type.
fn illustrate(content: &mut RefOr<Content>, schemas: &Value) {
    if let RefOr::T(content) = content
        && let Some(RefOr::Ref(schema)) = &content.schema
        && content.example.is_none()
        && content.examples.is_empty()
    {
        let name = schema.ref_location.rsplit('/').next().unwrap_or_default();
        content.example =
            examples::of(name).or_else(|| Some(examples::sample(&schemas[name], schemas)));
    }
}

/// Get this document
///
/// Returns the OpenAPI description of the service, for client generators and API viewers.
#[utoipa::path(
    responses(
        (
            status = 200, description = "The document.", content_type = "application/json", body = Object,
            headers(("Cache-Control" = String, description = "`public, max-age=300`")),
        ),
        Problems<NoErrors>,
    ),
)]
#[get("/openapi.json")]
fn get_open_api(document: &State<Document>) -> Result<Cached<(ContentType, &str)>, Problem> {
    match document.json.get_or_init(|| {
        (document.describe)()
            .to_json()
            .map_err(|error| error.to_string())
    }) {
        Ok(json) => Ok(Cached::for_five_minutes((ContentType::JSON, json))),
        Err(error) => Err(Problem::internal().logged(error.as_str())),
    }
}
