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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line_of_at_most_500_characters() {
        assert_eq!(read(" lost phone,\nticket 4711\u{7}\n").as_deref(), Some("lost phone, ticket 4711"));
        for length in [1, 500] {
            assert_eq!(read(&format!(" {} ", "ä".repeat(length))), Some("ä".repeat(length)));
        }
        for text in ["", " \u{7}\u{a0}\r\n", &"x".repeat(501)] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }
}
