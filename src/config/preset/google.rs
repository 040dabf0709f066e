//! Google (developers.google.com/identity, "OpenID Connect" and "Authenticate with a backend
//! server"). Its tokeninfo endpoint writes every claim as a string; `azp` is the Android or iOS
//! client where `aud` is the backend's; `hd` is the organisation.

use super::{Defaults, Origin};

/// The endpoint that is asked when nothing is set.
pub(in crate::config) const TOKENINFO: &str = "https://oauth2.googleapis.com/tokeninfo";

pub(super) const GOOGLE: Defaults = Defaults {
    tokeninfo_url: Some(TOKENINFO),
    jwks_url: Some("https://www.googleapis.com/oauth2/v3/certs"),
    authorization_url: Some("https://accounts.google.com/o/oauth2/v2/auth"),
    token_url: Some("https://oauth2.googleapis.com/token"),
    // It puts either spelling into its tokens.
    issuers: Origin::Listed(&["https://accounts.google.com", "accounts.google.com"]),
    ..Defaults::PLAIN
};
