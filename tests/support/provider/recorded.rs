//! What is kept of a request.

use super::form;

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The method.
    pub method: String,
    /// The path as it was sent, without the query.
    pub path: String,
    /// The query as it was sent, without the question mark.
    pub query: String,
    /// The header names and values in order.
    pub headers: Vec<(String, String)>,
    /// The body, without its chunk framing.
    pub body: Vec<u8>,
    /// Which connection it came on, counted from 1.
    pub connection: usize,
}

impl Recorded {
    /// The first header of this name, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter();
        found.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The decoded parameters: of the query, or of the form that a POST carries.
    #[must_use]
    pub fn parameters(&self) -> Vec<(String, String)> {
        if self.method != "POST" {
            return form::pairs(&self.query);
        }
        let kind = self.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Vec::new();
        }
        form::pairs(&String::from_utf8_lossy(&self.body))
    }

    /// The token, when there is exactly one `id_token` parameter.
    #[must_use]
    pub fn token(&self) -> Option<String> {
        let mut tokens = self.parameters().into_iter().filter(|(name, _)| name == "id_token");
        let (_, token) = tokens.next()?;
        tokens.next().is_none().then_some(token)
    }
}
