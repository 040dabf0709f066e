//! The fields of the forms that filter a list, as they are in a URL.

use std::borrow::Cow;

use rocket::http::uri::Origin;
use serde::{Serialize, Serializer};
use url::form_urlencoded;

use crate::domain::{Email, printable};

/// The longest text in a field, in characters.
const MAX_LENGTH: usize = Email::MAX_LENGTH;

#[derive(Serialize)]
pub(super) struct Choice {
    pub value: &'static str,
    pub label: &'static str,
}

/// A choice among lists, with the end of the list's URL.
#[derive(Serialize)]
pub(super) struct Tab {
    pub value: &'static str,
    pub label: &'static str,
    pub link: String,
}

pub(super) struct NothingMatches;

/// The fields of a filter, fit to be shown again. A field that is not filled in is empty.
#[derive(Default)]
pub(super) struct Fields(Vec<(&'static str, String)>);

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl Fields {
    pub fn read(uri: &Origin<'_>, names: &[&'static str]) -> Self {
        let query = uri.query().map_or("", |query| query.as_str());
        let value =
            |name: &str| form_urlencoded::parse(query.as_bytes()).find(|(field, _)| field == name);
        let tidy = |(_, value): (_, Cow<'_, str>)| printable(&value, MAX_LENGTH).trim().to_owned();
        Self(
            names
                .iter()
                .map(|name| (*name, value(name).map(tidy).unwrap_or_default()))
                .collect(),
        )
    }

    pub fn get(&self, name: &str) -> &str {
        self.0
            .iter()
            .find(|(field, _)| *field == name)
            .map_or("", |(_, value)| value)
    }

    pub fn put(&mut self, name: &str, text: &str) {
        self.0
            .iter_mut()
            .filter(|(field, _)| *field == name)
            .for_each(|(_, value)| text.clone_into(value));
    }

    /// Returns the filled-in fields, except the fields with these names.
    pub fn filled_but(&self, without: &[&str]) -> impl Iterator<Item = (&'static str, &str)> {
        let filled = self
            .0
            .iter()
            .filter(|(name, value)| !value.is_empty() && !without.contains(name));
        filled.map(|(name, value)| (*name, value.as_str()))
    }

    /// Returns the fields that are filled in, for the record of the access.
    pub fn searched(&self) -> Vec<(&'static str, &str)> {
        self.filled_but(&[]).collect()
    }

    pub fn kept(&self, without: &[&str]) -> Vec<(&'static str, String)> {
        self.filled_but(without)
            .map(|(name, value)| (name, value.to_owned()))
            .collect()
    }

    /// Returns the query of a list's URL: the filled-in fields except `without`, then the
    /// `further` parameters.
    pub fn suffix(&self, without: &[&str], further: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let query = query
            .extend_pairs(self.filled_but(without))
            .extend_pairs(further)
            .finish();
        if query.is_empty() {
            query
        } else {
            format!("?{query}")
        }
    }
}

/// Parses a field: `None` if it is empty, [`NothingMatches`] if it cannot be parsed.
pub(super) fn read<T>(
    field: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, NothingMatches> {
    if field.is_empty() {
        Ok(None)
    } else {
        read(field).map(Some).ok_or(NothingMatches)
    }
}

/// A filter in use, with the URL of the same list without it.
#[derive(Serialize)]
pub(super) struct Chip {
    pub label: String,
    pub href: String,
}
