//! The catalogue of all errors: their names, statuses, causes and remedies.

use serde::Serialize;

use crate::domain::refusal::Reason;

/// The kind of an error, by its name on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "`ErrorCode::entry` holds each one's title, cause and remedy")]
pub enum ErrorCode {
    InvalidRequest,
    Refused(Reason),
    /// A refused `id_token` beside an access token. It answers 422, since 401 is about the access token alone.
    RefusedBesideBearer(Reason),
    InvalidAccessToken,
    InvalidRefreshToken,
    ReauthenticationRequired,
    ProviderDisabled,
    ProviderNotFound,
    NotFound,
    MethodNotAllowed,
    IdentityAlreadyLinked,
    LastIdentity,
    PayloadTooLarge,
    UnsupportedMediaType,
    RateLimited,
    ProviderUnavailable,
    ServiceUnavailable,
    InternalError,
}

/// The catalogue's entry for an error.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Entry {
    /// The HTTP status.
    pub status: u16,
    /// The name on the wire.
    pub error: &'static str,
    /// A short summary.
    pub title: &'static str,
    /// The cause.
    pub cause: &'static str,
    /// The remedy.
    pub remedy: &'static str,
}

impl ErrorCode {
    /// Returns the kind for a request whose credential is an access token: a refused `id_token` answers 422 there.
    #[must_use]
    pub fn beside_a_bearer(self) -> Self {
        match self {
            Self::Refused(reason) if self.entry().status == 401 => Self::RefusedBesideBearer(reason),
            kind => kind,
        }
    }

    /// Returns every kind of problem, once for each name.
    pub fn all() -> impl Iterator<Item = Self> {
        let refused = Reason::ALL.into_iter().map(Self::Refused);
        refused.chain([
            Self::InvalidRequest,
            Self::InvalidAccessToken,
            Self::InvalidRefreshToken,
            Self::IdentityAlreadyLinked,
            Self::LastIdentity,
            Self::ReauthenticationRequired,
            Self::ProviderDisabled,
            Self::ProviderNotFound,
            Self::NotFound,
            Self::MethodNotAllowed,
            Self::PayloadTooLarge,
            Self::UnsupportedMediaType,
            Self::RateLimited,
            Self::ProviderUnavailable,
            Self::ServiceUnavailable,
            Self::InternalError,
        ])
    }

