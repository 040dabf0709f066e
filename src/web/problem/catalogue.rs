//! The catalogue of all errors: their names, statuses, causes and remedies.

use serde::Serialize;
use strum::{EnumIter, IntoEnumIterator, VariantArray};
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use crate::domain::{EndReason, Reason};

/// The kind of an error, by its name on the wire, in the order of the API's description.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, EnumIter)]
pub enum ErrorCode {
    #[strum(disabled)]
    Refused(Reason),
    /// A refused `id_token` beside an access token. It answers 422, since 401 is about the access
    /// token alone.
    #[strum(disabled)]
    RefusedBesideBearer(Reason),
    InvalidRequest,
    InvalidAccessToken,
    InvalidRefreshToken,
    UseDpopNonce,
    InvalidDpopProof,
    InvalidApiKey,
    InsufficientRole,
    UserChanged,
    /// A user whom a backend names by id. `merged_into` may name the one who remains.
    #[strum(disabled)]
    NoSuchUser,
    EmailTaken,
    IdentityTaken,
    IdentityAlreadyLinked,
    LastIdentity,
    ReauthenticationRequired,
    CookieRefused,
    ProviderDisabled,
    ProviderNotFound,
    NotFound,
    MethodNotAllowed,
    PayloadTooLarge,
    UnsupportedMediaType,
    RateLimited,
    ProviderUnavailable,
    ServiceUnavailable,
    #[default]
    InternalError,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Entry {
    pub status: u16,
    /// The name on the wire.
    pub error: &'static str,
    pub title: &'static str,
    pub cause: &'static str,
    pub remedy: &'static str,
}

impl Entry {
    /// Returns the values that the member `reason` of the error may have.
    pub fn reasons(&self) -> &'static [EndReason] {
        use EndReason::{
            RefreshTokenReused, SessionEnded, SessionExpired, UserDeleted, UserDisabled, UserMerged,
        };
        if self.error == ErrorCode::InvalidRefreshToken.entry().error {
            &[
                UserDisabled,
                SessionExpired,
                SessionEnded,
                RefreshTokenReused,
            ]
        } else if self.error == ErrorCode::InvalidAccessToken.entry().error {
            &[UserDisabled, UserDeleted, UserMerged, SessionEnded]
        } else {
            &[]
        }
    }
}

impl ErrorCode {
    /// Returns the kind for a request whose credential is an access token: a refused `id_token`
    /// answers 422 there.
    pub fn beside_a_bearer(self) -> Self {
        match self {
            Self::Refused(reason) if self.entry().status == 401 => {
                Self::RefusedBesideBearer(reason)
            }
            kind => kind,
        }
    }

    /// Returns every kind of problem, once for each name.
    pub fn all() -> impl Iterator<Item = Self> {
        Reason::VARIANTS
            .iter()
            .map(|reason| Self::Refused(*reason))
            .chain(Self::iter())
    }

