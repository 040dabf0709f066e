//! The accepted issuers of a provider (OpenID Connect Core §3.1.3.7, 2).

use super::json::Object;
use super::presets::microsoft::{Tenants, tenant};

/// Accepted values of `iss`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Issuers {
    /// Exactly these values; all of them name one issuer.
    Listed(Vec<String>),
    /// Microsoft's issuers: each organisation (tenant) has its own, and `tid` in its tokens names
    /// it.
    Tenants(Tenants),
}

impl Default for Issuers {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

impl Issuers {
    pub fn issued(&self, claims: &Object) -> bool {
        claims.str("iss").is_some_and(|iss| match self {
            Self::Listed(_) => self.include(iss),
            // Some keys may sign for every tenant, so `iss` must match the tenant in `tid`.
            Self::Tenants(_) => self.include(iss) && tenant(iss) == claims.str("tid"),
        })
    }

    pub fn include(&self, iss: &str) -> bool {
        match self {
            Self::Listed(names) => names.iter().any(|name| name == iss),
            Self::Tenants(tenants) => tenant(iss).is_some_and(|tenant| tenants.include(tenant)),
        }
    }

    /// Returns true if an account of one may also be an account of the other.
    pub fn overlap(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Listed(names), Self::Listed(others)) => names
                .iter()
                .any(|name| others.iter().any(|other| same(name, other))),
            (Self::Listed(names), tenants) | (tenants, Self::Listed(names)) => {
                names.iter().any(|name| tenants.include(name))
            }
            (Self::Tenants(tenants), Self::Tenants(others)) => tenants.overlap(others),
        }
    }

    /// Returns true if a key that the provider restricts to `issuer` may sign for `iss`.
    ///
    /// Microsoft publishes the keys of all tenants in one document. The member `issuer` of each key
    /// names the issuer that it signs for, with `{tenantid}` standing for any tenant. Other
    /// providers have no such member.
    pub fn may_sign(&self, issuer: Option<&str>, iss: Option<&str>) -> bool {
        match (self, issuer) {
            (Self::Listed(_), _) | (Self::Tenants(_), None) => true,
            (Self::Tenants(_), Some(issuer)) => iss.is_some_and(|iss| {
                let tenant = tenant(iss).unwrap_or_default();
                issuer.replace("{tenantid}", tenant) == iss
            }),
        }
    }
}

/// Returns true if both name the same issuer. One of them may lack its scheme, as Google's do.
pub fn same(one: &str, other: &str) -> bool {
    let bare = |name| str::strip_prefix(name, "https://").unwrap_or(name);
    bare(one) == bare(other)
}
