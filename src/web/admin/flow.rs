//! The authorization-code flow as staff go through it (RFC 6749 §4.1): where it begins, where it
//! comes back, and where it may lead.

use url::Url;

use crate::config;
use crate::session::staff::Begun;

/// Longest page address that a sign-in leads to.
const MAX_NEXT: usize = 512;

/// What the pages need to know of the service.
#[derive(Debug)]
pub struct Admin {
    provider: String,
    public_url: String,
    client_id: String,
    authorization_url: Option<Url>,
}

impl Admin {
    /// Staff sign in with that provider, and come back to that address.
    #[must_use]
    pub fn new(provider: &config::Provider, public_url: &str) -> Self {
        let complete = provider.client_secret.is_some() && provider.token_url.is_some();
        Self {
            provider: provider.name.clone(),
            public_url: public_url.to_owned(),
            client_id: provider.client_ids[0].clone(),
            authorization_url: provider.authorization_url.clone().filter(|_| complete),
        }
    }

    /// Name of the provider.
    pub(super) fn provider(&self) -> &str {
        &self.provider
    }

    /// Whether staff can sign in: the flow needs a client secret and the provider's endpoints.
    pub(super) const fn is_complete(&self) -> bool {
        self.authorization_url.is_some()
    }

    /// Whether browsers meet the service by https only.
    pub(super) fn is_https(&self) -> bool {
        self.public_url.starts_with("https:")
    }

    /// The service's own origin.
    pub(crate) fn origin(&self) -> &str {
        &self.public_url
    }

    /// The origin of the provider's sign-in page, which a form of ours leads to.
    pub(super) fn provider_origin(&self) -> Option<String> {
        self.authorization_url.as_ref().map(|url| url.origin().ascii_serialization())
    }

    /// Exactly one address, from the configuration: a `Host` header has no say in it.
    pub(super) fn redirect_uri(&self) -> String {
        format!("{}/admin/sign-in/callback", self.public_url)
    }

    /// The provider's sign-in page for a sign-in that has begun.
    pub(super) fn authorize(&self, begun: &Begun) -> Option<String> {
        let mut url = self.authorization_url.clone()?;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client_id)
            .append_pair("redirect_uri", &self.redirect_uri())
            .append_pair("scope", "openid email")
            .append_pair("state", begun.state.expose())
            .append_pair("nonce", &begun.nonce)
            .append_pair("code_challenge", &begun.code_challenge)
            .append_pair("code_challenge_method", "S256");
        Some(url.into())
    }
}

/// A page of ours to go to after signing in; the users, when the text is none.
pub(super) fn next(text: Option<&str>) -> String {
    let sound = |text: &&str| {
        let plain = text.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
        plain
            && text.len() <= MAX_NEXT
            && !text.contains("//")
            && (*text == "/admin" || text.starts_with("/admin/"))
    };
    text.filter(sound).unwrap_or("/admin/users").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_leads_to_pages_of_ours_only() {
        assert_eq!(next(Some("/admin/users/1?q=a%20b")), "/admin/users/1?q=a%20b");
        let long = format!("/admin/{}", "x".repeat(9_000));
        for text in [
            "",
            "/",
            "//evil",
            "/admin//evil",
            "https://evil",
            "/admin\\evil",
            "/adminevil",
            "/admin/\0",
            "/admin/é",
            &long,
        ] {
            assert_eq!(next(Some(text)), "/admin/users", "{text:.30}");
        }
    }
}
