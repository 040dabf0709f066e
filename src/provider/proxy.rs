//! The proxy of the environment, through which providers are called, as curl reads it. Webhooks
//! never use it: a proxy would connect to addresses that this service has not checked.

use std::env;
use std::fmt;

use reqwest::{ClientBuilder, NoProxy};
use url::Url;

use super::client::ClientError;
use crate::secret::Secret;

/// The variables with the proxy for `https`, the first that is set counting.
const VARIABLES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// The variables with the proxy for `http`. They do not matter: providers on other machines are
/// `https`.
const PLAIN: [&str; 2] = ["HTTP_PROXY", "http_proxy"];
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];
/// This machine's own hosts. A proxy is on another machine, or leads there.
const HERE: &str = "localhost,127.0.0.0/8,::1";

/// An HTTP proxy. `Display` and `Debug` hide its user and password.
#[derive(Debug, Clone)]
pub struct Proxy {
    /// The variable that names it.
    pub variable: &'static str,
    url: Secret<Url>,
    /// The hosts and networks that are reached directly, separated by commas.
    pub exceptions: String,
}

impl Proxy {
    /// Reads the environment. Returns `None` if it names no proxy.
    pub fn of_environment() -> Result<Option<Self>, ClientError> {
        let Some((variable, text)) = first(&VARIABLES) else {
            return Ok(None);
        };
        let url = read(&text).ok_or(ClientError::Proxy(variable))?;
        let exceptions = first(&EXCEPTIONS)
            .map(|(_, text)| text.replace(char::is_control, " "))
            .unwrap_or_default();
        Ok(Some(Self {
            variable,
            url: Secret::new(url),
            exceptions,
        }))
    }

    /// Has a client use it.
    pub(super) fn apply(&self, client: ClientBuilder) -> Result<ClientBuilder, ClientError> {
        let proxy = reqwest::Proxy::https(self.url.expose().clone())
            // The error would show the URL.
            .map_err(|_| ClientError::Proxy(self.variable))?;
        Ok(client
            .proxy(proxy.no_proxy(NoProxy::from_string(&format!("{HERE},{}", self.exceptions)))))
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url.expose().origin().ascii_serialization())
    }
}

/// Returns the variable that names a proxy for `http` if no variable names one for `https`.
pub fn only_plain() -> Option<&'static str> {
    let (variable, _) = first(&PLAIN)?;
    first(&VARIABLES).is_none().then_some(variable)
}

/// Returns the first variable with a value. An empty one counts as unset.
fn first(variables: &[&'static str]) -> Option<(&'static str, String)> {
    variables.iter().find_map(|variable| {
        let value = env::var_os(variable)?.to_string_lossy().trim().to_owned();
        (!value.is_empty()).then_some((*variable, value))
    })
}

/// Reads the URL of an HTTP proxy, whose scheme may be left out.
fn read(text: &str) -> Option<Url> {
    let text = if text.contains("://") {
        text.to_owned()
    } else {
        format!("http://{text}")
    };
    let url = Url::parse(&text).ok()?;
    let is_bare =
        matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
    (matches!(url.scheme(), "http" | "https") && url.has_host() && is_bare).then_some(url)
}
