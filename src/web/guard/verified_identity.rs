//! The guard of the sign-in route, which verifies the token with the provider in the path.

use std::time::{Duration, Instant};

use rocket::data::Data;
use rocket::request::Request;
use serde_json::Value;
use utoipa::ToSchema;

use super::json_body::{self, JsonBody};
use super::origin::ClientOrigin;
use super::page::Page;
use super::shared::{data_guard, provider_in_path, state};
use crate::domain::claims::{MAX_NAME_CHARS, display_name};
use crate::domain::text::is_blank;
use crate::domain::{IdToken, Object, Reason, VerifiedClaims, printable};
use crate::events::Refusals;
use crate::events::record::RefusedRequest;
use crate::provider::{self, Provider};
use crate::provider_tokens::{PostedCode, ProviderTokens};
use crate::secret::Secret;
use crate::web::{Db, ErrorCode, Problem, errors};
use crate::{clock, config};

const MAX_NONCE: usize = 512;
const MAX_DEVICE_TEXT: usize = 100;
/// The longest authorization code or redirect URI, in bytes.
const MAX_CODE: usize = 2048;
const MAX_CLAIMED_TEXT: usize = 255;

/// The reasons to refuse a token, for any purpose.
pub(super) const REASONS: [Reason; 6] = [
    Reason::InvalidToken,
    Reason::TokenExpired,
    Reason::IssuerMismatch,
    Reason::AudienceMismatch,
    Reason::NonceMismatch,
    Reason::DomainNotAllowed,
];

/// An identity that its provider has verified, and the rest of the request.
///
/// - **Succeeds** when the body is well-formed and the provider in the path vouches for the token.
/// - **Fails** otherwise; the [`Problem`] is kept with the request for the catcher.
pub struct VerifiedIdentity<'r> {
    /// The provider in the path.
    pub provider: &'r config::Provider,
    /// The claims that it vouches for.
    pub claims: VerifiedClaims,
    pub create: bool,
    pub page: Option<Page<'r>>,
    code: Option<PostedCode>,
    tokens: &'r ProviderTokens,
    pub device_name: Option<String>,
    pub device_platform: Option<String>,
    /// The user's name, as the provider has given it to the app.
    pub name: Option<String>,
    /// The time of the verification, in seconds since the epoch.
    pub now: i64,
}

// The guard parses by hand, to report what is wrong. The tests send what these structs allow and
// forbid.

/// A sign-in with an identity provider's token.
#[derive(Debug, ToSchema)]
pub struct SignInRequest {
    /// The token as the provider's SDK returned it, not an access token or an authorization code.
    #[schema(min_length = 1, max_length = 16384, pattern = "^[!-~]+$")]
    pub id_token: String,
    /// The raw nonce, if one was used; at most 512 bytes. The token contains it unchanged, or its
    /// SHA-256 in lower-case hex if the provider's `nonce_form` is `sha256`.
    #[schema(min_length = 1, max_length = 512)]
    pub nonce: Option<String>,
    /// The authorization code that the provider's SDK returned with the token. With it, the
    /// provider's tokens can be revoked when the user is deleted or the identity unlinked, which
    /// Apple demands.
    #[schema(min_length = 1, max_length = 2048, pattern = "^[!-~]+$")]
    pub authorization_code: Option<String>,
    /// The redirect URI of the authorization request, if it had one: on the web, not in native
    /// apps.
    #[schema(min_length = 1, max_length = 2048, pattern = "^[!-~]+$")]
    pub redirect_uri: Option<String>,
    /// `false` refuses an unknown identity with 404 `user_not_found` instead of creating a user or linking the
    /// identity to one by e-mail address. The default is `true`.
    pub create: Option<bool>,
    /// `cookie` asks for the refresh token in the cookie of a page of `web.origins`, instead of in the response's body.
    pub session: Option<SessionKind>,
    /// The device, which the list of sessions shows to the user.
    pub device: Option<DeviceRequest>,
    /// The user's name, as the provider has given it to the app. Apple gives it once, and only to
    /// the app. It becomes the name of a new user for whom the provider gives none, and no provider
    /// overwrites it. Control characters are removed.
    #[schema(max_length = 200)]
    pub name: Option<String>,
}

