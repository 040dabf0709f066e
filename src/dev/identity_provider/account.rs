//! The account that a developer signs in with. No account is stored: everything that the developer
//! leaves out is derived from the e-mail address, so that the same address always has the same
//! subject.

use aws_lc_rs::digest::{SHA256, digest};
use url::Url;

use crate::domain::text::capitalized;
use crate::domain::{Email, claims};

#[derive(Debug)]
pub(super) struct DevAccount {
    pub subject: String,
    pub email: Option<Email>,
    pub verified: bool,
    pub name: Option<String>,
    /// A well-formed URL that leads nowhere (RFC 2606 §2), so that no outside server learns of a
    /// sign-in.
    pub picture: Option<String>,
}

impl DevAccount {
    /// An empty text counts as absent. The error is written for a developer.
    pub fn new(
        email: &str,
        subject: &str,
        name: &str,
        verified: bool,
    ) -> Result<Self, &'static str> {
        let email = match email {
            "" => None,
            text => Some(Email::parse(text).ok_or("`email` is not an e-mail address")?),
        };
        let subject = match (subject, &email) {
            ("", None) => return Err("`email` or `sub` is required"),
            ("", Some(email)) => subject_of(email),
            (subject, _) if claims::is_subject(subject) => subject.to_owned(),
            _ => {
                return Err(
                    "`sub` must be 1 to 255 ASCII characters, at least one of them visible and none a control character",
                );
            }
        };
        let name = Some(name)
            .filter(|name| !name.is_empty())
            .map(str::to_owned);
        let picture =
            Url::parse_with_params("https://pictures.example/person", [("sub", &subject)]);
        Ok(Self {
            picture: picture.ok().map(String::from),
            name: name.or_else(|| email.as_ref().and_then(name_of)),
            subject,
            email,
            verified,
        })
    }
}

/// Computes a subject in the form of Google's: 21 digits, the first of them not zero.
fn subject_of(email: &Email) -> String {
    const FIRST: u128 = 100_000_000_000_000_000_000;
    let hash = digest(&SHA256, email.folded().as_bytes());
    let number = hash
        .as_ref()
        .iter()
        .take(16)
        .fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
    (FIRST + number % (9 * FIRST)).to_string()
}

/// Derives a name: `ada.lovelace+test@example.com` becomes Ada Lovelace.
fn name_of(email: &Email) -> Option<String> {
    let (mailbox, _) = email.as_given().split_once('@')?;
    let (words, _tag) = mailbox.split_once('+').unwrap_or((mailbox, ""));
    let words = words
        .split(['.', '_', '-'])
        .filter(|word| !word.is_empty())
        .map(capitalized);
    let name = words.collect::<Vec<_>>().join(" ");
    (!name.is_empty()).then_some(name)
}
