//! The authorization-code flow as staff go through it (RFC 6749 §4.1): where it begins, where it
//! comes back, and where it may lead.

use std::sync::OnceLock;

use rocket::http::uri::Origin;
use url::Url;

use crate::domain::claims::NonceForm;
use crate::provider::{self, Providers};
use crate::session::staff::Begun;
use crate::{clock, config};

/// Longest page address that a sign-in leads to.
const MAX_NEXT: usize = 512;

/// What the pages need to know of the service.
#[derive(Debug)]
pub struct Admin {
    provider: String,
    public_url: String,
    client_id: String,
    /// What the provider's tokens hold of a nonce.
    nonce_form: NonceForm,
    complete: bool,
    /// Set, or learnt from the provider when it is first needed.
    authorization_url: OnceLock<Url>,
}

impl Admin {
    /// Staff sign in with that provider, and come back to that address.
    #[must_use]
    pub fn new(provider: &config::Provider, public_url: &str) -> Self {
        let endpoints = provider.authorization_url.is_some() && provider.token_url.is_some();
        Self {
            provider: provider.name.clone(),
            public_url: public_url.to_owned(),
            client_id: provider.client_ids[0].clone(),
            nonce_form: provider.nonces.of(&provider.client_ids[0]).form,
            complete: provider.client_secret.is_some() && (endpoints || provider.discovery.is_some()),
            authorization_url: provider.authorization_url.clone().map_or_else(OnceLock::new, OnceLock::from),
        }
    }

    /// Name of the provider.
    pub(super) fn provider(&self) -> &str {
        &self.provider
    }

    /// Whether staff can sign in: the flow needs a client secret and the provider's endpoints.
    pub(super) const fn is_complete(&self) -> bool {
        self.complete
    }

    /// Learns from the provider where its sign-in page is, when that is not set.
    pub(super) async fn locate(&self, providers: &Providers) -> Result<(), provider::Error> {
        if self.complete
            && self.authorization_url.get().is_none()
            && let Some(provider) = providers.get(&self.provider)
        {
            let url = providers.authorization_url(provider, clock::now()).await?;
            // Somebody else may have learnt the same meanwhile.
            let _ = self.authorization_url.set(url);
        }
        Ok(())
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
        let url = self.authorization_url.get().filter(|_| self.complete);
        url.map(|url| url.origin().ascii_serialization())
    }

    /// Exactly one address, from the configuration: a `Host` header has no say in it.
    pub(crate) fn redirect_uri(&self) -> String {
        format!("{}/admin/sign-in/callback", self.public_url)
    }

    /// The provider's sign-in page for a sign-in that has begun.
    pub(super) fn authorize(&self, begun: &Begun) -> Option<String> {
        let mut url = self.authorization_url.get().filter(|_| self.complete)?.clone();
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client_id)
            .append_pair("redirect_uri", &self.redirect_uri())
            .append_pair("scope", "openid email")
            .append_pair("state", begun.state.expose())
            .append_pair("nonce", &self.nonce_form.of(&begun.nonce))
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
            // Rocket redirects to nothing else (RFC 3986 §3.3, §3.4).
            && Origin::parse(text).is_ok()
            && stays(text)
    };
    text.filter(sound).unwrap_or("/admin/users").to_owned()
}

/// Whether a browser goes to the path as it is written, and not up by one of its segments (WHATWG URL, "path state").
fn stays(text: &str) -> bool {
    let path = text.split('?').next().unwrap_or_default();
    Url::parse("https://vestibule.invalid")
        .and_then(|base| base.join(text))
        .is_ok_and(|url| url.path() == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_leads_to_pages_of_ours_only() {
        for text in
            ["/admin/users/1?q=a%20b", "/admin/audit?x=/../y", "/admin/a..b/.c/%41", "/admin/users?q=O'Brien"]
        {
            assert_eq!(next(Some(text)), text);
        }
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
            "/admin/<x>",
            "/admin/{x}",
            "/admin/users?q=a|b`^\"",
            "/admin/users#",
            "/admin/../api/v1/me",
            "/admin/users/..",
            "/admin/.",
            "/admin/./users",
            "/admin/%2e%2E/api/v1/me",
            "/admin/.%2e/api/v1/me?x",
            &long,
        ] {
            assert_eq!(next(Some(text)), "/admin/users", "{text:.30}");
        }
    }
}
