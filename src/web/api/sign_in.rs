//! `POST /api/v1/auth/oauth/<provider>`: exchanges an identity provider's token for a credential of the service.

use rocket::{State, post};

use super::token_response::{SignInBody, TokenResponse};
use crate::accounts::sign_in::{Attempt, sign_in as open_session};
use crate::accounts::{Issuer, SharedStatements};
use crate::config;
use crate::domain::Reason;
use crate::web::guard::proof::ProofErrors;
use crate::web::guard::rate_limited::SignIn;
use crate::web::guard::verified_identity::SignInRequest;
use crate::web::guard::{NewKey, Page, RateLimited, VerifiedIdentity};
use crate::web::openapi::examples;
use crate::web::openapi::problems::ANYWHERE;
use crate::web::{Db, ErrorCode, ErrorResponses, Problem, Problems, failures, resource};

resource!("Session": sign_in);

failures!(
    /// The errors of the rules about users.
    SignInErrors: ErrorCode::Refused(Reason::UserDisabled),
    ErrorCode::Refused(Reason::IdentitySuspended),
    ErrorCode::Refused(Reason::UserNotFound),
    ErrorCode::Refused(Reason::IdentityConflict),
    ErrorCode::Refused(Reason::LinkRequired),
    ErrorCode::Refused(Reason::TooManyIdentities),
    ErrorCode::Refused(Reason::EmailNotVerified),
    ErrorCode::Refused(Reason::EmailMissing),
);

type Failures<'r> = (
    (RateLimited<SignIn>, ProofErrors),
    (VerifiedIdentity<'r>, SignInErrors, Db),
    Page<'r>,
);

/// Returns the errors of a sign-in with a provider that exists.
pub fn errors() -> impl Iterator<Item = ErrorCode> {
    Failures::kinds()
        .chain(ANYWHERE)
        .filter(|kind| *kind != ErrorCode::ProviderNotFound)
}

/// Sign in with an identity provider's token
///
/// A known identity signs in as its user. An unknown identity with a verified e-mail address is
/// linked to the user with the same verified address, or becomes a new user. An unverified address
/// is never used to find a user. If a user has an unverified address and another user verifies it,
/// the first user loses the address and nothing else.
///
/// The request can be repeated with the same token until that is too old; each success opens a
/// session.
///
/// A page of `web.origins` asks for `"session": "cookie"`: then the refresh token is in a cookie
/// that its scripts cannot read, and not in the body.
#[utoipa::path(
    path = "/auth/oauth/{provider}",
    params(("provider" = String, Path, description = "The configured name of the identity provider, in lower case.",
            example = "google")),
    request_body(content = SignInRequest, description = "The `id_token` that the provider's SDK has just returned.", examples(
        ("plain" = (summary = "A token", value = json!(examples::id_token()))),
        ("whole" = (summary = "With all members", value = json!(examples::whole_sign_in()))),
    )),
    responses(
        (status = 201, description = "Signed in as a new user.", body = SignInBody,
         example = json!(examples::signed_in("created"))),
        (status = 200, description = "Signed in as an existing user.", body = SignInBody, examples(
            ("signed_in" = (summary = "The identity was known", value = json!(examples::signed_in("signed_in")))),
            ("linked" = (summary = "The identity was new, and a user had its verified e-mail address",
                         value = json!(examples::signed_in("linked")))),
        )),
        Problems<Failures<'_>>,
    ),
)]
#[post("/auth/oauth/<_>", data = "<identity>")]
async fn sign_in(
    _limit: RateLimited<SignIn>,
    key: NewKey<'_>,
    identity: VerifiedIdentity<'_>,
    db: &Db,
    shared: &State<SharedStatements>,
    issuer: &State<Issuer>,
    lifetimes: &State<config::Session>,
) -> Result<TokenResponse, Problem> {
    let binding = identity
        .provider
        .binding(&identity.claims.client_id)
        .unwrap_or(lifetimes.binding);
    let attempt = Attempt {
        provider: identity.provider,
        claims: &identity.claims,
        create: identity.create,
        device_name: identity.device_name.as_deref(),
        device_platform: identity.device_platform.as_deref(),
        reported_name: identity.name.as_deref(),
        key: key.bind(binding, &identity.provider.name)?,
        origin: &key.0.origin,
        now: identity.now,
    };
    let opened = open_session(db, shared, issuer, &attempt).await?;
    identity.keep_code(db).await?;
    Ok(TokenResponse::signed_in(
        opened,
        attempt.now,
        identity.page.as_ref(),
    ))
}
