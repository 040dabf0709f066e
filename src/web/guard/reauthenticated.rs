//! Guards for users who have just signed in. Every service that verifies an access token knows it,
//! so the token alone must not change a user's identities or delete the user.

use rocket::data::Data;
use rocket::request::Request;
use serde_json::Value;
use utoipa::ToSchema;

use super::bearer::SignedIn;
use super::json_body::{JsonBody, only};
use super::rate_limited::{SignIn, admit_address};
use super::shared::{data_guard, provider_in_path, state};
use super::verified_identity::{Posted, VerifiedIdentity, nonce, posted_code, vouch};
use super::{bearer, json_body, verified_identity};
use crate::accounts::reauthentication;
use crate::accounts::reauthentication::{judge, opened_within};
use crate::domain::{IdToken, Object, Reason, VerifiedClaims};
use crate::provider::{Provider, Providers};
use crate::provider_tokens::{PostedCode, ProviderTokens};
use crate::web::{Db, ErrorCode, Problem, errors};
use crate::{clock, config};

/// A signed-in user who has just signed in.
///
/// - **Succeeds** when [`SignedIn`] does, and the session was opened within
///   `session.reauthentication_window`, or the body holds an `id_token` of one of the user's
///   identities that is not older than that.
/// - **Fails** otherwise, most often with `reauthentication_required`.
#[derive(Debug)]
pub struct Reauthenticated(pub SignedIn);

/// An identity to link, from a signed-in user who has just signed in.
///
/// - **Succeeds** when [`Reauthenticated`] does, and then [`VerifiedIdentity`], with a token that
///   is not older than `session.reauthentication_window`: an old one may have been found by another
///   person.
/// - **Fails** otherwise. A refused `id_token` answers 422 here, since 401 is about the access
///   token.
pub struct NewIdentity<'r> {
    pub signed_in: SignedIn,
    pub identity: VerifiedIdentity<'r>,
}

/// Another account of a signed-in user who has just signed in, to merge with.
///
/// - **Succeeds** when [`Reauthenticated`] does, and then the provider that the body names vouches
///   for its `id_token`, which is not older than `session.reauthentication_window`.
/// - **Fails** otherwise. A refused `id_token` answers 422 here, since 401 is about the access
///   token.
#[derive(Debug)]
pub struct OtherAccount<'r> {
    pub signed_in: SignedIn,
    pub provider: &'r config::Provider,
    pub claims: VerifiedClaims,
    /// True if the merge is only to be shown.
    pub dry_run: bool,
}

/// Another account of the user, to merge with.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MergeMeRequest {
    /// The configured name of the identity provider, in lower case.
    pub provider: String,
    /// The token that the provider's SDK has just returned for the other account, at most ten
    /// minutes old.
    #[schema(min_length = 1, max_length = 16384, pattern = "^[!-~]+$")]
    pub id_token: String,
    /// The raw nonce, if the SDK used one; at most 512 bytes.
    #[schema(min_length = 1, max_length = 512)]
    pub nonce: Option<String>,
    /// `true` changes nothing, and answers what the merge would change. The default is `false`.
    #[schema(value_type = bool, required = false)]
    pub dry_run: Option<bool>,
    /// Required if the session was opened more than ten minutes ago
    /// (`session.reauthentication_window`).
    pub reauthentication: Option<ReauthenticationRequest>,
}

/// An identity to link.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkRequest {
    /// The token that the provider's SDK has just returned, at most ten minutes old
    /// (`session.reauthentication_window`).
    #[schema(min_length = 1, max_length = 16384, pattern = "^[!-~]+$")]
    pub id_token: String,
    /// The raw nonce, if the SDK used one; at most 512 bytes.
    #[schema(min_length = 1, max_length = 512)]
    pub nonce: Option<String>,
    /// The authorization code that the provider's SDK returned with the token, as in a sign-in.
    #[schema(min_length = 1, max_length = 2048, pattern = "^[!-~]+$")]
    pub authorization_code: Option<String>,
    /// The redirect URI of the authorization request, if it had one.
    #[schema(min_length = 1, max_length = 2048, pattern = "^[!-~]+$")]
    pub redirect_uri: Option<String>,
    /// Required if the session was opened more than ten minutes ago
    /// (`session.reauthentication_window`).
    pub reauthentication: Option<ReauthenticationRequest>,
}

