//! Google (developers.google.com/identity, "OpenID Connect" and "Authenticate with a backend
//! server"). Its tokeninfo endpoint returns every claim as a string. `aud` is the client id of the
//! backend, and `azp` is the client id of the Android or iOS app; `hd` is the organisation.

use url::Url;

use super::Preset;
use crate::domain::Issuers;

/// Its token-information endpoint.
pub const TOKENINFO: &str = "https://oauth2.googleapis.com/tokeninfo";
/// Its `iss`, also if Google is configured without its preset.
pub const ISSUER: &str = "https://accounts.google.com";
/// Hosts of its endpoints for the sign-in of staff.
const HOSTS: [&str; 2] = ["accounts.google.com", "oauth2.googleapis.com"];

pub const PRESET: Preset = Preset {
    name: "google",
    settings: r#"
tokeninfo_url = "https://oauth2.googleapis.com/tokeninfo"
jwks_url = "https://www.googleapis.com/oauth2/v3/certs"
ssf_url = "https://accounts.google.com/.well-known/risc-configuration"
authorization_url = "https://accounts.google.com/o/oauth2/v2/auth"
token_url = "https://oauth2.googleapis.com/token"
# Google uses both spellings in its tokens.
issuers = ["https://accounts.google.com", "accounts.google.com"]
"#,
    ..Preset::CUSTOM
};

/// The problem with a [`stray_endpoint`]. It continues the name of a setting or of an endpoint.
pub const STRAY: &str = "is Google's, but the tokens come from elsewhere";

/// Returns the setting of an endpoint for the sign-in of staff that was left at Google, although
/// the tokens of `issuers`, or the other endpoint, are another provider's.
pub fn stray_endpoint(
    issuers: &Issuers,
    authorization_url: Option<&Url>,
    token_url: Option<&Url>,
) -> Option<&'static str> {
    let is_google = |url: &Url| url.host_str().is_some_and(|host| HOSTS.contains(&host));
    let page = authorization_url.map(is_google);
    let token = token_url.map(is_google);
    let issued_by_google = issuers.include(ISSUER);
    match (page, token) {
        (Some(true), token) if token == Some(false) || !issued_by_google => {
            Some("authorization_url")
        }
        (page, Some(true)) if page == Some(false) || !issued_by_google => Some("token_url"),
        _ => None,
    }
}
