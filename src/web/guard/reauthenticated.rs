//! Guards for users who have just signed in. Every service that verifies an access token knows it, so the token
//! alone must not change a user's identities or delete the user.

use rocket::data::{Data, FromData, Outcome};
use rocket::request::Request;
use rocket::{Ignite, Rocket, Sentinel};
use serde_json::Value;
use utoipa::ToSchema;

use super::bearer::{self, SignedIn};
use super::json_body::{self, JsonBody};
use super::outcome;
use super::rate_limited::{SignIn, admit_address};
use super::verified_identity::{self, VerifiedIdentity, nonce, posted_code, vouch};
use crate::domain::id_token::IdToken;
use crate::domain::json::Object;
use crate::domain::refusal::Reason;
use crate::provider::{Provider, Providers};
use crate::provider_tokens::{PostedCode, ProviderTokens};
use crate::store::reauthentication::{is_identity_of, opened_within};
use crate::web::database::Db;
use crate::web::openapi::problems::ErrorResponses;
use crate::web::problem::{ErrorCode, Problem};
use crate::{clock, config};

/// A signed-in user who has just signed in.
///
/// - **Succeeds** when [`SignedIn`] does, and the session was opened within `session.reauthentication_window`, or the
///   body holds an `id_token` of one of the user's identities that is not older than that.
/// - **Fails** otherwise, most often with `reauthentication_required`.
/// - **Forwards** never.
#[derive(Debug)]
pub struct Reauthenticated(pub SignedIn);

/// An identity to link, from a signed-in user who has just signed in.
///
/// - **Succeeds** when [`Reauthenticated`] does, and then [`VerifiedIdentity`].
/// - **Fails** otherwise. A refused `id_token` answers 422 here, since 401 is about the access token.
/// - **Forwards** never.
#[derive(Debug)]
pub struct NewIdentity<'r> {
    /// The signed-in user.
    pub signed_in: SignedIn,
    /// The identity to link.
    pub identity: VerifiedIdentity<'r>,
}

/// A new token of one of the user's identities, for a session that was opened too long ago.
#[derive(Debug, ToSchema)]
pub struct ReauthenticationRequest {
    /// The configured name of the identity provider, in lower case.
    pub provider: String,
    /// The token that the provider's SDK has just returned.
    #[schema(min_length = 1, max_length = 8192, pattern = "^[!-~]+$")]
    pub id_token: String,
    /// The raw nonce, if the SDK used one; at most 512 bytes.
    #[schema(min_length = 1, max_length = 512)]
    pub nonce: Option<String>,
    /// The authorization code that the provider's SDK returned with the token, as in a sign-in. A user who signed in
    /// without one can so have the provider's tokens revoked.
    #[schema(min_length = 1, max_length = 2048, pattern = "^[!-~]+$")]
    pub authorization_code: Option<String>,
    /// The redirect URI of the authorization request, if it had one.
    #[schema(min_length = 1, max_length = 2048, pattern = "^[!-~]+$")]
    pub redirect_uri: Option<String>,
}

/// A request to unlink an identity or to delete the account.
#[derive(Debug, ToSchema)]
pub struct RemovalRequest {
    /// Required if the session was opened more than ten minutes ago (`session.reauthentication_window`).
    pub reauthentication: Option<ReauthenticationRequest>,
}

impl ErrorResponses for Reauthenticated {
    fn kinds() -> impl Iterator<Item = ErrorCode> {
        let own = [
            ErrorCode::ReauthenticationRequired,
            ErrorCode::ProviderDisabled,
            ErrorCode::ProviderUnavailable,
            ErrorCode::Refused(Reason::IdentitySuspended),
        ];
        let refused = verified_identity::REASONS.map(|reason| ErrorCode::Refused(reason).beside_a_bearer());
        <(SignedIn, JsonBody)>::kinds().chain(own).chain(refused)
    }
}

impl ErrorResponses for NewIdentity<'_> {
    fn kinds() -> impl Iterator<Item = ErrorCode> {
        Reauthenticated::kinds().chain(VerifiedIdentity::kinds().map(ErrorCode::beside_a_bearer))
    }
}

impl Sentinel for Reauthenticated {
    fn abort(rocket: &Rocket<Ignite>) -> bool {
        SignedIn::abort(rocket)
            || VerifiedIdentity::abort(rocket)
            || rocket.state::<config::Session>().is_none()
    }
}

