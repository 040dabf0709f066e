//! The parameters of a request's query. A mistake in them is refused, since a list without its filter shows other users.

use rocket::http::uri::Origin;
use url::form_urlencoded;

use crate::web::problem::{ErrorCode, Problem};

/// The parameters of a query, each of which is there at most once.
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads the query of a route that has these parameters.
    pub fn read(uri: &Origin<'_>, known: &[&str]) -> Result<Self, Problem> {
        let query = uri.query().map(|query| query.as_str()).unwrap_or_default();
        let mut read: Vec<(String, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let Some(name) = known.iter().find(|known| **known == name) else {
                let known = known.join("`, `");
                return Err(wrong(format!("the query has an unknown parameter; there are `{known}`")));
            };
            if read.iter().any(|(other, _)| other == name) {
                return Err(wrong(format!("`{name}` is there twice")));
            }
            read.push(((*name).to_owned(), value.into_owned()));
        }
        Ok(Self(read))
    }

    /// Returns a parameter's text.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// Returns true if there is a parameter beside these.
    pub fn has_beside(&self, names: &[&str]) -> bool {
        self.0.iter().any(|(name, _)| !names.contains(&name.as_str()))
    }

    /// Parses a parameter, which must be as the rule says.
    pub fn parse<'p, T>(
        &'p self,
        name: &str,
        parse: impl FnOnce(&'p str) -> Option<T>,
        rule: &str,
    ) -> Result<Option<T>, Problem> {
        let parsed = self.get(name).map(|text| parse(text).ok_or_else(|| wrong(format!("`{name}` {rule}"))));
        parsed.transpose()
    }

    /// Returns the number of items on a page: `limit`, or `usual` without it.
    pub fn limit(&self, usual: usize, most: usize) -> Result<usize, Problem> {
        let within = |text: &str| text.parse().ok().filter(|limit| (1..=most).contains(limit));
        let limit = self.parse("limit", within, &format!("must be a number from 1 to {most}"))?;
        Ok(limit.unwrap_or(usual))
    }
}

/// Returns the problem of a wrong parameter or member.
pub(super) fn wrong(detail: String) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, detail)
}
