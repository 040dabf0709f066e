//! Google (developers.google.com/identity, "OpenID Connect" and "Authenticate with a backend server"). Its
//! tokeninfo endpoint returns every claim as a string. `aud` is the client id of the backend and `azp` that
//! of the Android or iOS app; `hd` is the organisation.

use super::{Defaults, Origin};

/// The default token-information endpoint.
pub(in crate::config) const TOKENINFO: &str = "https://oauth2.googleapis.com/tokeninfo";

pub(super) const GOOGLE: Defaults = Defaults {
    tokeninfo_url: Some(TOKENINFO),
    jwks_url: Some("https://www.googleapis.com/oauth2/v3/certs"),
    ssf_url: Some("https://accounts.google.com/.well-known/risc-configuration"),
    authorization_url: Some("https://accounts.google.com/o/oauth2/v2/auth"),
    token_url: Some("https://oauth2.googleapis.com/token"),
    // Google uses both spellings in its tokens.
    issuers: Origin::Listed(&["https://accounts.google.com", "accounts.google.com"]),
    ..Defaults::PLAIN
};
