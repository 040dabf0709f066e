//! `[default.web]`: the pages that may call the API, and keep their refresh token in a cookie.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::text;

const REMEDY: &str = "list the origins of the pages, such as https://app.example.com, or of an app's web view, such as capacitor://localhost";

/// The schemes of pages that an app has packed for its web view: Capacitor's, Ionic's, Electron's
/// and Tauri's.
const WEB_VIEWS: [&str; 4] = ["capacitor://", "ionic://", "app://", "tauri://"];

/// The pages of the same site that may call the API; none by default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Web {
    #[serde(deserialize_with = "origins")]
    origins: Vec<String>,
    #[serde(skip)]
    own: String,
}

impl Web {
    /// Returns the same for the service at this origin.
    pub(super) fn at(self, public_url: &str) -> Self {
        Self {
            own: public_url.to_owned(),
            ..self
        }
    }

    pub const fn is_off(&self) -> bool {
        self.origins.is_empty()
    }

    pub fn admits(&self, origin: &str) -> bool {
        self.origins.iter().any(|listed| listed == origin)
    }

    /// Returns true for the origin of an app's web view. Its pages are on another site than the
    /// service, so that no browser sends them a `SameSite=Strict` cookie: they may call the API,
    /// with the refresh token in the app's storage.
    pub fn is_web_view(origin: &str) -> bool {
        WEB_VIEWS.iter().any(|scheme| origin.starts_with(scheme))
    }

    /// Returns true if the service's own origin has pages that may call the API.
    pub fn admits_own(&self) -> bool {
        self.admits(&self.own)
    }

    /// Returns true if browsers reach the service by https: everywhere but on a developer's
    /// machine.
    pub fn is_secure(&self) -> bool {
        self.own.starts_with("https:")
    }
}

fn origins<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    text::list(deserializer)?
        .iter()
        .map(|item| origin(item))
        .collect()
}

fn origin<E: Error>(text: &str) -> Result<String, E> {
    let Some(host) = WEB_VIEWS
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme))
    else {
        return text::origin(text, REMEDY);
    };
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b);
    if host.is_empty() || !host.bytes().all(plain) {
        let problem = "must be one origin, without `*`, a path, a query or a fragment";
        return Err(E::custom(format_args!("{problem}; {REMEDY}")));
    }
    Ok(text.to_owned())
}