    #[expect(clippy::too_many_lines, reason = "it is a table")]
    pub const fn entry(self) -> Entry {
        let (status, error, title, cause, remedy) = match self {
            Self::InvalidRequest => (
                400,
                "invalid_request",
                "The request is malformed",
                "The body is not one JSON object, a member is missing, repeated or of the wrong type, or a value is out of bounds.",
                "Compare the request with the API description; `detail` names the invalid part.",
            ),
            Self::Refused(Reason::InvalidToken) => (
                401,
                "invalid_token",
                "The id_token is not valid",
                "The identity provider does not accept the token, it is not signed, or a required claim is missing. An access token or an authorization code sent in place of the id_token causes the same error, and so does a token from the future: then the provider's or this service's clock is wrong.",
                "Send the id_token exactly as the provider's SDK returned it, to the path of that provider. If `detail` mentions a clock, the app is not at fault: operators compare clocks with `vestibule check`.",
            ),
            Self::Refused(Reason::TokenExpired) => (
                401,
                "token_expired",
                "The id_token has expired",
                "The token's `exp` has passed or its `iat` is too old, the provider has ended the account's sessions or the user was deleted since it was issued, or a clock is wrong.",
                "Get a new token from the provider's SDK and send it at once.",
            ),
            Self::Refused(Reason::IssuerMismatch) => (
                401,
                "issuer_mismatch",
                "The id_token comes from another issuer",
                "The token's `iss` is not configured for the provider in the path.",
                "Send the token to the path of the provider that issued it. Operators list all accepted values of `iss` under `issuers`.",
            ),
            Self::Refused(Reason::AudienceMismatch) => (
                401,
                "audience_mismatch",
                "The id_token was issued to another application",
                "The token's `aud` or `azp` is not a client id that is configured for this provider. Most often an app's Android or iOS client id is missing from the list.",
                "In the app, request a token for the backend's client id from the SDK. Operators list further client ids under `additional_client_ids`.",
            ),
            Self::Refused(Reason::NonceMismatch) => (
                401,
                "nonce_mismatch",
                "The nonce does not match",
                "The nonces of the request and the token differ, only one of them has a nonce, or neither has one although the provider's settings require it.",
                "Send the raw nonce in the request. Pass the SDK the same value or, if the provider's `nonce_form` is `sha256` (Apple), its SHA-256 in lower-case hex. If an SDK adds a nonce of its own, operators set `nonce = \"if_sent\"`; with `always`, the request and the token both need one.",
            ),
            Self::RefusedBesideBearer(reason) => {
                return Entry {
                    status: 422,
                    ..Self::Refused(reason).entry()
                };
            }
            Self::InvalidAccessToken => (
                401,
                "invalid_access_token",
                "The access token is missing or not valid",
                "The `Authorization` header does not carry a valid access token: it is missing or expired, or its session has ended. If the token is genuine, `reason` says why: `user_deleted`, `user_merged` (into the user whom `merged_into` names), `user_disabled` or `session_ended`.",
                "Refresh, and send the new access token as `Authorization: Bearer …`. If the refresh is refused, sign in again. After `DELETE /api/v1/me`, `user_deleted` means that the user is deleted.",
            ),
            Self::InvalidRefreshToken => (
                401,
                "invalid_refresh_token",
                "The refresh token is not valid",
                "The token is unknown, expired or already used, or its session has ended. Reusing a token ends its session, because the token may be stolen. If the token proves that the session was yours, `reason` says which: `user_disabled`, `session_expired`, `session_ended` or `refresh_token_reused`.",
                "Sign in again. Store only the refresh token of the latest response, and never send two refreshes at the same time.",
            ),
            Self::UseDpopNonce => (
                401,
                "use_dpop_nonce",
                "The DPoP proof needs another nonce",
                "The `nonce` in the proof of the `DPoP` header is missing, too old or not from this service (RFC 9449 §8). A nonce is good for two to four minutes.",
                "Repeat the request once, with a new proof that contains the value of the `DPoP-Nonce` header of this answer. Keep the `DPoP-Nonce` of every answer for the next proof.",
            ),
            Self::InvalidDpopProof => (
                401,
                "invalid_dpop_proof",
                "The request does not prove the key of the session",
                "The session is bound to a key of the device (RFC 9449), or has to be, and the `DPoP` header is missing, not valid, made for another request, or signed with another key. Nothing was changed.",
                "Send a proof by the key of the sign-in, made for this method and the public URL; `detail` names the rule that it breaks. If the key is lost, sign in again.",
            ),
            Self::InvalidApiKey => (
                401,
                "invalid_api_key",
                "The API key is missing or not valid",
                "The `Authorization` header does not carry a valid API key: it is missing, unknown or expired, or it was revoked. An access token is no API key.",
                "Send the key as `Authorization: Bearer vst_…`, in a header and never in the URL. Operators list the keys with `vestibule api-key list`, and add one with `vestibule api-key add`.",
            ),
            Self::InsufficientRole => (
                403,
                "insufficient_role",
                "The API key may not do this",
                "The role of the API key does not include this operation: `reader` may read, `support` may also end sessions, `admin` may do everything.",
                "Use a key with the role that `detail` names. A role cannot be changed: operators add another key.",
            ),
            Self::UserChanged => (
                409,
                "user_changed",
                "The user has changed since the preview",
                "`seen` is the fingerprint of an earlier state: one of the users or their identities changed since the preview, or while the request ran. Nothing was done.",
                "Send the request with `\"dry_run\": true` again, look at the answer, and repeat the change with the new `fingerprint`.",
            ),
            Self::NoSuchUser => return Self::Refused(Reason::UserNotFound).entry(),
            Self::EmailTaken => (
                409,
                "email_taken",
                "The e-mail address is another user's",
                "A user to create has the e-mail address of another user. Nothing was written.",
                "Find the user with `GET /api/v1/admin/users?email=…`. If nobody has proved the address, create the user without it: it goes to whoever proves it.",
            ),
            Self::IdentityTaken => (
                409,
                "identity_taken",
                "The identity is another user's",
                "A user to create has an identity of another user. Nothing was written.",
                "Find the user with `GET /api/v1/admin/users?provider=…&subject=…`. An identity can be moved to another user.",
            ),
            Self::Refused(Reason::DomainNotAllowed) => (
                403,
                "domain_not_allowed",
                "The account belongs to another organisation",
                "Sign-in is restricted to certain organisations, and the token's `hd` is not one of them.",
                "Sign in with an account of an allowed organisation. Operators list the domains under `allowed_domains`.",
            ),
            Self::Refused(Reason::UserDisabled) => (
                403,
                "user_disabled",
                "The user is disabled",
                "Support staff, an operator, an import or the product's backend has disabled this user.",
                "Contact support.",
            ),
            Self::ReauthenticationRequired => (
                403,
                "reauthentication_required",
                "A recent sign-in is required",
                "Linking an identity, unlinking one, merging another account and deleting the account require a recent sign-in, because every service that verifies an access token also holds it. The session was opened too long ago, and the request's `reauthentication` is missing or belongs to another user.",
                "Let the user sign in at the provider again. Then repeat the request with `\"reauthentication\": {\"provider\": …, \"id_token\": …}`, or with the access token of a new session. Operators set the time limit under `session.reauthentication_window`.",
            ),
            Self::CookieRefused => (
                403,
                "cookie_refused",
                "The session's cookie is refused",
                "The request carries the cookie of a page's session, or asks for one, but its `Origin` is not listed in `web.origins` or is that of an app's web view, its `Content-Type` is not `application/json`, its access token is of another session, or it carries the cookie twice. The database was not asked.",
                "Send the request with `fetch` from a page of a listed origin, with `Content-Type: application/json`. If the access token is of another session, another user has signed in in this browser: forget the token and refresh without it. A web view stores the refresh token itself, without `session`. Operators list the pages under `web.origins`.",
            ),
            Self::ProviderDisabled => (
                403,
                "provider_disabled",
                "The provider is disabled",
                "Sign-in with this provider is disabled at the moment.",
                "Offer another provider. Operators enable the provider with `enabled`.",
            ),
            Self::ProviderNotFound => (
                404,
                "provider_not_found",
                "The provider does not exist",
                "The last segment of the path is not the name of a configured provider. Names are lower case.",
                "Correct the path. The provider configured by the IDP_* variables is called `idp` unless IDP_NAME sets another name.",
            ),
            Self::Refused(Reason::IdentitySuspended) => (
                403,
                "identity_suspended",
                "The identity is suspended",
                "The identity provider has reported that this account was hijacked, disabled or deleted, or another account of the user was reported hijacked after it had linked this one: so nobody can sign in with it here.",
                "Show a message that this account is suspended. The user recovers it at its provider, which then reports it enabled, or signs in with another linked identity, or asks support.",
            ),
            Self::Refused(Reason::UserNotFound) => (
                404,
                "user_not_found",
                "The user does not exist",
                "A sign-in has `\"create\": false`, and no user has signed in with this identity before. In a merge, no user has the identity. In the admin API, no user has the id.",
                "Let the user sign up, then repeat the sign-in without `create`. Instead of a merge, link the identity. In the admin API, check the id: the user may be deleted, or merged into the one whom `merged_into` names.",
            ),
            Self::NotFound => (
                404,
                "not_found",
                "Not found",
                "The path is not part of the API, or the requested resource does not exist.",
                "Compare the path and the id with the API description and the response they come from.",
            ),
            Self::MethodNotAllowed => (
                405,
                "method_not_allowed",
                "The method is not allowed here",
                "The path exists, but does not support this method.",
                "Use one of the methods in the `Allow` header.",
            ),
            Self::IdentityAlreadyLinked => (
                409,
                "identity_already_linked",
                "The identity is already linked",
                "The identity is linked to another user and stays linked to that user. In a merge, it is the user's own.",
                "If both users are one person, merge them with `POST /api/v1/me/merge`. Otherwise sign in with the identity as that user and unlink it there first. In a merge, send a token of the other account.",
            ),
            Self::LastIdentity => (
                409,
                "last_identity",
                "This is the last way to sign in",
                "This is the user's only identity, or the only one that is not suspended. Without it, the user could not sign in any more.",
                "Link another identity first, or delete the account. A backend can also move the identity, or merge the user into another one.",
            ),
            Self::Refused(Reason::IdentityConflict) => (
                409,
                "identity_conflict",
                "Another account of this provider has the e-mail address",
                "A user has already signed in with the same e-mail address and another account of this provider. The address may have a new owner.",
                "Contact support, who can find out which user the address belongs to.",
            ),
            Self::Refused(Reason::LinkRequired) => (
                409,
                "link_required",
                "The e-mail address is already in use",
                "A user with this e-mail address exists, and this provider's verification of the address is not sufficient for linking, or the user's identity with the address is suspended.",
                "Sign in with an identity that is already linked, then link this one to the account.",
            ),
            Self::Refused(Reason::TooManyIdentities) => (
                409,
                "too_many_identities",
                "The user has too many identities",
                "A user may have 20 identities, and this one has as many, or two users who are merged have more together.",
                "Unlink an identity that the user no longer needs, then try again.",
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
                "The provider has not verified that the address belongs to the user.",
                "Let the user verify the address at the provider, then sign in again.",
            ),
            Self::Refused(Reason::EmailMissing) => (
                422,
                "email_missing",
                "The token has no e-mail address",
                "This provider's settings require an e-mail address, and the token has none.",
                "Request the `email` scope from the SDK, and ask the user for consent.",
            ),
            Self::RateLimited => (
                429,
                "rate_limited",
                "Too many requests",
                "This IP address, session or API key has sent more requests than are allowed per minute. Nothing was read or changed.",
                "Wait for the seconds in `Retry-After`, then try again; refused requests do not lengthen the wait. The `RateLimit` and `RateLimit-Policy` headers of every response of a limited route show the remaining quota. Operators set `rate_limit` and, behind a proxy, `trusted_proxies`: without it, all clients of the proxy share one IP address.",
            ),
            Self::ProviderUnavailable => (
                503,
                "provider_unavailable",
                "The identity provider is unavailable",
                "The provider did not answer in time, or its answer was unusable. The token may be valid.",
                "Wait for the seconds in `Retry-After`, then try again. Operators find the reason in the log.",
            ),
            Self::ServiceUnavailable => (
                503,
                "service_unavailable",
                "The service is unavailable",
                "The service is starting, overloaded or under maintenance. If its connection to the database broke, the change may have been made.",
                "Wait for the seconds in `Retry-After`, then try again.",
            ),
            Self::InternalError => (
                500,
                "internal_error",
                "Internal error",
                "The service failed to handle the request. The request itself may be valid.",
                "Report the `request_id` to the operators.",
            ),
        };
        Entry {
            status,
            error,
            title,
            cause,
            remedy,
        }
    }
}

/// Returns the names of these errors as a schema.
pub fn names(entries: impl Iterator<Item = Entry>) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(entries.map(|entry| entry.error)))
        .build()
}

/// Returns the schema of `error`: any name in the catalogue.
pub fn any_name() -> Object {
    let mut schema = names(ErrorCode::all().map(ErrorCode::entry));
    schema.description =
        Some("The machine-readable error code. For an unknown code, decide by `status`.".into());
    schema
}
