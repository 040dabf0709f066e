//! Presets: what there is to know of a provider before an operator says anything.

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
use serde::Deserialize;

/// `preset`: which provider this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Google.
    Google,
    /// LINE Login v2.1.
    Line,
    /// Sign in with Apple.
    Apple,
    /// Microsoft Entra ID and personal Microsoft accounts.
    Microsoft,
    /// Facebook Limited Login.
    Facebook,
    /// Any endpoint for token introspection.
    Rfc7662,
    /// Keycloak.
    Keycloak,
    /// Any OpenID provider with a discovery document.
    Oidc,
}

/// What holds for a provider where the operator sets nothing else.
#[derive(Debug)]
pub(super) struct Defaults {
    /// What the tokens are verified with.
    pub verify: Verify,
    /// Whether the provider's tokens can be asked about at all.
    pub can_be_asked: bool,
    /// Whether its endpoint is known to answer about an `id_token`.
    pub introspects_id_tokens: bool,
    pub tokeninfo_url: Option<&'static str>,
    pub method: Method,
    pub protocol: Protocol,
    pub jwks_url: Option<&'static str>,
    pub authorization_url: Option<&'static str>,
    pub token_url: Option<&'static str>,
    pub token_auth: Option<ClientAuthentication>,
    pub issuers: Origin,
    pub format: Format,
    pub nonce: NoncePolicy,
    pub dialect: Dialect,
    /// Whether there may be an `hd` in the claims.
    pub hosted_domains: bool,
}

/// Where the accepted issuers come from, when they are not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// They are known; none are for providers that an operator has to describe.
    Listed(&'static [&'static str]),
    /// They are Microsoft's tenants.
    Tenants,
    /// There is the setting `issuer`, and the endpoints that are not set are found below it.
    Discovered,
}

impl Defaults {
    /// A provider that says nothing of itself, and follows OpenID Connect Core.
    const PLAIN: Self = Self {
        verify: Verify::Tokeninfo,
        can_be_asked: true,
        introspects_id_tokens: true,
        tokeninfo_url: None,
        method: Method::Get,
        protocol: Protocol::Tokeninfo,
        jwks_url: None,
        authorization_url: None,
        token_url: None,
        token_auth: None,
        issuers: Origin::Listed(&[]),
        format: Format::Jwt,
        nonce: NoncePolicy { rule: NonceRule::Required, form: NonceForm::Raw },
        dialect: Dialect {
            numeric_audience: false,
            client_id: false,
            email_proof: EmailProof::EmailVerified,
        },
        hosted_domains: true,
    };

    /// A provider that is asked as RFC 7662 has it.
    const INTROSPECTED: Self = Self {
        method: Method::Post,
        protocol: Protocol::Introspection(ClientAuthentication::ClientSecretBasic),
        dialect: Dialect { client_id: true, ..Self::PLAIN.dialect },
        ..Self::PLAIN
    };

    /// What is known of the provider; without a preset, only how it is going to be asked.
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