/// A new token of one of the user's identities, for a session that was opened too long ago.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReauthenticationRequest {
    /// The configured name of the identity provider, in lower case.
    pub provider: String,
    /// The token that the provider's SDK has just returned.
    #[schema(min_length = 1, max_length = 16384, pattern = "^[!-~]+$")]
    pub id_token: String,
    /// The raw nonce, if the SDK used one; at most 512 bytes.
    #[schema(min_length = 1, max_length = 512)]
    pub nonce: Option<String>,
    /// The authorization code that the provider's SDK returned with the token, as in a sign-in. A
    /// user who signed in without one can so have the provider's tokens revoked, also while the
    /// session is new.
    #[schema(min_length = 1, max_length = 2048, pattern = "^[!-~]+$")]
    pub authorization_code: Option<String>,
    /// The redirect URI of the authorization request, if it had one.
    #[schema(min_length = 1, max_length = 2048, pattern = "^[!-~]+$")]
    pub redirect_uri: Option<String>,
}

/// A request to unlink an identity or to delete the account.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemovalRequest {
    /// Required if the session was opened more than ten minutes ago
    /// (`session.reauthentication_window`).
    pub reauthentication: Option<ReauthenticationRequest>,
}

errors!(Reauthenticated: {
    let own = [
        ErrorCode::ReauthenticationRequired,
        ErrorCode::ProviderDisabled,
        ErrorCode::ProviderUnavailable,
        ErrorCode::Refused(Reason::IdentitySuspended),
    ];
    let refused = verified_identity::REASONS.map(|reason| ErrorCode::Refused(reason).beside_a_bearer());
    <(SignedIn, JsonBody)>::kinds().chain(own).chain(refused)
});

errors!(
    NewIdentity<'_>:
    Reauthenticated::kinds().chain(VerifiedIdentity::kinds().map(ErrorCode::beside_a_bearer))
);
errors!(OtherAccount<'_>: Reauthenticated::kinds());

data_guard!(Reauthenticated, |request, data| Self::of(request, data)
    .await);
data_guard!(NewIdentity<'r>, |request, data| Self::of(request, data)
    .await);
data_guard!(OtherAccount<'r>, |request, data| Self::of(request, data)
    .await);

impl Reauthenticated {
    async fn of(request: &Request<'_>, data: Data<'_>) -> Result<Self, Problem> {
        let signed_in = SignedIn::of(request).await?;
        let proof = {
            let body = json_body::read_if_any(request, data)
                .await?
                .unwrap_or_default();
            only(&body, &["reauthentication"], "the body")?;
            reauthentication(request, &body)?
        };
        reauthenticate(request, &signed_in, proof).await?;
        Ok(Self(signed_in))
    }
}

impl<'r> NewIdentity<'r> {
    async fn of(request: &'r Request<'_>, data: Data<'_>) -> Result<Self, Problem> {
        let signed_in = SignedIn::of(request).await?;
        let provider = provider_in_path(request)?;
        let (proof, posted) = {
            let body = json_body::read(request, data).await?;
            let known = [
                "id_token",
                "nonce",
                "authorization_code",
                "redirect_uri",
                "reauthentication",
            ];
            only(&body, &known, "the body")?;
            (
                reauthentication(request, &body)?,
                Posted::parse(&body, &provider.settings)?,
            )
        };
        reauthenticate(request, &signed_in, proof).await?;
        let config::Session {
            reauthentication_window: window,
            ..
        } = state(request)?;
        let identity = posted.verify(request, provider, Some(*window)).await;
        Ok(Self {
            signed_in,
            identity: identity.map_err(Problem::beside_a_bearer)?,
        })
    }
}

impl<'r> OtherAccount<'r> {
    async fn of(request: &'r Request<'_>, data: Data<'_>) -> Result<Self, Problem> {
        let signed_in = SignedIn::of(request).await?;
        let (own, proof, dry_run) = {
            let body = json_body::read(request, data).await?;
            only(
                &body,
                &[
                    "provider",
                    "id_token",
                    "nonce",
                    "dry_run",
                    "reauthentication",
                ],
                "the body",
            )?;
            let dry_run = json_body::flag(&body, "dry_run")?;
            // An action that cannot be undone must not run if it is unclear whether a dry run was
            // meant.
            if dry_run.is_none() && body.has("dry_run") {
                return Err(Problem::malformed("`dry_run` must be true or false"));
            }
            let proof = Proof::parse(request, &body, "")?;
            (
                reauthentication(request, &body)?,
                proof,
                dry_run.unwrap_or_default(),
            )
        };
        reauthenticate(request, &signed_in, own).await?;
        let claims = proof.vouch(request).await?;
        Ok(Self {
            signed_in,
            provider: &proof.provider.settings,
            claims,
            dry_run,
        })
    }
}

/// Parses a body's [`ReauthenticationRequest`].
fn reauthentication<'r>(
    request: &'r Request<'_>,
    body: &Object,
) -> Result<Option<(Proof<'r>, Option<PostedCode>)>, Problem> {
    match body.get("reauthentication") {
        None => Ok(None),
        Some(Value::Object(proof)) => {
            let proof = Object::from(proof.clone());
            let known = [
                "provider",
                "id_token",
                "nonce",
                "authorization_code",
                "redirect_uri",
            ];
            only(&proof, &known, "`reauthentication`")?;
            Ok(Some((
                Proof::parse(request, &proof, "reauthentication.")?,
                posted_code(&proof)?,
            )))
        }
        Some(_) => Err(Problem::malformed("`reauthentication` must be an object")),
    }
}

