//! The parameters of a request's query. A mistake in them is refused, since a list without its
//! filter shows other users.

use std::str::FromStr;

use rocket::http::uri::Origin;
use strum::VariantArray;
use url::form_urlencoded;

use crate::web::Problem;
use crate::web::guard::json_body::named;

pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub fn of(uri: &Origin<'_>) -> Self {
        let query = uri.query().map(|query| query.as_str()).unwrap_or_default();
        Self(
            form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
        )
    }

    /// Takes a parameter, which is there at most once and must be as the rule says.
    pub fn take<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Option<T>,
        rule: &str,
    ) -> Result<Option<T>, Problem> {
        let mut values = self
            .0
            .extract_if(.., |(other, _)| other == name)
            .map(|(_, value)| value);
        let Some(value) = values.next() else {
            return Ok(None);
        };
        if values.next().is_some() {
            return Err(wrong(format!("`{name}` is there twice")));
        }
        parse(&value)
            .map(Some)
            .ok_or_else(|| wrong(format!("`{name}` {rule}")))
    }

    pub fn choice<T>(&mut self, name: &str) -> Result<Option<T>, Problem>
    where
        T: FromStr + VariantArray + Copy + Into<&'static str>,
    {
        let names: Vec<&str> = T::VARIANTS
            .iter()
            .map(|variant| (*variant).into())
            .collect();
        self.take(
            name,
            |text| text.parse().ok(),
            &format!("must be one of {}", names.join(", ")),
        )
    }

    /// Takes the number of items on a page: `limit`, or `usual` without it.
    pub fn limit(&mut self, usual: usize, most: usize) -> Result<usize, Problem> {
        let within = |text: &str| text.parse().ok().filter(|limit| (1..=most).contains(limit));
        let limit = self.take(
            "limit",
            within,
            &format!("must be a number from 1 to {most}"),
        )?;
        Ok(limit.unwrap_or(usual))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn end(self) -> Result<(), Problem> {
        let Some((name, _)) = self.0.first() else {
            return Ok(());
        };
        Err(wrong(format!(
            "the query has an unknown parameter{}",
            named(name)
        )))
    }
}

pub(super) fn wrong(detail: String) -> Problem {
    Problem::malformed(detail)
}
