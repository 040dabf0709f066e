//! The API's description of what the guard reads. The guard parses by hand, to report what is wrong.
//!
//! The tests send what these structs allow and forbid, so that the two stay the same.

use utoipa::ToSchema;

use crate::web::guard::reauthenticated::ReauthenticationRequest;

/// A sign-in with an identity provider's token.
#[derive(Debug, ToSchema)]
pub struct SignInRequest {
    /// The token as the provider's SDK returned it, not an access token or an authorization code.
    #[schema(min_length = 1, max_length = 8192, pattern = "^[!-~]+$")]
    pub id_token: String,
    /// The raw nonce, if one was used; at most 512 bytes. The token contains it unchanged, or its SHA-256 in
    /// lower-case hex if the provider's `nonce_form` is `sha256`.
    #[schema(min_length = 1, max_length = 512)]
    pub nonce: Option<String>,
    /// The authorization code that the provider's SDK returned with the token. With it, the provider's tokens can be
    /// revoked when the user is deleted or the identity unlinked, which Apple demands.
    #[schema(min_length = 1, max_length = 2048, pattern = "^[!-~]+$")]
    pub authorization_code: Option<String>,
    /// The redirect URI of the authorization request, if it had one: on the web, not in native apps.
    #[schema(min_length = 1, max_length = 2048, pattern = "^[!-~]+$")]
    pub redirect_uri: Option<String>,
    /// `false` refuses an unknown identity with 404 `user_not_found` instead of creating a user or linking the
    /// identity to one by e-mail address. The default is `true`.
    pub create: Option<bool>,
    /// `cookie` asks for the refresh token in the cookie of a page of `web.origins`, instead of in the response's body.
    pub session: Option<SessionKind>,
    /// The device, which the list of sessions shows to the user.
    pub device: Option<DeviceRequest>,
    /// The name that the app was told, which Apple tells it once. It becomes the name of a new user for whom the provider
    /// gives none, and no provider overwrites it. Control characters are removed.
    #[schema(max_length = 200)]
    pub name: Option<String>,
}

/// Where the refresh token of a page is.
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

/// An identity to link.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkRequest {
    /// The token as the provider's SDK returned it.
    #[schema(min_length = 1, max_length = 8192, pattern = "^[!-~]+$")]
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
    /// Required if the session was opened more than ten minutes ago (`session.reauthentication_window`).
    pub reauthentication: Option<ReauthenticationRequest>,
}
