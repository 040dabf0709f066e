//! LINE Login v2.1 (developers.line.biz, "LINE Login v2.1 API reference", "Verify ID token").
//!
//! The endpoint takes the channel id together with the token. There is no `email_verified`, so an e-mail
//! address from LINE never links to an existing user; often there is no `email` either. LINE documents `aud`
//! as a string, but its SDK writes a number. Tokens of native apps and LIFF are signed with ES256, those of
//! web logins with the channel secret (HS256): only the endpoint verifies both.

use super::{Defaults, Origin};
use crate::config::provider::{ClientAuthentication, Method, Protocol};
use crate::domain::claims::{Dialect, NoncePolicy, NonceRule};

pub(super) const LINE: Defaults = Defaults {
    tokeninfo_url: Some("https://api.line.me/oauth2/v2.1/verify"),
    method: Method::Post,
    protocol: Protocol::TokeninfoForClient,
    jwks_url: Some("https://api.line.me/oauth2/v2.1/certs"),
    authorization_url: Some("https://access.line.me/oauth2/v2.1/authorize"),
    token_url: Some("https://api.line.me/oauth2/v2.1/token"),
    token_auth: Some(ClientAuthentication::ClientSecretPost),
    issuers: Origin::Listed(&["https://access.line.me"]),
    // The SDKs make up a nonce if the app gives none.
    nonce: NoncePolicy { rule: NonceRule::IfSent, ..Defaults::PLAIN.nonce },
    dialect: Dialect { numeric_audience: true, ..Defaults::PLAIN.dialect },
    hosted_domains: false,
    ..Defaults::PLAIN
};
