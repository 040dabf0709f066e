//! Presets: the defaults for well-known providers.

use serde::{Deserialize, Serialize};

use super::protocol::{ClientAuthentication, Protocol, Verify};
use crate::domain::claims::{Dialect, EmailProof};
use crate::domain::id_token::Format;
use crate::domain::issuer::{MICROSOFT_ACCOUNTS, Tenants, is_tenant_id};
use crate::domain::{NonceForm, NoncePolicy, NonceRule};

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

#[derive(Debug)]
pub(super) struct Defaults {
    /// The means by which tokens are verified.
    pub verify: Verify,
    /// True if the provider has an endpoint that answers about tokens.
    pub can_be_asked: bool,
    /// True if that endpoint is known to answer about an `id_token`.
    pub introspects_id_tokens: bool,
    pub tokeninfo_url: Option<&'static str>,
    pub protocol: Protocol,
    pub jwks_url: Option<&'static str>,
    /// The document of its security events.
    pub ssf_url: Option<&'static str>,
    pub authorization_url: Option<&'static str>,
    pub token_url: Option<&'static str>,
    pub token_auth: Option<ClientAuthentication>,
    pub revocation_url: Option<&'static str>,
    pub issuers: Origin,
    pub format: Format,
    pub nonce: NoncePolicy,
    pub dialect: Dialect,
    /// True if its tokens may have the claim `hd`.
    pub hosted_domains: bool,
}

/// The source of the accepted issuers if they are not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A fixed list; empty for providers that the operator has to describe.
    Listed(&'static [&'static str]),
    Tenants,
    /// The setting `issuer`; its discovery document names the endpoints that are not set.
    Discovered,
}

impl Defaults {
    /// A provider that follows OpenID Connect Core and has no known endpoints.
    const PLAIN: Self = Self {
        verify: Verify::Tokeninfo,
        can_be_asked: true,
        introspects_id_tokens: true,
        tokeninfo_url: None,
        protocol: Protocol::Tokeninfo,
        jwks_url: None,
        ssf_url: None,
        authorization_url: None,
        token_url: None,
        token_auth: None,
        revocation_url: None,
        issuers: Origin::Listed(&[]),
        format: Format::Jwt,
        nonce: NoncePolicy { rule: NonceRule::BothOrNeither, form: NonceForm::Raw },
        dialect: Dialect {
            numeric_audience: false,
            client_id: false,
            resource_audience: false,
            email_proof: EmailProof::EmailVerified,
        },
        hosted_domains: true,
    };

    /// A provider with token introspection (RFC 7662).
    const INTROSPECTED: Self = Self {
        protocol: Protocol::Introspection,
        dialect: Dialect { client_id: true, ..Self::PLAIN.dialect },
        ..Self::PLAIN
    };

    /// Returns the defaults of a preset. Without a preset they are those of a plain tokeninfo endpoint.
    pub fn of(preset: Option<Preset>) -> &'static Self {
        match preset {
            None => &CUSTOM,
            Some(Preset::Google) => &GOOGLE,
            Some(Preset::Line) => &LINE,
            Some(Preset::Apple) => &APPLE,
            Some(Preset::Microsoft) => &MICROSOFT,
            Some(Preset::Facebook) => &FACEBOOK,
            Some(Preset::Rfc7662) => &RFC7662,
            Some(Preset::Keycloak) => &KEYCLOAK,
            Some(Preset::Oidc) => &OIDC,
        }
    }
}

pub(super) const GOOGLE_TOKENINFO: &str = "https://oauth2.googleapis.com/tokeninfo";

