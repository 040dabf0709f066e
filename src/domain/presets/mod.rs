//! Presets: the settings of well-known providers.

pub mod apple;
pub mod facebook;

use serde::{Deserialize, Serialize};

use crate::domain::issuer::{MICROSOFT_ACCOUNTS, Tenants};

/// `preset`: the provider whose defaults are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Preset {
    Google,
    /// LINE Login v2.1.
    Line,
    Apple,
    /// Microsoft Entra ID and personal Microsoft accounts.
    Microsoft,
    /// Facebook Limited Login.
    Facebook,
    /// Any endpoint for token introspection (RFC 7662).
    Rfc7662,
    Keycloak,
    /// Any OpenID provider with a discovery document.
    Oidc,
}

/// The defaults of settings that apply to every provider, where they differ from the defaults of
/// the types. Presets and operators override them.
pub const OF_EACH: &str = r#"
name = "idp"
enabled = true
max_token_age = 86400
# At 100 ms for a call, that is several hundred in a second.
max_calls = 64
"#;

/// Returns the settings of a preset in TOML.
pub const fn defaults(preset: Option<Preset>) -> &'static str {
    match preset {
        None => CUSTOM,
        Some(Preset::Google) => GOOGLE,
        Some(Preset::Line) => LINE,
        Some(Preset::Apple) => APPLE,
        Some(Preset::Microsoft) => MICROSOFT,
        Some(Preset::Facebook) => FACEBOOK,
        Some(Preset::Rfc7662) => RFC7662,
        Some(Preset::Keycloak) => KEYCLOAK,
        Some(Preset::Oidc) => OIDC,
    }
}

pub const GOOGLE_TOKENINFO: &str = "https://oauth2.googleapis.com/tokeninfo";

/// Google (developers.google.com/identity, "OpenID Connect" and "Authenticate with a backend
/// server"). Its tokeninfo endpoint returns every claim as a string. `aud` is the client id of the
/// backend, and `azp` is the client id of the Android or iOS app; `hd` is the organisation.
const GOOGLE: &str = r#"
tokeninfo_url = "https://oauth2.googleapis.com/tokeninfo"
jwks_url = "https://www.googleapis.com/oauth2/v3/certs"
ssf_url = "https://accounts.google.com/.well-known/risc-configuration"
authorization_url = "https://accounts.google.com/o/oauth2/v2/auth"
token_url = "https://oauth2.googleapis.com/token"
# Google uses both spellings in its tokens.
issuers = ["https://accounts.google.com", "accounts.google.com"]
"#;

/// LINE Login v2.1 (developers.line.biz, "LINE Login v2.1 API reference", "Verify ID token").
///
/// The endpoint takes the channel id together with the token. There is no `email_verified`, so an
/// e-mail address from LINE never links to an existing user; often there is no `email` either. LINE
/// documents `aud` as a string, but its SDK writes a number. Tokens of native apps and LIFF are
/// signed with ES256, and tokens of web logins with the channel secret (HS256): only the endpoint
/// verifies both.
const LINE: &str = r#"
tokeninfo_url = "https://api.line.me/oauth2/v2.1/verify"
jwks_url = "https://api.line.me/oauth2/v2.1/certs"
authorization_url = "https://access.line.me/oauth2/v2.1/authorize"
token_url = "https://api.line.me/oauth2/v2.1/token"
token_auth = "client_secret_post"
issuers = "https://access.line.me"
# The SDKs make up a nonce if the app gives none.
nonce = "if_sent"
"#;

/// Sign in with Apple (developer.apple.com, "Verifying a user", "Fetch Apple's public key to verify
/// token signatures").
///
/// Apple has no token-information endpoint, so only the signature is checked. `email_verified` and
/// `is_private_email` are strings or Booleans. A private relay e-mail address is treated like any
/// other; it is known only to the apps of one team. Apps hash their nonce with SHA-256 before they
/// hand it to Apple, and only the hash is in the token. Apple has two issuers: it changed to the
/// second one overnight (supabase/auth #2051). `email` may be missing, and `name` is never in the
/// token. Staff cannot sign in with Apple: that would need a response by POST.
///
/// Apple's tokens have to be revoked when a user deletes the account (technical note TN3194). The
/// client secret for that is a JWT that a key of the team signs ("Token validation", "Token
/// revocation").
const APPLE: &str = r#"
verify = "jwks"
jwks_url = "https://appleid.apple.com/auth/keys"
token_url = "https://appleid.apple.com/auth/token"
token_auth = "client_secret_post"
revocation_url = "https://appleid.apple.com/auth/revoke"
issuers = ["https://appleid.apple.com", "https://account.apple.com"]
nonce_form = "sha256"
"#;

