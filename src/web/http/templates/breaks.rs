//! The `breaks` filter: allows line breaks between the parts of a long address, path or name.
//!
//! `{{ person.email | breaks }}` puts a `<wbr>` after each `@`, `-`, `_`, `/` and `:` of a text, and before a
//! `.` within a word: at the end of a line it would read as the end of a sentence.

use std::collections::HashMap;

use tera::{Filter, Value};

use super::escape;

/// The filter. Its output is the escaped text, and markup that contains nothing from outside.
pub struct Breaks;

impl Filter for Breaks {
    fn filter(&self, value: &Value, _: &HashMap<String, Value>) -> tera::Result<Value> {
        let text = value
            .as_str()
            .ok_or_else(|| tera::Error::msg(format!("`breaks` takes a text, not {value}")))?;
        let parts = text.split_inclusive(['@', '-', '_', '/', ':']).map(|part| {
            let mut broken = String::new();
            for (place, after) in part.split('.').enumerate() {
                let within = !broken.is_empty() && after.starts_with(char::is_alphabetic);
                broken += match place {
                    0 => "",
                    _ if within => "<wbr>.",
                    _ => ".",
                };
                broken += &escape(after);
            }
            broken
        });
        Ok(Value::String(parts.collect::<Vec<_>>().join("<wbr>")))
    }

    fn is_safe(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_breaks_at_its_signs_and_stays_text() {
        for (text, expected) in [
            ("", ""),
            ("Ada", "Ada"),
            ("ada.l@example.com", "ada<wbr>.l@<wbr>example<wbr>.com"),
            ("<b>.&amp;", "&lt;b&gt;.&amp;amp;"),
            (".a/.b.", ".a&#x2F;<wbr>.b."),
            (
                "It is a@b.org. From 10.0.0.1.",
                "It is a@<wbr>b<wbr>.org. From 10.0.0.1.",
            ),
            ("<wbr>", "&lt;wbr&gt;"),
            ("a\u{202e}b", "a b"),
        ] {
            assert_eq!(
                Breaks.filter(&text.into(), &HashMap::new()).unwrap(),
                expected
            );
        }
        assert!(Breaks.filter(&Value::Null, &HashMap::new()).is_err());
    }
}
