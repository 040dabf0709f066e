//! The `breaks` filter: lets a long address, path or name of parts break into lines between its parts.
//!
//! `{{ person.email | breaks }}` puts a `<wbr>` after each `@`, `.`, `-`, `_`, `/` and `:` of a text.

use std::collections::HashMap;

use tera::{Filter, Value, escape_html};

/// The filter. Its output is the escaped text, and markup that contains nothing from outside.
pub struct Breaks;

impl Filter for Breaks {
    fn filter(&self, value: &Value, _: &HashMap<String, Value>) -> tera::Result<Value> {
        let text =
            value.as_str().ok_or_else(|| tera::Error::msg(format!("`breaks` takes a text, not {value}")))?;
        let parts = text.split_inclusive(['@', '.', '-', '_', '/', ':']);
        Ok(Value::String(parts.map(escape_html).collect::<Vec<_>>().join("<wbr>")))
    }

    fn is_safe(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_breaks_after_its_signs_and_stays_text() {
        for (text, expected) in [
            ("", ""),
            ("Ada", "Ada"),
            ("ada.l@example.com", "ada.<wbr>l@<wbr>example.<wbr>com"),
            ("<b>.&amp;", "&lt;b&gt;.<wbr>&amp;amp;"),
            ("<wbr>", "&lt;wbr&gt;"),
        ] {
            assert_eq!(Breaks.filter(&text.into(), &HashMap::new()).unwrap(), expected);
        }
        assert!(Breaks.filter(&Value::Null, &HashMap::new()).is_err());
    }
}
