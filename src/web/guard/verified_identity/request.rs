//! What the guard reads, for the API's description: it parses by hand, to tell what is wrong.
//!
//! The tests send what these describe, and what they rule out, and hold the two together.

use utoipa::ToSchema;

use crate::web::guard::reauthenticated::ReauthenticationRequest;

/// An identity provider's token, and what else a sign-in says.
#[derive(Debug, ToSchema)]
pub struct SignInRequest {
    /// As the provider's SDK returned it. Not an access token, and not an authorization code.
    #[schema(min_length = 1, max_length = 8192, pattern = "^[!-~]+$")]
    pub id_token: String,
    /// The raw nonce, if one was used; at most 512 bytes. The token holds it as it is, or its SHA-256 in lower-case hex
    /// where the provider's `nonce_form` is `sha256`.
    #[schema(min_length = 1, max_length = 512)]
    pub nonce: Option<String>,
    /// `false` refuses an identity that nobody has signed in with before (404 `user_not_found`) instead of creating
    /// a user, or linking one by e-mail address. `true` when it is left out.
    pub create: Option<bool>,
    /// Shown to the user where sessions are listed.
    pub device: Option<DeviceRequest>,
}

/// What is signing in.
#[derive(Debug, ToSchema)]
pub struct DeviceRequest {
    /// What its owner calls it.
    #[schema(max_length = 100)]
    pub name: Option<String>,
    /// What it runs.
    #[schema(max_length = 100)]
    pub platform: Option<String>,
}

/// An identity provider's token.
#[derive(Debug, ToSchema)]
pub struct LinkRequest {
    /// As the provider's SDK returned it.
    #[schema(min_length = 1, max_length = 8192, pattern = "^[!-~]+$")]
    pub id_token: String,
    /// The raw nonce that was given to the SDK, if one was; at most 512 bytes.
    #[schema(min_length = 1, max_length = 512)]
    pub nonce: Option<String>,
    /// Needed when the session was opened more than ten minutes ago (`session.reauthentication_window`).
    pub reauthentication: Option<ReauthenticationRequest>,
}