    /// Returns the catalogue's entry.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "it is a table")]
    pub const fn entry(self) -> Entry {
        let (status, error, title, cause, remedy) = match self {
            Self::InvalidRequest => (
                400,
                "invalid_request",
                "The request is malformed",
                "The body is not one JSON object, a member is missing, repeated or of the wrong type, or a value is out of bounds.",
                "Compare the request with the API description; `detail` names the part that is wrong.",
            ),
            Self::Refused(Reason::InvalidToken) => (
                401,
                "invalid_token",
                "The id_token is not valid",
                "The identity provider does not accept the token, it is not signed, or a required claim is missing. An access token or an authorization code sent in place of the id_token looks like this, too.",
                "Send the id_token exactly as the provider's SDK returned it, to the path of that provider.",
            ),
            Self::Refused(Reason::TokenExpired) => (
                401,
                "token_expired",
                "The id_token has expired",
                "The token was fetched too long ago, or a clock is wrong.",
                "Fetch a fresh token from the provider's SDK and send it at once.",
            ),
            Self::Refused(Reason::IssuerMismatch) => (
                401,
                "issuer_mismatch",
                "The id_token comes from another issuer",
                "The token's `iss` is not one that is configured for the provider in the path.",
                "Send the token to the path of the provider that issued it; operators list its spellings under `issuers`.",
            ),
            Self::Refused(Reason::AudienceMismatch) => (
                401,
                "audience_mismatch",
                "The id_token was issued to another application",
                "The token's `aud` or `azp` is not a client id that is configured for this provider. Most often an app's Android or iOS client id is missing from the list.",
                "In the app, ask the SDK for a token for the backend's client id; operators list further client ids under `additional_client_ids`.",
            ),
            Self::Refused(Reason::NonceMismatch) => (
                401,
                "nonce_mismatch",
                "The nonce does not match",
                "Only one of the request and the token carries a nonce, or neither where one is demanded, or the two differ.",
                "Send the raw nonce, and give the SDK that one or, where `nonce_form` is `sha256` (Apple), its SHA-256 in lower-case hex. Where an SDK adds one of its own, operators set `nonce = \"if_sent\"`; with `always`, both sides need one.",
            ),
            Self::RefusedBesideBearer(reason) => {
                return Entry { status: 422, ..Self::Refused(reason).entry() };
            }
            Self::InvalidAccessToken => (
                401,
                "invalid_access_token",
                "The access token is missing or not valid",
                "The `Authorization` header does not carry a valid access token: it is missing, expired, or its session has ended.",
                "Refresh the access token and send it as `Authorization: Bearer …`; sign in again when that is refused.",
            ),
            Self::InvalidRefreshToken => (
                401,
                "invalid_refresh_token",
                "The refresh token is not valid",
                "The token is unknown, expired or used up, or its session has ended. A token that was used before ends its session, because somebody else may have it.",
                "Sign in again. Keep only the refresh token of the latest answer, and let one request at a time refresh.",
            ),
            Self::Refused(Reason::DomainNotAllowed) => (
                403,
                "domain_not_allowed",
                "The account belongs to another organisation",
                "Only accounts of certain organisations may sign in, and the token's `hd` is none of them.",
                "Sign in with the account of the organisation; operators list domains under `allowed_domains`.",
            ),
            Self::Refused(Reason::UserDisabled) => (
                403,
                "user_disabled",
                "The user is disabled",
                "Support has disabled this user.",
                "Ask support.",
            ),
            Self::ReauthenticationRequired => (
                403,
                "reauthentication_required",
                "The user has to sign in once more",
                "Linking and unlinking an identity, and deleting the account, need somebody who has just signed in, since an access token is known to every service that verifies it. The session was opened too long ago, and the request's `reauthentication` is missing or not of an identity of this user.",
                "Let the person sign in at their provider once more, and send the same request with `\"reauthentication\": {\"provider\": …, \"id_token\": …}`, or with the access token of a new session. Operators set how long a session counts as fresh under `session.reauthentication_window`.",
            ),
            Self::ProviderDisabled => (
                403,
                "provider_disabled",
                "The provider is switched off",
                "Signing in with this provider is switched off for the time being.",
                "Offer another way to sign in; operators set `enabled`.",
            ),
            Self::ProviderNotFound => (
                404,
                "provider_not_found",
                "There is no such provider",
                "The last segment of the path is not the name of a configured provider. Names are lower case.",
                "Correct the path. The provider that IDP_* variables configure is called `idp` unless IDP_NAME says otherwise.",
            ),
            Self::Refused(Reason::UserNotFound) => (
                404,
                "user_not_found",
                "There is no such user",
                "The request says `\"create\": false`, and nobody has signed in with this identity before.",
                "Offer to sign up, then send the request without `create`.",
            ),
            Self::NotFound => (
                404,
                "not_found",
                "There is nothing here",
                "The path is not one of the API's.",
                "Compare the path with the API description.",
            ),
            Self::MethodNotAllowed => (
                405,
                "method_not_allowed",
                "The method is not allowed here",
                "The path exists and answers to other methods; the `Allow` header lists them.",
                "Use one of the methods in `Allow`.",
            ),
            Self::IdentityAlreadyLinked => (
                409,
                "identity_already_linked",
                "The identity is another user's",
                "Somebody else signs in with this identity. It stays theirs.",
                "Sign in with the identity to see whose it is, and unlink it there first.",
            ),
            Self::LastIdentity => (
                409,
                "last_identity",
                "This is the last way to sign in",
                "The identity is the only one that is linked. Without it, nobody could sign in to the account.",
                "Link another identity first, or delete the account.",
            ),
            Self::Refused(Reason::IdentityConflict) => (
                409,
                "identity_conflict",
                "The address belongs to another account of this provider",
                "Somebody signed in before with another account of the same provider and the same e-mail address. The address may have changed hands.",
                "Ask support, who can tell the two apart.",
            ),
            Self::Refused(Reason::LinkRequired) => (
                409,
                "link_required",
                "The address is somebody's already",
                "A user with this e-mail address exists, and the provider does not vouch that the address is yours.",
                "Sign in the way you did before, then link this identity to your account.",
            ),
            Self::PayloadTooLarge => (
                413,
                "payload_too_large",
                "The request is too large",
                "The body is larger than any valid request.",
                "Send only the documented members.",
            ),
            Self::UnsupportedMediaType => (
                415,
                "unsupported_media_type",
                "The body must be JSON",
                "The `Content-Type` is not `application/json`, or the body is compressed.",
                "Send `Content-Type: application/json` and an uncompressed body.",
            ),
            Self::Refused(Reason::EmailNotVerified) => (
                422,
                "email_not_verified",
                "The e-mail address is not verified",
                "The provider does not say that the address is this person's.",
                "Verify the address at the provider, then sign in again.",
            ),
            Self::Refused(Reason::EmailMissing) => (
                422,
                "email_missing",
                "The provider gave no e-mail address",
                "This provider is configured to need an address, and the token has none.",
                "Ask the SDK for the `email` scope and the person for their consent.",
            ),
            Self::RateLimited => (
                429,
                "rate_limited",
                "Too many requests",
                "More requests came from this network address, or with this session, than one caller may send in a minute. Nothing was read or changed.",
                "Try again after the seconds in `Retry-After`, not earlier; refused requests do not lengthen the wait. `RateLimit` and `RateLimit-Policy` on every answer tell what is left. Operators set `rate_limit`, and `trusted_proxies` where a proxy stands in front: without it all its clients are one address.",
            ),
            Self::ProviderUnavailable => (
                503,
                "provider_unavailable",
                "The identity provider cannot be asked",
                "The provider gave no usable answer in time. Nothing is known against the token.",
                "Try again after the seconds in `Retry-After`; operators find the reason in the log.",
            ),
            Self::ServiceUnavailable => (
                503,
                "service_unavailable",
                "The service is overloaded or being maintained",
                "The database could not serve the request in time. Nothing was changed.",
                "Try again after the seconds in `Retry-After`.",
            ),
            Self::InternalError => (
                500,
                "internal_error",
                "Something went wrong here",
                "A mistake in the service.",
                "Report the `request_id`.",
            ),
        };
        Entry { status, error, title, cause, remedy }
    }
}
