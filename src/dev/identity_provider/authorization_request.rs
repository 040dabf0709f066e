//! The authorization request of a client (RFC 6749 §4.1.1, OpenID Connect Core §3.1.2.1, RFC 7636 §4.3), and the
//! redirect back to the client.

use std::net::IpAddr;

use url::{Host, Url};

use super::IdentityProvider;
use super::parameters::Parameters;

/// A valid request, which the page may show.
#[derive(Debug)]
pub(super) struct AuthorizationRequest {
    pub back: Back,
    pub nonce: Option<String>,
    pub code_challenge: Option<String>,
}

/// The redirect URI, with the state that the client expects in the response.
#[derive(Debug)]
pub(super) struct Back {
    /// The URI exactly as it was sent, for the comparison when the code is exchanged (RFC 6749 §4.1.3).
    pub uri: String,
    url: Url,
    state: Option<String>,
}

/// The reason why a request is refused, and the recipient of the error.
#[derive(Debug)]
pub(super) enum Refused {
    /// The user sees the error: it is not certain that the redirect URI is the client's (RFC 6749 §4.1.2.1).
    Here(&'static str),
    /// The client gets an error code and a description.
    There(Box<Back>, &'static str, &'static str),
}

impl AuthorizationRequest {
    /// Reads and checks a request.
    pub fn read(provider: &IdentityProvider, sent: &Parameters) -> Result<Self, Refused> {
        if sent.get("client_id") != Some(&provider.client_id) {
            return Err(Refused::Here("`client_id` is missing or not the one this provider knows."));
        }
        let Some(back) = Back::read(sent) else {
            return Err(Refused::Here(
                "`redirect_uri` is missing or not an http or https address on this machine without a fragment.",
            ));
        };
        match check(sent) {
            Ok(()) => Ok(Self {
                back,
                nonce: sent.get("nonce").map(str::to_owned),
                code_challenge: sent.get("code_challenge").map(str::to_owned),
            }),
            Err((error, description)) => Err(Refused::There(back.into(), error, description)),
        }
    }
}

fn check(sent: &Parameters) -> Result<(), (&'static str, &'static str)> {
    if sent.get("request").is_some() {
        return Err(("request_not_supported", "request objects are not understood"));
    }
    if sent.get("request_uri").is_some() {
        return Err(("request_uri_not_supported", "request objects are not understood"));
    }
    match sent.get("response_type") {
        Some("code") => {}
        Some(_) => return Err(("unsupported_response_type", "response_type must be code")),
        None => return Err(("invalid_request", "response_type is missing")),
    }
    if sent.get("response_mode").is_some_and(|mode| mode != "query") {
        return Err(("invalid_request", "response_mode must be query"));
    }
    if !sent.get("scope").is_some_and(|scope| scope.split(' ').any(|name| name == "openid")) {
        return Err(("invalid_scope", "scope must contain openid"));
    }
    if sent.get("prompt").is_some_and(|prompt| prompt.split(' ').any(|name| name == "none")) {
        return Err(("login_required", "nobody is ever signed in here"));
    }
    match (sent.get("code_challenge"), sent.get("code_challenge_method")) {
        (None, None) => Ok(()),
        (Some(challenge), Some("S256")) if is_challenge(challenge) => Ok(()),
        // Without a method, the challenge would be `plain` (RFC 7636 §4.3), which is not supported.
        _ => Err(("invalid_request", "code_challenge must be a SHA-256, and code_challenge_method S256")),
    }
}

/// Returns true for a SHA-256 in base64url (RFC 7636 §4.2).
fn is_challenge(text: &str) -> bool {
    text.len() == 43 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

impl Back {
    fn read(sent: &Parameters) -> Option<Self> {
        let uri = sent.get("redirect_uri")?;
        let url = Url::parse(uri).ok().filter(leads_here)?;
        Some(Self { uri: uri.to_owned(), url, state: sent.get("state").map(str::to_owned) })
    }

    /// Returns the redirect URI with a response for the client, which includes the issuer (RFC 9207 §2).
    pub fn with(mut self, issuer: &str, answer: &[(&str, &str)]) -> String {
        self.url
            .query_pairs_mut()
            .extend_pairs(answer)
            .extend_pairs(self.state.iter().map(|state| ("state", state)))
            .append_pair("iss", issuer);
        self.url.into()
    }
}

/// Returns true if a URL can only be on this machine (RFC 6749 §3.1.2). It must have no user or password, because a
/// user name may look like a host.
fn leads_here(url: &Url) -> bool {
    let loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => IpAddr::from(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::from(ip).is_loopback(),
        None => false,
    };
    let bare = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    loopback && bare && matches!(url.scheme(), "http" | "https")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_here_only_when_it_is_on_loopback_and_bare() {
        let here = |text| leads_here(&Url::parse(text).unwrap());
        for text in
            ["http://127.0.0.1:3000/back?a=b", "https://localhost/", "http://[::1]:1/", "http://127.1.2.3/"]
        {
            assert!(here(text), "{text}");
        }
        for text in [
            "http://example.com/",
            "http://127.0.0.1.example.com/",
            "http://127.0.0.1@example.com/",
            "http://user@127.0.0.1/",
            "http://127.0.0.1/#",
            "http://0.0.0.0/",
            "app://127.0.0.1/",
            "http://localhost.example/",
            "javascript:alert(1)",
            "http://[::ffff:192.0.2.1]/",
        ] {
            assert!(!here(text), "{text}");
        }
    }
}
