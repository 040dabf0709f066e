//! Microsoft Entra ID and personal Microsoft accounts (learn.microsoft.com, "ID token claims
//! reference", "Optional claims reference", "Secure applications and APIs by validating claims").
//!
//! Microsoft has no token-information endpoint, so only the signature is checked. Each tenant has
//! its own issuer (`https://login.microsoftonline.com/{tid}/v2.0`). A tenant's administrator may
//! enter any e-mail address; only the optional claim `xms_edov` shows that its domain was verified.

use super::{Dialect, EmailProof, Preset};

pub const PRESET: Preset = Preset {
    name: "microsoft",
    settings: r#"
verify = "jwks"
jwks_url = "https://login.microsoftonline.com/common/discovery/v2.0/keys"
authorization_url = "https://login.microsoftonline.com/common/oauth2/v2.0/authorize"
token_url = "https://login.microsoftonline.com/common/oauth2/v2.0/token"
"#,
    has_tokeninfo: false,
    has_tenants: true,
    has_hosted_domains: false,
    dialect: Dialect {
        email_proof: EmailProof::DomainOwnerVerified,
        ..Dialect::STANDARD
    },
    ..Preset::CUSTOM
};

/// The tenant of personal Microsoft accounts.
const MICROSOFT_ACCOUNTS: &str = "9188040d-6c67-4c5b-b112-36a304b66dad";

/// The Microsoft tenants whose accounts may sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tenants {
    /// All accounts.
    Any,
    /// Accounts of all organisations, but no personal accounts.
    Organizations,
    /// Accounts of these organisations, by their ids in lower case.
    Listed(Vec<String>),
}

impl Tenants {
    /// Reads one of Microsoft's words for a group of tenants, or a list of ids. An empty list is all
    /// tenants.
    ///
    /// # Errors
    /// The words are something else; the text is the problem and the remedy.
    pub fn named(words: &[String]) -> Result<Self, &'static str> {
        let words: Vec<_> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] | ["common"] => Ok(Self::Any),
            ["organizations"] => Ok(Self::Organizations),
            ["consumers"] => Ok(Self::Listed(vec![MICROSOFT_ACCOUNTS.to_owned()])),
            _ if words.iter().all(|id| is_tenant_id(id)) => Ok(Self::Listed(words.clone())),
            _ => Err(
                "are neither ids nor one of `common`, `organizations` and `consumers`; set it to the \
                 ids of the organisations that may sign in",
            ),
        }
    }

    /// Puts the path segment that selects these tenants into the URLs of [`PRESET`].
    pub fn select(&self, settings: &str) -> String {
        let segment = match self {
            Self::Organizations => "organizations",
            Self::Listed(ids) if *ids == [MICROSOFT_ACCOUNTS] => "consumers",
            Self::Listed(ids) if ids.len() == 1 => &ids[0],
            Self::Any | Self::Listed(_) => "common",
        };
        settings.replace("/common/", &format!("/{segment}/"))
    }

    /// Returns true if accounts of this tenant may sign in.
    pub fn include(&self, tenant: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Organizations => tenant != MICROSOFT_ACCOUNTS,
            Self::Listed(ids) => ids.iter().any(|id| id == tenant),
        }
    }

    /// Returns true if a tenant may be in both.
    pub fn overlap(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Listed(ids), tenants) | (tenants, Self::Listed(ids)) => {
                ids.iter().any(|id| tenants.include(id))
            }
            _ => true,
        }
    }
}

/// Returns the tenant whose issuer this is; `None` for another issuer.
pub fn tenant(iss: &str) -> Option<&str> {
    let id = iss
        .strip_prefix("https://login.microsoftonline.com/")?
        .strip_suffix("/v2.0")?;
    is_tenant_id(id).then_some(id)
}

/// Returns true if the text is a GUID in lower case.
fn is_tenant_id(text: &str) -> bool {
    let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| {
            if matches!(at, 8 | 13 | 18 | 23) {
                b == b'-'
            } else {
                digit(b)
            }
        })
}
