//! `[default.web]`: the pages that may call the API, and keep their refresh token in a cookie.

use serde::{Deserialize, Deserializer};

use super::text;

const REMEDY: &str = "list the origins of the pages, such as https://app.example.com";

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
        Self { own: public_url.to_owned(), ..self }
    }

    pub const fn is_off(&self) -> bool {
        self.origins.is_empty()
    }

    pub fn admits(&self, origin: &str) -> bool {
        self.origins.iter().any(|listed| listed == origin)
    }

    /// Returns true if the service's own origin has pages that may call the API.
    pub fn admits_own(&self) -> bool {
        self.admits(&self.own)
    }

    /// Returns true if browsers reach the service by https: everywhere but on a developer's machine.
    pub fn is_secure(&self) -> bool {
        self.own.starts_with("https:")
    }
}

fn origins<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    text::list(deserializer)?.iter().map(|item| text::origin(item, REMEDY)).collect()
}
