//! Functions for text from outside that is shown or stored.

/// Returns true for a control character, for a line or paragraph separator, and for a character
/// that changes the direction of the text around it, which makes the text look like another
/// (`Bidi_Control` of Unicode).
pub fn is_control(c: char) -> bool {
    let ends_line = matches!(c, '\u{2028}'..='\u{2029}');
    let turns = matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || ends_line || turns
}

/// Returns true for a character that is displayed as nothing (`Default_Ignorable_Code_Point` of
/// Unicode).
pub const fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Returns a pasted text as if it had been typed: without invisible characters, with the ASCII
/// character for its full-width form, and with one hyphen for all hyphens and dashes.
pub fn as_typed(text: &str) -> String {
    let typed = |c: char| match c {
        // The block has ASCII's printable characters in the same order.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' => '-',
        _ => c,
    };
    text.chars()
        .filter(|c| !is_ignorable(*c))
        .map(typed)
        .collect()
}

/// Returns true if no character of a text is visible. The empty Braille pattern is not.
pub fn is_blank(text: &str) -> bool {
    let seen =
        |c: char| !c.is_whitespace() && !is_control(c) && !is_ignorable(c) && c != '\u{2800}';
    !text.chars().any(seen)
}

/// Returns a text from outside for a terminal or a page: a blank for each control character but the
/// line feed and the tab.
pub fn plain(text: &str) -> String {
    text.replace(|c: char| is_control(c) && !matches!(c, '\n' | '\t'), " ")
}

/// Like [`plain`], on one line.
pub fn one_line(text: &str) -> String {
    text.replace(is_control, " ")
}

/// Returns a text without control characters, and at most that many characters of it: PostgreSQL
/// rejects NUL, and a terminal obeys others.
pub fn printable(text: &str, max_chars: usize) -> String {
    text.chars()
        .filter(|c| !is_control(*c))
        .take(max_chars)
        .collect()
}

pub fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .chain(letters)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_character_is_left_out_and_counts_for_nothing() {
        assert_eq!(printable("\0ä\nö\u{9b}ü", 2), "äö");
        assert_eq!(printable("äöü", 4), "äöü");
        assert_eq!(
            printable("ada\u{202e}gpj.\u{2066}exe\u{200f}", 9),
            "adagpj.ex"
        );
        assert_eq!(printable("a\u{2028}b\u{2029}", 9), "ab");
    }

    #[test]
    fn texts_lose_bidi_control_and_separator_characters_before_display() {
        let text = "a\u{202e}b\u{2028}c\u{9b}d\te\nf\u{2069}\r";
        assert_eq!(plain(text), "a b c d\te\nf  ");
        assert_eq!(one_line(text), "a b c d e f  ");
    }

    #[test]
    fn a_text_of_which_nothing_is_seen_is_blank() {
        for text in [
            "",
            " \n",
            "\u{200b}",
            "\u{feff}\u{34f}",
            "\u{2800} \u{3164}",
            "\u{202e}\u{2028}",
        ] {
            assert!(is_blank(text), "{text:?}");
        }
        for text in ["a", "\u{200b}1", "…", "\u{1f600}"] {
            assert!(!is_blank(text), "{text:?}");
        }
    }
}
