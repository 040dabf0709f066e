//! Texts in a CSV file that a spreadsheet would change.

/// Returns true if a spreadsheet may take the text for a formula (OWASP, "CSV Injection"), even if
/// it skips characters, or for a number, of which it loses digits.
pub fn changes(text: &str) -> bool {
    is_formula(text) || loses_digits(text)
}

pub fn is_formula(text: &str) -> bool {
    text.trim_start_matches(is_skipped)
        .starts_with(begins_formula)
}

const fn begins_formula(c: char) -> bool {
    matches!(c, '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠')
}

/// Returns `true` if a spreadsheet or a clean-up of the file may drop the character before a
/// formula: blanks, quotes, and invisible characters.
fn is_skipped(c: char) -> bool {
    // These are letters by category, but blank (Unicode, Default_Ignorable_Code_Point).
    let blank = matches!(
        c,
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{17b4}' | '\u{17b5}'
    );
    let other = !c.is_alphanumeric() && !c.is_ascii_graphic() && !begins_formula(c);
    blank || other || matches!(c, '"' | '\'' | '`')
}

/// Returns true for a number with leading zeros, with more than the 15 digits that Excel keeps, or
/// with an exponent, such as the id `891e3`.
pub fn loses_digits(text: &str) -> bool {
    match text.split_once(['e', 'E']) {
        None => is_digits(text) && (text.len() > 15 || text.len() > 1 && text.starts_with('0')),
        Some((number, exponent)) => {
            let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            [whole, fraction, exponent].into_iter().all(is_digits)
        }
    }
}

/// Returns true for a number as spreadsheets show a long one, such as `1.08204E+20`: it has lost
/// digits.
pub fn is_rounded(text: &str) -> bool {
    text.split_once("E+").is_some_and(|(number, exponent)| {
        let (whole, fraction) = number.split_once(['.', ',']).unwrap_or((number, "0"));
        whole.len() == 1 && [whole, fraction, exponent].into_iter().all(is_digits)
    })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_loses_digits_is_changed() {
        for text in [
            "9912140633506421",
            "108204268033311374519",
            "04567",
            "00",
            "891e3",
            "4.892E+092",
            "12345678901234e5",
            "1E-5",
        ] {
            assert!(changes(text), "{text}");
        }
        for text in [
            "",
            "0",
            "42",
            "123456789012345",
            "1.50",
            "e3",
            "1e",
            "1e5f",
            "1.e5x",
            "2026-11-21",
            "12e4-5",
        ] {
            assert!(!changes(text), "{text}");
        }
    }
}
