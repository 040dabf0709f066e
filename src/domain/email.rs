//! E-mail addresses for linking: one address, ASCII case-folded.

use super::text::{as_typed, is_control, is_ignorable};

/// Characters that stand around an address in a text, and in no address.
const SEPARATORS: &str = ",;:<>()[]\\\"\u{fffd}";

/// An e-mail address. Two are the same if their folded forms are equal. Dots, tags and Unicode are
/// not normalised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Email {
    given: String,
    folded: String,
}

impl Email {
    /// The longest address in use (RFC 5321 §4.5.3.1.3, RFC 3696 erratum 1690), in bytes.
    pub const MAX_LENGTH: usize = 254;

    /// Parses exactly one bare address. Lists, display names, control and invisible characters and
    /// quoting are refused, because other mail software may read them in another way.
    pub fn parse(text: &str) -> Option<Self> {
        let (local, domain) = text.split_once('@')?;
        // An invisible character, or a code point that is no character, makes an address look like
        // another.
        let hidden = |c: char| {
            is_control(c)
                || is_ignorable(c)
                || c.is_whitespace()
                || ('\u{fffe}'..='\u{ffff}').contains(&c)
        };
        let plain = |c: char| !hidden(c) && c != '@' && !SEPARATORS.contains(c);
        let sound = text.len() <= Self::MAX_LENGTH
            && !local.is_empty()
            && local.chars().all(plain)
            && domain.chars().all(plain)
            && domain.split('.').all(|label| !label.is_empty());
        sound.then(|| Self {
            given: text.to_owned(),
            folded: text.to_ascii_lowercase(),
        })
    }

    /// Returns the first address within a pasted text. Chat programs write a bar between an address
    /// and its link.
    pub fn first_in(text: &str) -> Option<Self> {
        let is_around = |c: char| c.is_whitespace() || c == '|' || SEPARATORS.contains(c);
        as_typed(text).split(is_around).find_map(|word| {
            let (mailbox, domain) = word.split_once('@')?;
            // No domain has a question mark: the query of a `mailto:` URL begins there (RFC 6068
            // §2).
            let domain = domain.split('?').next()?;
            Self::parse(&format!("{mailbox}@{domain}"))
        })
    }

    /// Returns the address as the provider wrote it.
    pub fn as_given(&self) -> &str {
        &self.given
    }

    /// Returns the address by which users are found: ASCII letters in lower case.
    pub fn folded(&self) -> &str {
        &self.folded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_folded_in_ascii_only() {
        let email = Email::parse("Víctim.A+tag@Example.COM").unwrap();
        assert_eq!(email.folded(), "víctim.a+tag@example.com");
        assert_eq!(
            Email::parse("ÉA@x.example").unwrap().folded(),
            "Éa@x.example"
        );
    }

    #[test]
    fn what_is_not_exactly_one_bare_address_is_none() {
        let long = format!("{}@example.com", "a".repeat(400));
        for text in [
            "",
            "@",
            "a",
            "a@",
            "@b",
            "a@b@c",
            "a@x,victim@x",
            "N <victim@x>",
            "a@x\r\nBcc: b@x",
            "a b@x",
            "a@x\0",
            "lin\u{200b}us@x",
            "a@x\u{ad}",
            "a\u{e0041}@x",
            "\"a\"@x",
            "a@.x",
            "a@x.",
            "a@x..y",
            "a@x;b",
            "a\u{fffd}@x",
            &long,
        ] {
            assert_eq!(Email::parse(text), None, "{text:.40}");
        }
    }

    #[test]
    fn an_address_is_found_within_a_text() {
        for text in [
            "a@x",
            " a@x ",
            "Ada <a@x>, b@x",
            "mailto:A@X",
            "of @ or a@x?",
            "mailto:a@x?subject=b@x",
            "<mailto:a@x|a@x>",
            "a@\u{200b}x",
            "\u{202a}a@x\u{202c}",
            "\u{ff21}\u{ff20}x",
        ] {
            let found = Email::first_in(text).map(|email| email.folded().to_owned());
            assert_eq!(found.as_deref(), Some("a@x"), "{text}");
        }
        let found = Email::first_in("a@x\u{2011}y").map(|email| email.folded().to_owned());
        assert_eq!(found.as_deref(), Some("a@x-y"));
        for text in ["", "Ada", "@", "a b@"] {
            assert_eq!(Email::first_in(text), None, "{text}");
        }
    }
}