/// The place of a page's refresh token.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum SessionKind {
    Cookie,
}

/// The device that signs in.
#[derive(Debug, ToSchema)]
pub struct DeviceRequest {
    /// The owner's name for the device.
    #[schema(max_length = 100)]
    pub name: Option<String>,
    /// The platform that the device runs.
    #[schema(max_length = 100)]
    pub platform: Option<String>,
}

impl<'r> VerifiedIdentity<'r> {
    async fn of(request: &'r Request<'_>, data: Data<'_>) -> Result<Self, Problem> {
        let provider = provider_in_path(request)?;
        let page = Page::of(request)?;
        let (page, posted) = {
            let body = json_body::read(request, data).await?;
            (
                page.asking(&body)?,
                Posted::parse(&body, &provider.settings)?,
            )
        };
        Ok(Self {
            page,
            ..posted.verify(request, provider, None).await?
        })
    }

    /// Stores the authorization code, once the identity is a user's.
    pub async fn keep_code(&self, db: &Db) -> Result<(), Problem> {
        if let Some(code) = &self.code {
            self.tokens
                .keep(db, self.provider, &self.claims, code)
                .await?;
        }
        Ok(())
    }
}

errors!(VerifiedIdentity<'_>: {
    let provider =
        [ErrorCode::ProviderDisabled, ErrorCode::ProviderNotFound, ErrorCode::ProviderUnavailable];
    JsonBody::kinds().chain(REASONS.map(ErrorCode::Refused)).chain(provider)
});

data_guard!(VerifiedIdentity<'r>, |request, data| Self::of(
    request, data
)
.await);

/// The members of a [`SignInRequest`]. The rest of the body is not kept while a provider is asked.
pub(super) struct Posted {
    id_token: IdToken,
    nonce: Option<String>,
    code: Option<PostedCode>,
    create: bool,
    device_name: Option<String>,
    device_platform: Option<String>,
    name: Option<String>,
}

impl Posted {
    pub(super) fn parse(body: &Object, provider: &config::Provider) -> Result<Self, Problem> {
        let id_token = json_body::required(body, "id_token")?;
        let create = json_body::flag(body, "create")?.unwrap_or(true);
        let device = match body.get("device") {
            None => Object::default(),
            Some(Value::Object(device)) => device.clone().into(),
            Some(_) => return Err(Problem::malformed("`device` must be an object")),
        };
        Ok(Self {
            id_token: IdToken::parse(id_token, provider.token_format)?,
            nonce: nonce(body)?.map(str::to_owned),
            code: posted_code(body)?,
            create,
            device_name: device_text(&device, "name")?,
            device_platform: device_text(&device, "platform")?,
            name: name(body)?.and_then(display_name),
        })
    }

    /// Verifies the token with its provider. It must not be older than `max_age` seconds if that is
    /// given.
    pub(super) async fn verify<'r>(
        self,
        request: &'r Request<'_>,
        provider: &'r Provider,
        max_age: Option<u32>,
    ) -> Result<VerifiedIdentity<'r>, Problem> {
        let Self {
            id_token,
            nonce,
            code,
            create,
            device_name,
            device_platform,
            name,
        } = self;
        let tokens = state(request)?;
        let now = clock::now();
        let fresh = max_age.map(|max_age| provider.with_max_age(max_age));
        let asked = fresh.as_ref().unwrap_or(provider);
        let claims = vouch(request, asked, &id_token, nonce.as_deref(), now).await?;
        let provider = &provider.settings;
        Ok(VerifiedIdentity {
            provider,
            claims,
            create,
            page: None,
            code,
            tokens,
            device_name,
            device_platform,
            name,
            now,
        })
    }
}

