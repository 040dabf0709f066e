//! The reason that a change needs.

use crate::domain::text::is_control;

/// The longest reason, in characters.
pub(super) const MAX_LENGTH: usize = 500;

/// Returns a reason as the audit keeps it: on one line. Returns `None` if it is blank or too long.
pub(super) fn read(text: &str) -> Option<String> {
    let line = text.replace(is_control, " ");
    let reason = line.trim();
    (1..=MAX_LENGTH).contains(&reason.chars().count()).then(|| reason.to_owned())
}
