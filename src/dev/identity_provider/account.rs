//! The account that a developer signs in with. None is stored: what is not given is derived from the e-mail address,
//! so that the same address always has the same subject.

use aws_lc_rs::digest::{SHA256, digest};
use url::Url;

use crate::domain::email::Email;

/// The longest subject (OpenID Connect Core §2), in characters.
const MAX_SUBJECT_LENGTH: usize = 255;

#[derive(Debug)]
pub(super) struct DevAccount {
    pub subject: String,
    pub email: Option<Email>,
    pub verified: bool,
    pub name: Option<String>,
    /// A well-formed URL that leads nowhere (RFC 2606 §2), so that no outside server learns of a sign-in.
    pub picture: Option<String>,
}

/// The reason why the fields do not describe an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    #[error("`email` or `sub` is required")]
    Missing,
    #[error("`email` is not an e-mail address")]
    Email,
    #[error("`sub` must be 1 to 255 visible ASCII characters")]
    Subject,
}

impl DevAccount {
    /// An empty text counts as absent.
    pub fn new(email: &str, subject: &str, name: &str, verified: bool) -> Result<Self, Error> {
        let email = match email {
            "" => None,
            text => Some(Email::parse(text).ok_or(Error::Email)?),
        };
        let subject = match (subject, &email) {
            ("", None) => return Err(Error::Missing),
            ("", Some(email)) => subject_of(email),
            (subject, _) if is_subject(subject) => subject.to_owned(),
            _ => return Err(Error::Subject),
        };
        let name = Some(name).filter(|name| !name.is_empty()).map(str::to_owned);
        let picture = Url::parse_with_params("https://pictures.example/person", [("sub", &subject)]);
        Ok(Self {
            picture: picture.ok().map(String::from),
            name: name.or_else(|| email.as_ref().and_then(name_of)),
            subject,
            email,
            verified,
        })
    }
}

fn is_subject(text: &str) -> bool {
    text.len() <= MAX_SUBJECT_LENGTH && text.bytes().all(|b| b.is_ascii_graphic())
}

/// Computes a subject in the form of Google's: 21 digits, the first of them not zero.
fn subject_of(email: &Email) -> String {
    const FIRST: u128 = 100_000_000_000_000_000_000;
    let hash = digest(&SHA256, email.folded().as_bytes());
    let number = hash.as_ref().iter().take(16).fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
    (FIRST + number % (9 * FIRST)).to_string()
}

/// Derives a name: `ada.lovelace+test@example.com` becomes Ada Lovelace.
fn name_of(email: &Email) -> Option<String> {
    let (mailbox, _) = email.as_given().split_once('@')?;
    let (words, _tag) = mailbox.split_once('+').unwrap_or((mailbox, ""));
    let words = words.split(['.', '_', '-']).filter(|word| !word.is_empty()).map(capitalized);
    let name = words.collect::<Vec<_>>().join(" ");
    (!name.is_empty()).then_some(name)
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_email(email: &str) -> DevAccount {
        DevAccount::new(email, "", "", true).unwrap()
    }

    #[test]
    fn an_address_leads_to_the_same_21_digits_however_it_is_spelt() {
        let subject = from_email("ada@example.com").subject;
        assert_eq!(subject, from_email("Ada@Example.COM").subject);
        assert_ne!(subject, from_email("grace@example.com").subject);
        assert!(subject.len() == 21 && subject.bytes().all(|b| b.is_ascii_digit()), "{subject}");
    }

    #[test]
    fn a_name_that_is_not_given_is_made_from_the_address() {
        let name = |email| from_email(email).name;
        assert_eq!(name("ada@example.com").as_deref(), Some("Ada"));
        assert_eq!(name("ada.king_lovelace+test@example.com").as_deref(), Some("Ada King Lovelace"));
        assert_eq!(name("élodie@example.com").as_deref(), Some("Élodie"));
        assert_eq!(name("+@example.com"), None);
    }

    #[test]
    fn an_account_has_an_e_mail_address_or_a_subject_and_each_is_well_formed() {
        let long = "1".repeat(256);
        let account = |email, subject| DevAccount::new(email, subject, "", true).map(drop);
        assert_eq!(account("", ""), Err(Error::Missing));
        assert_eq!(account("ada", "1"), Err(Error::Email));
        assert_eq!(account("", "a b"), Err(Error::Subject));
        assert_eq!(account("", &long), Err(Error::Subject));
        assert_eq!(account("", "1"), Ok(()));
    }
}