pub(super) async fn vouch(
    request: &Request<'_>,
    provider: &Provider,
    id_token: &IdToken,
    nonce: Option<&str>,
    now: i64,
) -> Result<VerifiedClaims, Problem> {
    let settings = &provider.settings;
    let refusals: &Refusals = state(request)?;
    if !settings.enabled {
        return Err(Problem::new(
            ErrorCode::ProviderDisabled,
            "this provider is disabled",
        ));
    }
    let from = Instant::now();
    let verdict = provider.verify(id_token, nonce, now).await;
    request.local_cache(|| {
        Some(ProviderCall {
            provider: settings.name.clone(),
            from,
            took: from.elapsed(),
        })
    });
    verdict.map_err(|error| {
        let vouched = matches!(&error, provider::Error::Refused(refusal) if refusal.vouched);
        let problem = Problem::from(error).about(&settings.name);
        let claimed = |name| {
            id_token
                .unverified()?
                .claimed(name)
                .map(|text| printable(text, MAX_CLAIMED_TEXT))
        };
        let refused = RefusedRequest {
            reason: problem.kind.entry().error,
            provider: settings.name.clone(),
            claimed_email: claimed("email").map(|email: String| email.to_ascii_lowercase()),
            claimed_issuer: claimed("iss"),
            claimed_audience: claimed("aud"),
            origin: ClientOrigin::of(request).0,
            session: None,
        };
        refusals.record(refused, vouched);
        problem
    })
}

/// The verification of a request's token by a provider.
#[derive(Debug)]
pub struct ProviderCall {
    pub provider: String,
    pub from: Instant,
    pub took: Duration,
}

impl ProviderCall {
    pub fn of<'r>(request: &'r Request<'_>) -> Option<&'r Self> {
        request.local_cache(|| None::<Self>).as_ref()
    }
}

/// Returns a string of a body that a rule allows, or the problem which says what is malformed.
fn text<'b>(
    body: &'b Object,
    name: &str,
    allowed: impl Fn(&str) -> bool,
    malformed: &'static str,
) -> Result<Option<&'b str>, Problem> {
    match body.get(name) {
        None => Ok(None),
        Some(Value::String(text)) if allowed(text) => Ok(Some(text)),
        Some(_) => Err(Problem::malformed(malformed)),
    }
}

fn device_text(device: &Object, name: &str) -> Result<Option<String>, Problem> {
    let short = |text: &str| text.chars().count() <= MAX_DEVICE_TEXT;
    let malformed = "`device.name` and `device.platform` must be strings of at most 100 characters";
    let text = text(device, name, short, malformed)?.map(|text| printable(text, MAX_DEVICE_TEXT));
    Ok(text.filter(|text| !is_blank(text)))
}

pub(crate) fn name(body: &Object) -> Result<Option<&str>, Problem> {
    let short = |name: &str| name.chars().count() <= MAX_NAME_CHARS;
    text(
        body,
        "name",
        short,
        "`name` must be a string of at most 200 characters",
    )
}

pub(super) fn posted_code(body: &Object) -> Result<Option<PostedCode>, Problem> {
    let visible = |text: &str| {
        (1..=MAX_CODE).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let malformed = "`authorization_code` must be 1 to 2048 visible ASCII characters";
    let code = text(body, "authorization_code", visible, malformed)?;
    let malformed = "`redirect_uri` must be 1 to 2048 visible ASCII characters";
    let redirect_uri = text(body, "redirect_uri", visible, malformed)?.map(str::to_owned);
    Ok(code.map(|code| PostedCode {
        code: Secret::new(code.to_owned()),
        redirect_uri,
    }))
}

pub(super) fn nonce(body: &Object) -> Result<Option<&str>, Problem> {
    let fits = |nonce: &str| (1..=MAX_NONCE).contains(&nonce.len());
    text(
        body,
        "nonce",
        fits,
        "`nonce` must be a string of 1 to 512 bytes",
    )
}
