//! Presets: all that is known about each kind of provider, in a file of its own. A new preset is a
//! file and a row in [`PRESETS`].

pub mod apple;
pub mod facebook;
pub mod google;
mod keycloak;
mod line;
pub mod microsoft;
mod oidc;
mod rfc7662;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::json::Object;

/// The presets, in the order in which the API names them.
pub const PRESETS: &[&Preset] = &[
    &google::PRESET,
    &line::PRESET,
    &apple::PRESET,
    &microsoft::PRESET,
    &facebook::PRESET,
    &rfc7662::PRESET,
    &keycloak::PRESET,
    &oidc::PRESET,
];

/// The names of the presets.
pub const NAMES: &[&str] = &{
    let mut names = [""; PRESETS.len()];
    let mut row = 0;
    while row < PRESETS.len() {
        names[row] = PRESETS[row].name;
        row += 1;
    }
    names
};

/// The defaults of settings that apply to every provider, where they differ from the defaults of
/// the types. Presets and operators override them.
pub const OF_EACH: &str = r#"
name = "idp"
enabled = true
max_token_age = 86400
# At 100 ms for a call, that is several hundred in a second.
max_calls = 64
"#;

/// A kind of provider. Each preset states how it differs from [`Preset::CUSTOM`].
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact about the provider, and depends on no other one"
)]
pub struct Preset {
    /// The value of the setting `preset`, and of `kind` in the API.
    pub name: &'static str,
    /// The defaults of the provider's settings, in TOML.
    pub settings: &'static str,
    /// The request to the endpoint that is asked about a token.
    pub protocol: Protocol,
    /// True if the provider has an endpoint that can be asked about a token.
    pub has_tokeninfo: bool,
    /// True if that endpoint is known to answer about an `id_token`.
    pub introspects_id_tokens: bool,
    /// True if the provider has a discovery document, whose issuer is the setting `issuer`.
    pub has_discovery: bool,
    /// True if the provider has an issuer for each tenant, which the setting `tenants` selects.
    pub has_tenants: bool,
    /// True if tokens may have `hd`, the organisation that hosts the account.
    pub has_hosted_domains: bool,
    /// The deviations of the claims. `client_id` follows from the protocol instead.
    pub dialect: Dialect,
    /// The form of the provider's messages about its accounts.
    pub sender: Sender,
    /// True if these messages have `exp`.
    pub messages_expire: bool,
    /// True if the response to an authorization code always has an `id_token`.
    pub code_yields_id_token: bool,
    /// The place where an operator registers our address for messages. It continues "register it",
    /// and `{url}` stands for the address of the provider in our API. `None` if an operator
    /// registers it only where the setting `ssf_url` names a document.
    pub messages_registered: Option<&'static str>,
    /// The problem with messages if there is no `client_secret`, for `vestibule check`. `None` if
    /// the secret is not needed for them.
    pub without_client_secret: Option<&'static str>,
    /// The problem if there is no key that signs client secrets, for `vestibule check`. `None` if
    /// the provider accepts no such client secrets, and the settings of the key are refused.
    pub without_client_key: Option<&'static str>,
}

impl Preset {
    /// A provider without a preset, which is defined by its settings alone. Its tokens may have any
    /// format. The API describes it as a provider with the preset `oidc`.
    pub const CUSTOM: Self = Self {
        name: "oidc",
        settings: r#"token_format = "any""#,
        protocol: Protocol::Tokeninfo,
        has_tokeninfo: true,
        introspects_id_tokens: true,
        has_discovery: false,
        has_tenants: false,
        has_hosted_domains: true,
        dialect: Dialect::STANDARD,
        sender: Sender::SecurityEvents,
        messages_expire: false,
        code_yields_id_token: false,
        messages_registered: None,
        without_client_secret: None,
        without_client_key: None,
    };
}

impl Default for &'static Preset {
    fn default() -> Self {
        &Preset::CUSTOM
    }
}

/// A preset is written as its name.
impl<'de> Deserialize<'de> for &'static Preset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        PRESETS
            .iter()
            .copied()
            .find(|preset| preset.name == name)
            .ok_or_else(|| D::Error::unknown_variant(&name, NAMES))
    }
}

/// The request by which a provider's endpoint is asked about a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `GET ?id_token=…`
    Tokeninfo,
    /// `POST` of the `id_token` and the `client_id` that it was issued for.
    TokeninfoForClient,
    /// Token introspection (RFC 7662).
    Introspection,
}

/// The rules by which a provider sends messages about its accounts, and expects responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// Security Event Tokens (RFC 8417), pushed as RFC 8935 describes.
    SecurityEvents,
    /// Apple's notifications; see [`apple`].
    Apple,
    /// Facebook's signed requests; see [`facebook`].
    Facebook,
}

/// The claim that verifies the e-mail address (OpenID Connect Core §5.1).
pub(super) const EMAIL_VERIFIED: &str = "email_verified";

/// Deviations of a provider's claims from OpenID Connect Core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// `aud` may be a number instead of a string of digits.
    pub numeric_audience: bool,
    /// `client_id` also names the application that a token was issued to (RFC 7662 §2.2).
    pub client_id: bool,
    /// `aud` of an introspection names resource servers, not the clients that the token is for.
    pub resource_audience: bool,
    /// The claim that verifies the e-mail address.
    pub email_proof: EmailProof,
}

/// The claim by which a provider confirms an e-mail address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmailProof {
    /// `email_verified` (OpenID Connect Core §5.1).
    EmailVerified,
    /// Microsoft's `xms_edov`: the owner of the domain was verified. No other claim of a tenant
    /// shows the owner of the e-mail address.
    DomainOwnerVerified,
}

impl Dialect {
    /// The claims of OpenID Connect Core.
    pub const STANDARD: Self = Self {
        numeric_audience: false,
        client_id: false,
        resource_audience: false,
        email_proof: EmailProof::EmailVerified,
    };
}

impl EmailProof {
    /// Returns the provider's statement; `None` if the claim is absent. A `null` is a statement,
    /// and verifies nothing.
    pub fn given(self, claims: &Object) -> Option<bool> {
        let (name, domain) = match self {
            Self::EmailVerified => (EMAIL_VERIFIED, false),
            Self::DomainOwnerVerified => ("xms_edov", true),
        };
        claims.has(name).then(|| match claims.get(name) {
            Some(Value::Bool(verified)) => *verified,
            // `xms_edov` is documented as a Boolean, but `"1"` was seen as well.
            Some(Value::String(verified)) => verified == "true" || domain && verified == "1",
            Some(Value::Number(verified)) => domain && verified.as_u64() == Some(1),
            _ => false,
        })
    }
}
