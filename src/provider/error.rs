//! The reason why a token was not verified.

use super::answer::Unavailable;
use crate::config;
use crate::domain::claims::UNKNOWN_COMPANION;
use crate::domain::id_token::Format;
use crate::domain::presets::Protocol;
use crate::domain::{Issuers, Reason, Refusal};

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The token is at fault.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The provider is at fault; the token may be valid.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl Error {
    /// Replaces field names by the settings' full names, which an operator knows.
    pub(super) fn named(self, provider: &config::Provider) -> Self {
        let refusal = match self {
            Self::Refused(refusal) => refusal,
            Self::Unavailable(unavailable) => return unavailable.named(provider).into(),
        };
        let remedy = match refusal.reason {
            // If introspection is used for tokens that are not JWTs, the audience may be a service
            // that takes access tokens. The operator must not add it.
            Reason::AudienceMismatch => {
                let [clients, companions] = ["additional_client_ids", "additional_audiences"]
                    .map(|setting| provider.setting(setting));
                let added = format!(
                    "; if the provider adds the other audience to yours, list it in {companions}"
                );
                match (provider.preset.protocol, provider.token_format) {
                    (Protocol::Introspection, Format::Any) => String::new(),
                    _ if refusal.detail == UNKNOWN_COMPANION => {
                        format!("{added}; if it is a client id of yours, add it to {clients}")
                    }
                    _ => format!("; if the client id is yours, add it to {clients}"),
                }
            }
            Reason::IssuerMismatch => {
                let tenants = matches!(provider.issuers, Issuers::Tenants(_));
                let setting = provider.setting(if tenants { "tenants" } else { "issuers" });
                format!("; if the issuer is yours, correct {setting}")
            }
            _ => return refusal.into(),
        };
        let detail = refusal.detail;
        let log = refusal
            .log
            .map(|received| format!("{detail}; received {received}{remedy}"));
        Refusal { log, ..refusal }.into()
    }
}