/// Google (developers.google.com/identity, "OpenID Connect" and "Authenticate with a backend server"). Its
/// tokeninfo endpoint returns every claim as a string. `aud` is the client id of the backend and `azp` that
/// of the Android or iOS app; `hd` is the organisation.
const GOOGLE: Defaults = Defaults {
    tokeninfo_url: Some(GOOGLE_TOKENINFO),
    jwks_url: Some("https://www.googleapis.com/oauth2/v3/certs"),
    ssf_url: Some("https://accounts.google.com/.well-known/risc-configuration"),
    authorization_url: Some("https://accounts.google.com/o/oauth2/v2/auth"),
    token_url: Some("https://oauth2.googleapis.com/token"),
    // Google uses both spellings in its tokens.
    issuers: Origin::Listed(&["https://accounts.google.com", "accounts.google.com"]),
    ..Defaults::PLAIN
};

/// LINE Login v2.1 (developers.line.biz, "LINE Login v2.1 API reference", "Verify ID token").
///
/// The endpoint takes the channel id together with the token. There is no `email_verified`, so an e-mail
/// address from LINE never links to an existing user; often there is no `email` either. LINE documents `aud`
/// as a string, but its SDK writes a number. Tokens of native apps and LIFF are signed with ES256, those of
/// web logins with the channel secret (HS256): only the endpoint verifies both.
const LINE: Defaults = Defaults {
    tokeninfo_url: Some("https://api.line.me/oauth2/v2.1/verify"),
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

/// Sign in with Apple (developer.apple.com, "Verifying a user", "Fetch Apple's public key to verify token
/// signatures").
///
/// Apple has no token-information endpoint, so only the signature is checked. `email_verified` and
/// `is_private_email` are strings or Booleans. A private relay e-mail address is treated like any other; it
/// is known only to the apps of one team. Apps hash their nonce with SHA-256 before they hand it to Apple,
/// and only the hash is in the token. Apple has two issuers: it changed to the second one overnight
/// (supabase/auth #2051). `email` may be missing, and `name` is never in the token. Staff cannot sign in with
/// Apple: that would need a response by POST.
///
/// Apple's tokens have to be revoked when a user deletes the account (technical note TN3194). The client secret for that
/// is a JWT that a key of the team signs ("Token validation", "Token revocation").
const APPLE: Defaults = Defaults {
    verify: Verify::Jwks,
    can_be_asked: false,
    jwks_url: Some("https://appleid.apple.com/auth/keys"),
    token_url: Some("https://appleid.apple.com/auth/token"),
    token_auth: Some(ClientAuthentication::ClientSecretPost),
    revocation_url: Some("https://appleid.apple.com/auth/revoke"),
    issuers: Origin::Listed(&["https://appleid.apple.com", "https://account.apple.com"]),
    nonce: NoncePolicy { form: NonceForm::Sha256, ..Defaults::PLAIN.nonce },
    hosted_domains: false,
    ..Defaults::PLAIN
};

/// Microsoft Entra ID and personal Microsoft accounts (learn.microsoft.com, "ID token claims reference",
/// "Optional claims reference", "Secure applications and APIs by validating claims").
///
/// Microsoft has no token-information endpoint, so only the signature is checked. Each tenant has its own
/// issuer (`https://login.microsoftonline.com/{tid}/v2.0`). A tenant's administrator may enter any e-mail
/// address; only the optional claim `xms_edov` shows that its domain was verified.
const MICROSOFT: Defaults = Defaults {
    verify: Verify::Jwks,
    can_be_asked: false,
    jwks_url: Some("https://login.microsoftonline.com/common/discovery/v2.0/keys"),
    authorization_url: Some("https://login.microsoftonline.com/common/oauth2/v2.0/authorize"),
    token_url: Some("https://login.microsoftonline.com/common/oauth2/v2.0/token"),
    issuers: Origin::Tenants,
    dialect: Dialect { email_proof: EmailProof::DomainOwnerVerified, ..Defaults::PLAIN.dialect },
    hosted_domains: false,
    ..Defaults::PLAIN
};

/// Facebook Limited Login (developers.facebook.com, "OIDC Token for Limited Login", "Validating the Limited
/// Login OIDC Token"). Classic Facebook Login has access tokens only and is not supported.
///
/// Facebook has no endpoint for these tokens, so only the signature (RS256) is checked. There is no
/// `email_verified`, and `email` is present only if the user grants it.
const FACEBOOK: Defaults = Defaults {
    verify: Verify::Jwks,
    can_be_asked: false,
    jwks_url: Some("https://limited.facebook.com/.well-known/oauth/openid/jwks/"),
    issuers: Origin::Listed(&["https://www.facebook.com"]),
    // The SDK makes up a nonce if the app gives none.
    nonce: NoncePolicy { rule: NonceRule::IfSent, ..Defaults::PLAIN.nonce },
    hosted_domains: false,
    ..Defaults::PLAIN
};

/// Token introspection (RFC 7662): the operator sets the endpoint and the issuers. The response for an
/// inactive token is a 200 with `active: false`. The response must have every claim that is checked, also
/// those that are optional in the standard.
///
/// A token that is not a JWT does not show its type, and most introspected tokens are access tokens: any
/// service that receives one could sign in with it here. `token_format = "jwt"` prevents that. A JWT is
/// checked by its own claims and must be an `id_token`.
const RFC7662: Defaults = Defaults { format: Format::Any, ..Defaults::INTROSPECTED };

/// Keycloak (keycloak.org, "Securing applications: OpenID Connect"): `issuer` is the URL of the realm, such
/// as `https://id.example.com/realms/people`.
///
/// The default is verification by signature. Introspection returns the audiences of the user's roles
/// (`account`) rather than those of the token, so its `aud` does not count. Keycloak's access and refresh tokens
/// are recognised by `typ` in the payload.
const KEYCLOAK: Defaults = Defaults {
    verify: Verify::Jwks,
    issuers: Origin::Discovered,
    dialect: Dialect { resource_audience: true, ..Defaults::INTROSPECTED.dialect },
    ..Defaults::INTROSPECTED
};

/// Any OpenID provider with a discovery document (OpenID Connect Discovery 1.0). The document always names
/// the keys and only sometimes an introspection endpoint. RFC 7662 §2.1 covers access and refresh tokens, so
/// not every server introspects an `id_token`.
///
/// Some providers, such as Dex, issue access tokens with the same claims as their `id_token`s. For those, set
/// `nonce = "always"` and `nonce_form = "sha256"`: a service that receives such a token knows only the hash.
const OIDC: Defaults = Defaults {
    verify: Verify::Jwks,
    introspects_id_tokens: false,
    issuers: Origin::Discovered,
    ..Defaults::INTROSPECTED
};

/// No preset: a provider that is defined by its settings alone. Its tokens may have any format.
const CUSTOM: Defaults = Defaults { format: Format::Any, ..Defaults::PLAIN };

/// The setting `tenants`, with the path segment that selects them in Microsoft's URLs.
#[derive(Debug, Clone)]
pub(super) struct Tenant {
    pub tenants: Tenants,
    pub segment: String,
}

impl Default for Tenant {
    fn default() -> Self {
        Self { tenants: Tenants::Any, segment: "common".to_owned() }
    }
}

impl Tenant {
    /// Reads `tenants`: one of Microsoft's words for a group of tenants, or a list of ids.
    pub fn read(texts: &[String]) -> Option<Self> {
        let texts: Vec<_> = texts.iter().map(|text| text.to_ascii_lowercase()).collect();
        let (tenants, segment) = match texts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["common"] => (Tenants::Any, "common"),
            ["organizations"] => (Tenants::Organizations, "organizations"),
            ["consumers"] => (Tenants::Listed(vec![MICROSOFT_ACCOUNTS.to_owned()]), "consumers"),
            [id] if is_tenant_id(id) => (Tenants::Listed(vec![id.to_owned()]), id),
            _ if texts.iter().all(|id| is_tenant_id(id)) => (Tenants::Listed(texts.clone()), "common"),
            _ => return None,
        };
        Some(Self { tenants, segment: segment.to_owned() })
    }

    /// Puts the path segment into one of the URLs above.
    pub fn select(&self, url: &str) -> String {
        url.replace("/common/", &format!("/{}/", self.segment))
    }
}
