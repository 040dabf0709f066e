//! The fields of the forms that filter a list, as they are in a URL.

use serde::Serialize;

use crate::domain::email::Email;
use crate::domain::text::printable;

/// The longest text in a field, in characters.
const MAX_LENGTH: usize = Email::MAX_LENGTH;

#[derive(Serialize)]
pub(super) struct Choice {
    pub value: &'static str,
    pub label: &'static str,
}

/// The error that a field matches nothing.
pub(super) struct NothingMatches;

/// Returns a field's text, fit to be shown again.
pub(super) fn tidy(field: Option<&str>) -> String {
    printable(field.unwrap_or_default(), MAX_LENGTH).trim().to_owned()
}

/// Parses a field: `None` if it is empty, [`NothingMatches`] if it cannot be parsed.
pub(super) fn read<T>(
    field: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, NothingMatches> {
    if field.is_empty() { Ok(None) } else { read(field).map(Some).ok_or(NothingMatches) }
}

/// A filter in use, with the URL of the same list without it.
#[derive(Serialize)]
pub(super) struct Chip {
    pub label: String,
    pub href: String,
}
