//! LINE Login v2.1 (developers.line.biz, "LINE Login v2.1 API reference", "Verify ID token").
//!
//! The endpoint takes the channel id together with the token. There is no `email_verified`, so an
//! e-mail address from LINE never links to an existing user; often there is no `email` either. LINE
//! documents `aud` as a string, but its SDK writes a number. Tokens of native apps and LIFF are
//! signed with ES256, and tokens of web logins with the channel secret (HS256): only the endpoint
//! verifies both.

use super::{Dialect, Preset, Protocol};

pub const PRESET: Preset = Preset {
    name: "line",
    settings: r#"
tokeninfo_url = "https://api.line.me/oauth2/v2.1/verify"
jwks_url = "https://api.line.me/oauth2/v2.1/certs"
authorization_url = "https://access.line.me/oauth2/v2.1/authorize"
token_url = "https://api.line.me/oauth2/v2.1/token"
token_auth = "client_secret_post"
issuers = "https://access.line.me"
# The SDKs make up a nonce if the app gives none.
nonce = "if_sent"
"#,
    protocol: Protocol::TokeninfoForClient,
    has_hosted_domains: false,
    dialect: Dialect {
        numeric_audience: true,
        ..Dialect::STANDARD
    },
    ..Preset::CUSTOM
};
