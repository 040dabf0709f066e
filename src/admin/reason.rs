//! The reason that a change needs.

use crate::domain::text::{is_blank, one_line};

/// The longest reason, in characters.
pub(super) const MAX_LENGTH: usize = 500;

/// Returns a reason as the audit keeps it: on one line. Returns `None` if it is blank or too long.
pub(super) fn read(text: &str) -> Option<String> {
    let line = one_line(text);
    let reason = line.trim();
    let fits = !is_blank(reason) && reason.chars().count() <= MAX_LENGTH;
    fits.then(|| reason.to_owned())
}