async fn reauthenticate(
    request: &Request<'_>,
    who: &SignedIn,
    proof: Option<(Proof<'_>, Option<PostedCode>)>,
) -> Result<(), Problem> {
    let db: &Db = state(request)?;
    let config::Session {
        reauthentication_window: window,
        ..
    } = state(request)?;
    // The session may have ended since the guard succeeded.
    match (
        db.run(|_| opened_within(db, who.token.session, *window))
            .await?,
        &proof,
    ) {
        // A code is taken only beside a proof that counts.
        (Some(true), None | Some((_, None))) => return Ok(()),
        (Some(_), _) => {}
        (None, _) => return Err(bearer::over(db, who.token).await),
    }
    let required = |detail| Err(Problem::new(ErrorCode::ReauthenticationRequired, detail));
    let Some((proof, code)) = proof else {
        return required(
            "the session was opened too long ago, and the request has no `reauthentication`",
        );
    };
    admit_address::<SignIn>(request)?;
    let claims = proof.vouch(request).await?;
    let provider = &proof.provider.settings;
    match db
        .run(|_| judge(db, who.user.id, &provider.name, &claims))
        .await?
    {
        reauthentication::Proof::Theirs => {
            if let Some(code) = code {
                let tokens: &ProviderTokens = state(request)?;
                tokens.keep(db, provider, &claims, &code).await?;
            }
            Ok(())
        }
        reauthentication::Proof::NotTheirs => {
            required("the identity in `reauthentication` is not linked to this user")
        }
        reauthentication::Proof::Outdated => Err(Problem::outdated().beside_a_bearer()),
        reauthentication::Proof::Suspended => Err(Reason::IdentitySuspended.into()),
    }
}

/// A parsed [`ReauthenticationRequest`].
struct Proof<'r> {
    provider: &'r Provider,
    id_token: IdToken,
    nonce: Option<String>,
}

impl<'r> Proof<'r> {
    /// Parses a proof whose members have that prefix in the body.
    fn parse(request: &'r Request<'_>, proof: &Object, prefix: &str) -> Result<Self, Problem> {
        let providers: &Providers = state(request)?;
        let provider = proof
            .str("provider")
            .and_then(|name| providers.get(name))
            .ok_or_else(|| {
                let detail =
                    format!("`{prefix}provider` must be the name of a configured provider");
                Problem::malformed(detail)
            })?;
        let id_token = json_body::required(proof, &format!("{prefix}id_token"))?;
        let id_token = IdToken::parse(id_token, provider.settings.token_format)?;
        Ok(Self {
            provider,
            id_token,
            nonce: nonce(proof)?.map(str::to_owned),
        })
    }

    /// Verifies the token with its provider. An older one does not count: a thief may have it, too.
    async fn vouch(&self, request: &Request<'_>) -> Result<VerifiedClaims, Problem> {
        let config::Session {
            reauthentication_window: window,
            ..
        } = state(request)?;
        let fresh = self.provider.with_max_age(*window);
        let claims = vouch(
            request,
            &fresh,
            &self.id_token,
            self.nonce.as_deref(),
            clock::now(),
        )
        .await;
        claims.map_err(Problem::beside_a_bearer)
    }
}
