//! The authorization-code flow of staff (RFC 6749 §4.1): its start, its callback, and its targets.

use std::sync::OnceLock;

use rocket::http::uri::Origin;
use url::Url;

use crate::admin::staff::sign_in::session::Begun;
use crate::domain::NonceForm;
use crate::provider::{self, Providers};
use crate::{clock, config};

/// The longest page URL to which a sign-in leads.
pub(in crate::admin) const MAX_NEXT: usize = 4096;

#[derive(Debug)]
pub struct Admin {
    pub(in crate::admin) provider: String,
    /// The service's own origin.
    pub(in crate::admin) public_url: String,
    client_id: String,
    nonce_form: NonceForm,
    /// True if staff can sign in: the flow needs a client secret and the provider's endpoints.
    pub(crate) complete: bool,
    /// The settings that make it complete: the client secret, and the endpoints of a provider
    /// without discovery.
    pub(crate) settings: [String; 3],
    /// The setting of an endpoint that was left at another provider.
    strayed: Option<String>,
    /// The provider's authorization endpoint: configured, or fetched when it is first needed.
    authorization_url: OnceLock<Url>,
}

impl Admin {
    pub fn new(provider: &config::Provider, public_url: &str) -> Self {
        let endpoints = provider.authorization_url.is_some() && provider.token_url.is_some();
        Self {
            provider: provider.name.clone(),
            public_url: public_url.to_owned(),
            client_id: provider.client_ids[0].clone(),
            nonce_form: provider.nonces.of(&provider.client_ids[0]).form,
            strayed: provider
                .stray_endpoint()
                .map(|field| provider.setting(field)),
            complete: provider.client_secret.is_some()
                && (endpoints || provider.discovery.is_some()),
            settings: ["client_secret", "authorization_url", "token_url"]
                .map(|field| provider.setting(field)),
            authorization_url: provider
                .authorization_url
                .clone()
                .map_or_else(OnceLock::new, OnceLock::from),
        }
    }

    pub(in crate::admin) fn strayed(&self) -> Option<&str> {
        self.strayed.as_deref().filter(|_| self.complete)
    }

    pub(in crate::admin) async fn locate(
        &self,
        providers: &Providers,
    ) -> Result<(), provider::Error> {
        if self.complete
            && self.authorization_url.get().is_none()
            && let Some(provider) = providers.get(&self.provider)
        {
            let url = provider.authorization_url(clock::now()).await?;
            // Another request may have set it meanwhile.
            let _ = self.authorization_url.set(url);
        }
        Ok(())
    }

    /// Returns `true` if browsers reach the service over HTTPS only.
    pub(in crate::admin) fn is_https(&self) -> bool {
        self.public_url.starts_with("https:")
    }

    /// Returns the origin of the provider's sign-in page, to which a form redirects.
    pub(in crate::admin) fn provider_origin(&self) -> Option<String> {
        let url = self.authorization_url.get().filter(|_| self.complete);
        url.map(|url| url.origin().ascii_serialization())
    }

    /// Returns the redirect URI. It comes from the configuration only, never from a `Host` header.
    pub(crate) fn redirect_uri(&self) -> String {
        format!("{}/admin/sign-in/callback", self.public_url)
    }

    pub(in crate::admin) fn authorize(&self, begun: &Begun) -> Option<String> {
        let mut url = self
            .authorization_url
            .get()
            .filter(|_| self.complete)?
            .clone();
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

/// Returns the page to open after the sign-in: the text if it is an admin page, else the users.
pub(in crate::admin) fn next(text: Option<&str>) -> String {
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

/// Returns `true` if a browser keeps the path as it is and resolves no dot segments (WHATWG URL,
/// "path state").
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
        for text in [
            "/admin/users/1?q=a%20b",
            "/admin/audit?x=/../y",
            "/admin/a..b/.c/%41",
            "/admin/users?q=O'Brien",
        ] {
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
