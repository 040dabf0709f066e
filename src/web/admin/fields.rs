//! The fields of the forms that filter a list, as they stand in an address.

use serde::Serialize;

use crate::domain::email::Email;

/// Longest text in a field, in characters.
const MAX_LENGTH: usize = Email::MAX_LENGTH;

/// A choice of a form.
#[derive(Serialize)]
pub(super) struct Choice {
    pub value: &'static str,
    pub label: &'static str,
}

/// A field holds what nothing has.
pub(super) struct NothingMatches;

/// What a field holds, fit to be shown again.
pub(super) fn tidy(field: Option<&str>) -> String {
    let shown = field.unwrap_or_default().chars().filter(|c| !c.is_control());
    shown.take(MAX_LENGTH).collect::<String>().trim().to_owned()
}

/// What a field asks for: nothing where it is empty, something that there is not where it cannot be read.
pub(super) fn read<T>(
    field: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, NothingMatches> {
    if field.is_empty() { Ok(None) } else { read(field).map(Some).ok_or(NothingMatches) }
}
