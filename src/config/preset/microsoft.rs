//! Microsoft Entra ID and personal Microsoft accounts (learn.microsoft.com, "ID token claims reference",
//! "Optional claims reference", "Secure applications and APIs by validating claims").
//!
//! Microsoft has no token-information endpoint, so only the signature is checked. Each tenant has its own
//! issuer (`https://login.microsoftonline.com/{tid}/v2.0`). A tenant's administrator may enter any e-mail
//! address; only the optional claim `xms_edov` shows that its domain was verified.

use super::{Defaults, Origin};
use crate::config::provider::Verify;
use crate::domain::claims::{Dialect, EmailProof};
use crate::domain::issuer::{MICROSOFT_ACCOUNTS, Tenants, is_tenant_id};

pub(super) const MICROSOFT: Defaults = Defaults {
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

/// The setting `tenants`, with the path segment that selects them in Microsoft's URLs.
pub(in crate::config) struct Tenant {
    pub tenants: Tenants,
    pub segment: String,
}

/// Reads `tenants`: one of Microsoft's words for a group of tenants, or a list of ids.
pub(in crate::config) fn tenants(texts: &[String]) -> Option<Tenant> {
    let texts: Vec<_> = texts.iter().map(|text| text.to_ascii_lowercase()).collect();
    let group = |tenants, segment: &str| Some(Tenant { tenants, segment: segment.to_owned() });
    match texts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] | ["common"] => group(Tenants::Any, "common"),
        ["organizations"] => group(Tenants::Organizations, "organizations"),
        ["consumers"] => group(Tenants::Listed(vec![MICROSOFT_ACCOUNTS.to_owned()]), "consumers"),
        [id] if is_tenant_id(id) => group(Tenants::Listed(vec![id.to_owned()]), id),
        _ if texts.iter().all(|id| is_tenant_id(id)) => {
            Some(Tenant { tenants: Tenants::Listed(texts), segment: "common".to_owned() })
        }
        _ => None,
    }
}

/// Puts a tenant's path segment into one of the URLs above.
pub(in crate::config) fn with_tenant(url: &str, segment: &str) -> String {
    url.replace("/common/", &format!("/{segment}/"))
}
