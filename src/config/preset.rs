//! Presets: the defaults for well-known providers.

mod apple;
mod custom;
mod facebook;
mod google;
mod keycloak;
mod line;
mod microsoft;
mod oidc;
mod rfc7662;

pub(super) use self::google::TOKENINFO as GOOGLE_TOKENINFO;
pub(super) use self::microsoft::{Tenant, tenants, with_tenant};
use super::provider::{ClientAuthentication, Method, Protocol, Verify};
use crate::domain::claims::{Dialect, EmailProof, NonceForm, NoncePolicy, NonceRule};
use crate::domain::id_token::Format;
use serde::{Deserialize, Serialize};

/// `preset`: the provider whose defaults are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Preset {
    Google,
    /// LINE Login v2.1.
    Line,
    /// Sign in with Apple.
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

/// The defaults of a provider.
#[derive(Debug)]
pub(super) struct Defaults {
    /// The means by which tokens are verified.
    pub verify: Verify,
    /// True if the provider has an endpoint that answers about tokens.
    pub can_be_asked: bool,
    /// True if that endpoint is known to answer about an `id_token`.
    pub introspects_id_tokens: bool,
    pub tokeninfo_url: Option<&'static str>,
    pub method: Method,
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
    /// Microsoft's tenants.
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
        method: Method::Get,
        protocol: Protocol::Tokeninfo,
        jwks_url: None,
        ssf_url: None,
        authorization_url: None,
        token_url: None,
        token_auth: None,
        revocation_url: None,
        issuers: Origin::Listed(&[]),
        format: Format::Jwt,
        nonce: NoncePolicy { rule: NonceRule::Required, form: NonceForm::Raw },
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
        method: Method::Post,
        protocol: Protocol::Introspection(ClientAuthentication::ClientSecretBasic),
        dialect: Dialect { client_id: true, ..Self::PLAIN.dialect },
        ..Self::PLAIN
    };

    /// Returns the defaults of a preset. Without a preset they are those of a plain tokeninfo endpoint.
    pub fn of(preset: Option<Preset>) -> &'static Self {
        match preset {
            None => &custom::CUSTOM,
            Some(Preset::Google) => &google::GOOGLE,
            Some(Preset::Line) => &line::LINE,
            Some(Preset::Apple) => &apple::APPLE,
            Some(Preset::Microsoft) => &microsoft::MICROSOFT,
            Some(Preset::Facebook) => &facebook::FACEBOOK,
            Some(Preset::Rfc7662) => &rfc7662::RFC7662,
            Some(Preset::Keycloak) => &keycloak::KEYCLOAK,
            Some(Preset::Oidc) => &oidc::OIDC,
        }
    }
}
