//! Text of others that is shown or stored.

/// Returns a text without control characters, and at most that many characters of it: PostgreSQL rejects NUL, and a
/// terminal obeys others.
#[must_use]
pub fn printable(text: &str, max_chars: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(max_chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_character_is_left_out_and_counts_for_nothing() {
        assert_eq!(printable("\0ä\nö\u{9b}ü", 2), "äö");
        assert_eq!(printable("äöü", 4), "äöü");
    }
}