/// Microsoft Entra ID and personal Microsoft accounts (learn.microsoft.com, "ID token claims
/// reference", "Optional claims reference", "Secure applications and APIs by validating claims").
///
/// Microsoft has no token-information endpoint, so only the signature is checked. Each tenant has
/// its own issuer (`https://login.microsoftonline.com/{tid}/v2.0`). A tenant's administrator may
/// enter any e-mail address; only the optional claim `xms_edov` shows that its domain was verified.
const MICROSOFT: &str = r#"
verify = "jwks"
jwks_url = "https://login.microsoftonline.com/common/discovery/v2.0/keys"
authorization_url = "https://login.microsoftonline.com/common/oauth2/v2.0/authorize"
token_url = "https://login.microsoftonline.com/common/oauth2/v2.0/token"
"#;

/// Facebook Limited Login (developers.facebook.com, "OIDC Token for Limited Login", "Validating the
/// Limited Login OIDC Token"). Classic Facebook Login has access tokens only and is not supported.
///
/// Facebook has no endpoint for these tokens, so only the signature (RS256) is checked. There is no
/// `email_verified`, and `email` is present only if the user grants it.
const FACEBOOK: &str = r#"
verify = "jwks"
jwks_url = "https://limited.facebook.com/.well-known/oauth/openid/jwks/"
issuers = "https://www.facebook.com"
# The SDK makes up a nonce if the app gives none.
nonce = "if_sent"
"#;

/// Token introspection (RFC 7662): the operator sets the endpoint and the issuers. The response for
/// an inactive token is a 200 with `active: false`. The response must have every claim that is
/// checked, including claims that are optional in the standard.
///
/// A token that is not a JWT does not show its type, and most introspected tokens are access
/// tokens: any service that receives one could sign in with it here. `token_format = "jwt"`
/// prevents that. A JWT is checked by its own claims and must be an `id_token`.
const RFC7662: &str = r#"token_format = "any""#;

/// Keycloak (keycloak.org, "Securing applications: OpenID Connect"): `issuer` is the URL of the
/// realm, such as `https://id.example.com/realms/people`.
///
/// The default is verification by signature. Introspection returns the audiences of the user's
/// roles (`account`) instead of the token's audiences, so its `aud` does not count. Keycloak's
/// access and refresh tokens are recognised by `typ` in the payload.
const KEYCLOAK: &str = r#"verify = "jwks""#;

/// Any OpenID provider with a discovery document (OpenID Connect Discovery 1.0). The document
/// always names the keys and only sometimes an introspection endpoint. RFC 7662 §2.1 covers access
/// and refresh tokens, so not every server introspects an `id_token`.
///
/// Some providers, such as Dex, issue access tokens with the same claims as their `id_token`s. For
/// such a provider, set `nonce = "always"` and `nonce_form = "sha256"`: a service that receives
/// such an access token knows only the hash.
const OIDC: &str = r#"verify = "jwks""#;

/// No preset: a provider that is defined by its settings alone. Its tokens may have any format.
const CUSTOM: &str = r#"token_format = "any""#;

/// Puts the path segment that selects tenants into the URLs above.
pub fn select(tenants: &Tenants, settings: &str) -> String {
    let segment = match tenants {
        Tenants::Organizations => "organizations",
        Tenants::Listed(ids) if *ids == [MICROSOFT_ACCOUNTS] => "consumers",
        Tenants::Listed(ids) if ids.len() == 1 => &ids[0],
        Tenants::Any | Tenants::Listed(_) => "common",
    };
    settings.replace("/common/", &format!("/{segment}/"))
}