impl Sentinel for NewIdentity<'_> {
    fn abort(rocket: &Rocket<Ignite>) -> bool {
        Reauthenticated::abort(rocket)
    }
}

#[rocket::async_trait]
impl<'r> FromData<'r> for Reauthenticated {
    type Error = ();

    async fn from_data(request: &'r Request<'_>, data: Data<'r>) -> Outcome<'r, Self> {
        let reauthenticated = async {
            let signed_in = SignedIn::of(request).await?;
            let body = json_body::read_if_any(request, data).await?.unwrap_or_default();
            reauthenticate(request, &signed_in, &body).await?;
            Ok(Self(signed_in))
        };
        outcome(reauthenticated.await, request)
    }
}

#[rocket::async_trait]
impl<'r> FromData<'r> for NewIdentity<'r> {
    type Error = ();

    async fn from_data(request: &'r Request<'_>, data: Data<'r>) -> Outcome<'r, Self> {
        let verified = async {
            let signed_in = SignedIn::of(request).await?;
            let provider = verified_identity::provider_in_path(request)?;
            let body = json_body::read(request, data).await?;
            reauthenticate(request, &signed_in, &body).await?;
            let identity = verified_identity::verify(request, provider, &body).await;
            Ok(Self { signed_in, identity: identity.map_err(Problem::beside_a_bearer)? })
        };
        outcome(verified.await, request)
    }
}

async fn reauthenticate(request: &Request<'_>, who: &SignedIn, body: &Object) -> Result<(), Problem> {
    let db: &Db = request.rocket().state().ok_or_else(Problem::internal)?;
    let config::Session { reauthentication_window: window, .. } =
        request.rocket().state().ok_or_else(Problem::internal)?;
    let proof = body.get("reauthentication").map(|proof| Proof::parse(request, proof)).transpose()?;
    // The session may have ended since the guard succeeded.
    match opened_within(db.pool(), who.token.session, *window).await? {
        Some(true) => return Ok(()),
        Some(false) => {}
        None => return Err(bearer::over(db, who.token).await),
    }
    let required = |detail| Err(Problem::new(ErrorCode::ReauthenticationRequired, detail));
    let Some(Proof { provider, id_token, nonce, code }) = proof else {
        return required("the session was opened too long ago, and the request has no `reauthentication`");
    };
    admit_address::<SignIn>(request)?;
    // An older token does not count: a thief may have it, too.
    let fresh = provider.with_max_age(*window);
    let claims = vouch(request, &fresh, &id_token, nonce.as_deref(), clock::now()).await;
    let claims = claims.map_err(Problem::beside_a_bearer)?;
    match is_identity_of(db.pool(), who.user.id, &provider.settings.name, &claims).await? {
        Some(true) => {
            if let Some(code) = code {
                let tokens: &ProviderTokens = request.rocket().state().ok_or_else(Problem::internal)?;
                tokens.keep(db.pool(), &provider.settings, &claims, &code).await?;
            }
            Ok(())
        }
        Some(false) => required("the identity in `reauthentication` is not linked to this user"),
        None => {
            let kind = ErrorCode::Refused(Reason::IdentitySuspended);
            Err(Problem::new(kind, kind.entry().cause))
        }
    }
}

/// A parsed [`ReauthenticationRequest`].
struct Proof<'r> {
    provider: &'r Provider,
    id_token: IdToken,
    nonce: Option<String>,
    code: Option<PostedCode>,
}

impl<'r> Proof<'r> {
    fn parse(request: &'r Request<'_>, proof: &Value) -> Result<Self, Problem> {
        let malformed = |detail: &'static str| Problem::new(ErrorCode::InvalidRequest, detail);
        let Value::Object(proof) = proof else {
            return Err(malformed("`reauthentication` must be an object"));
        };
        let proof = Object::from(proof.clone());
        let providers: &Providers = request.rocket().state().ok_or_else(Problem::internal)?;
        let provider = proof.str("provider").and_then(|name| providers.get(name)).ok_or_else(|| {
            malformed("`reauthentication.provider` must be the name of a configured provider")
        })?;
        let id_token = json_body::required(&proof, "reauthentication.id_token")?;
        let id_token = IdToken::parse(id_token, provider.settings.token_format)?;
        Ok(Self { provider, id_token, nonce: nonce(&proof)?, code: posted_code(&proof)? })
    }
}
