//! Imported users, as a file describes them. Their values must satisfy the same rules as a provider's claims.
//! An invalid row is refused with a reason, not corrected.

use std::collections::HashSet;
use std::fmt;

use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::domain::claims::{self, LEEWAY};
use crate::domain::email::Email;

/// A user to import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The id to keep; without one, the user gets a new id.
    pub id: Option<Uuid>,
    /// E-mail address.
    pub email: Option<Email>,
    /// True if the e-mail address was verified.
    pub email_verified: bool,
    /// Display name.
    pub name: Option<String>,
    /// URL of a picture.
    pub picture: Option<String>,
    /// The time of registration; the current time if it is not known.
    pub created_at: Option<OffsetDateTime>,
    /// True if the user may not sign in.
    pub disabled: bool,
    /// The user's identities, each of them once.
    pub identities: Vec<Identity>,
}

/// An identity of an imported user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Name of a configured provider.
    pub provider: String,
    /// `sub` at that provider.
    pub subject: String,
    /// The provider's e-mail address for it.
    pub email: Option<Email>,
    /// True if the provider has verified that address.
    pub email_verified: bool,
}

/// The values of a row as they stand in the file; `None` if empty.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "they are the columns")]
pub struct Raw<'a> {
    pub id: Option<&'a str>,
    pub email: Option<&'a str>,
    pub email_verified: Option<&'a str>,
    pub name: Option<&'a str>,
    pub picture: Option<&'a str>,
    pub created_at: Option<&'a str>,
    pub disabled: Option<&'a str>,
    pub provider: Option<&'a str>,
    pub subject: Option<&'a str>,
    pub identities: Vec<RawIdentity<'a>>,
}

/// The values of an identity.
#[derive(Debug, Clone, Copy, Default)]
#[expect(missing_docs, reason = "they are the columns")]
pub struct RawIdentity<'a> {
    pub provider: Option<&'a str>,
    pub subject: Option<&'a str>,
    pub email: Option<&'a str>,
    pub email_verified: Option<&'a str>,
}

/// The context in which rows are checked.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Names of the configured providers.
    pub providers: Vec<String>,
    /// The current time, in seconds since 1970-01-01T00:00:00Z.
    pub now: i64,
}

/// The reason why a row is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The row is not UTF-8.
    #[error("is not UTF-8")]
    NotUtf8,
    /// The row is longer than the memory reserved for one.
    #[error("is longer than {0} bytes")]
    TooLong(usize),
    /// The row has another number of fields than the header.
    #[error("has {found} fields, and the first line names {named}")]
    Fields {
        /// The number of fields in the row.
        found: usize,
        /// The number of columns in the header.
        named: usize,
    },
    /// A quoted field has no end.
    #[error("has a quotation mark that is never closed: everything behind it was read as part of this row")]
    Unclosed,
    /// The row is not JSON.
    #[error("is not JSON (see its column {0})")]
    NotJson(usize),
    /// The row is JSON, but not an object.
    #[error("is not a JSON object")]
    NotAnObject,
    /// A member is repeated, so two parsers could read two different users.
    #[error("has a member twice")]
    TwiceAMember,
    /// A value has the wrong type.
    #[error("`{0}` has the wrong type")]
    Type(&'static str),
    /// `id` is not a UUID.
    #[error("`id` is not a UUID")]
    Id,
    /// The value is not an e-mail address.
    #[error("`email` is not exactly one e-mail address")]
    Email,
    /// The value is not a Boolean.
    #[error("`{0}` is neither true nor false")]
    Flag(&'static str),
    /// `created_at` is not a time.
    #[error("`created_at` is not a time as in RFC 3339, such as 2024-05-31T12:00:00Z")]
    Time,
    /// `created_at` is in the future.
    #[error("`created_at` is in the future")]
    Future,
    /// `created_at` is before 1970. Some programs write such a time if they know none.
    #[error("`created_at` is before 1970; leave it empty if it is not known")]
    Ancient,
    /// `provider` or `subject` is missing.
    #[error("`provider` and `subject` go together, and one of them is missing")]
    HalfAnIdentity,
    /// The provider is not configured, so no sign-in could use the identity.
    #[error("`provider` is not one that is configured ({0})")]
    Provider(String),
    /// The subject is one that no provider would issue.
    #[error("`subject` must be 1 to 255 visible ASCII characters")]
    Subject,
    /// The row has the same identity twice.
    #[error("names an identity twice")]
    TwiceAnIdentity,
    /// The row has neither an e-mail address nor an identity, so no sign-in could find the user.
    #[error("has neither an `email` nor a `provider` with a `subject`")]
    Nobody,
    /// Another user has the id.
    #[error("its `id` is that of a user with another address")]
    IdOfAnother,
    /// Another user has the e-mail address.
    #[error("its `email` is that of a user with another id")]
    EmailOfAnother,
    /// Another user has the identity.
    #[error("its identity belongs to another user")]
    IdentityOfAnother,
    /// The user was not imported, or has changed since the import.
    #[error(
        "the user was there already and is not as an import left them; nothing is added to them by an import"
    )]
    NotOurs,
    /// The e-mail address is that of another user, and one of the two has not verified it.
    #[error(
        "a user with its `email` is there, and an address that is not verified joins nobody; rows of one person \
         need one `id`, or a verified address"
    )]
    Unproven,
}

impl Person {
    /// Reads a row by the rules of a sign-in.
    ///
    /// # Errors
    /// Returns the first problem found.
    pub fn read(raw: &Raw<'_>, rules: &Rules) -> Result<Self, Refused> {
        let email = raw.email.map(address).transpose()?;
        let email_verified = flag("email_verified", raw.email_verified)? && email.is_some();
        let mut identities = Vec::with_capacity(raw.identities.len() + 1);
        if raw.provider.is_some() || raw.subject.is_some() {
            identities.push(identity(raw.provider, raw.subject, email.clone(), email_verified, rules)?);
        }
        for given in &raw.identities {
            let own = given.email.map(address).transpose()?;
            // An identity's own e-mail address counts as verified only if its own flag says so.
            let verified = match (&own, given.email_verified) {
                (None, None) => email_verified,
                (_, said) => flag("email_verified", said)?,
            };
            let address = own.or_else(|| email.clone());
            let verified = verified && address.is_some();
            identities.push(identity(given.provider, given.subject, address, verified, rules)?);
        }
        let mut seen = HashSet::with_capacity(identities.len());
        if !identities.iter().all(|i| seen.insert((&i.provider, &i.subject))) {
            return Err(Refused::TwiceAnIdentity);
        }
        if email.is_none() && identities.is_empty() {
            return Err(Refused::Nobody);
        }
        Ok(Self {
            id: raw.id.map(|id| Uuid::parse_str(id).map_err(|_| Refused::Id)).transpose()?,
            email,
            email_verified,
            name: raw.name.and_then(claims::display_name),
            picture: raw.picture.and_then(claims::picture),
            created_at: raw.created_at.map(|text| time(text, rules.now)).transpose()?,
            disabled: flag("disabled", raw.disabled)?,
            identities,
        })
    }
}

fn address(text: &str) -> Result<Email, Refused> {
    Email::parse(text).ok_or(Refused::Email)
}

/// Reads a Boolean, also as PostgreSQL writes it into CSV.
fn flag(name: &'static str, text: Option<&str>) -> Result<bool, Refused> {
    let is = |text: &str, names: [&str; 2]| names.iter().any(|name| text.eq_ignore_ascii_case(name));
    match text {
        None => Ok(false),
        Some(text) if is(text, ["false", "f"]) => Ok(false),
        Some(text) if is(text, ["true", "t"]) => Ok(true),
        Some(_) => Err(Refused::Flag(name)),
    }
}

fn time(text: &str, now: i64) -> Result<OffsetDateTime, Refused> {
    let time = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| Refused::Time)?;
    // With an offset, the first and the last days of the calendar do not exist in UTC.
    let time = time.checked_to_utc().ok_or(Refused::Time)?;
    if time < OffsetDateTime::UNIX_EPOCH {
        return Err(Refused::Ancient);
    }
    let ahead = Duration::seconds(time.unix_timestamp().saturating_sub(now));
    if ahead > Duration::seconds(LEEWAY) { Err(Refused::Future) } else { Ok(time.into()) }
}

fn identity(
    provider: Option<&str>,
    subject: Option<&str>,
    email: Option<Email>,
    email_verified: bool,
    rules: &Rules,
) -> Result<Identity, Refused> {
    let (Some(provider), Some(subject)) = (provider, subject) else { return Err(Refused::HalfAnIdentity) };
    if !rules.providers.iter().any(|known| known == provider) {
        return Err(Refused::Provider(rules.providers.join(", ")));
    }
    if !claims::is_subject(subject) {
        return Err(Refused::Subject);
    }
    Ok(Identity { provider: provider.to_owned(), subject: subject.to_owned(), email, email_verified })
}

/// The columns of a file, which are also the members of a JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the columns")]
pub enum Column {
    Id,
    Email,
    EmailVerified,
    Name,
    Picture,
    CreatedAt,
    Disabled,
    Provider,
    Subject,
}

impl Column {
    /// Every column.
    pub const ALL: [Self; 9] = [
        Self::Id,
        Self::Email,
        Self::EmailVerified,
        Self::Name,
        Self::Picture,
        Self::CreatedAt,
        Self::Disabled,
        Self::Provider,
        Self::Subject,
    ];

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Email => "email",
            Self::EmailVerified => "email_verified",
            Self::Name => "name",
            Self::Picture => "picture",
            Self::CreatedAt => "created_at",
            Self::Disabled => "disabled",
            Self::Provider => "provider",
            Self::Subject => "subject",
        }
    }

    /// Returns the column of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl<'a> Raw<'a> {
    /// Sets a value; an empty one counts as absent.
    pub fn set(&mut self, column: Column, value: &'a str) {
        let place = match column {
            Column::Id => &mut self.id,
            Column::Email => &mut self.email,
            Column::EmailVerified => &mut self.email_verified,
            Column::Name => &mut self.name,
            Column::Picture => &mut self.picture,
            Column::CreatedAt => &mut self.created_at,
            Column::Disabled => &mut self.disabled,
            Column::Provider => &mut self.provider,
            Column::Subject => &mut self.subject,
        };
        *place = (!value.is_empty()).then_some(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[(Column, &str)]) -> Result<Person, Refused> {
        let rules = Rules { providers: vec!["idp".into()], now: 1_800_000_000 };
        let mut raw = Raw::default();
        for (column, value) in values {
            raw.set(*column, value);
        }
        Person::read(&raw, &rules)
    }

    #[test]
    fn what_a_sign_in_would_not_store_is_refused_or_cleaned() {
        use Column::{CreatedAt, Disabled, Email, EmailVerified, Id, Name, Picture, Provider, Subject};
        let long = "9".repeat(256);
        for (values, why) in [
            (&[(Name, "Ada")][..], Refused::Nobody),
            (&[(Email, "")], Refused::Nobody),
            (&[(Email, "Ada <ada@example.com>")], Refused::Email),
            (&[(Email, "ada@example.com\0")], Refused::Email),
            (&[(Email, "ada@example.com"), (EmailVerified, "yes")], Refused::Flag("email_verified")),
            (&[(Email, "ada@example.com"), (Disabled, "2")], Refused::Flag("disabled")),
            (&[(Email, "ada@example.com"), (Id, "7")], Refused::Id),
            (&[(Email, "ada@example.com"), (CreatedAt, "2024-05-31")], Refused::Time),
            (&[(Email, "ada@example.com"), (CreatedAt, "9999-12-31T23:59:59-23:59")], Refused::Time),
            (&[(Email, "ada@example.com"), (CreatedAt, "0000-01-01T00:00:00+23:59")], Refused::Ancient),
            (&[(Email, "ada@example.com"), (CreatedAt, "0001-01-01T00:00:00Z")], Refused::Ancient),
            (&[(Email, "ada@example.com"), (CreatedAt, "2027-01-15T08:01:01Z")], Refused::Future),
            (&[(Email, "ada@example.com"), (Provider, "idp")], Refused::HalfAnIdentity),
            (&[(Email, "ada@example.com"), (Subject, "1")], Refused::HalfAnIdentity),
            (&[(Provider, "other"), (Subject, "1")], Refused::Provider("idp".into())),
            (&[(Provider, "idp"), (Subject, &long)], Refused::Subject),
            (&[(Provider, "idp"), (Subject, "ü")], Refused::Subject),
            (&[(Provider, "idp"), (Subject, "a\0")], Refused::Subject),
        ] {
            assert_eq!(read(values).unwrap_err(), why, "{values:?}");
        }
        let ada = [
            (Email, "Ada@Example.com"),
            (EmailVerified, "TRUE"),
            (Name, " Ada\0\u{7} "),
            (Picture, "http://pictures.example/ada"),
            (CreatedAt, "2027-01-15T09:01:00+01:00"),
        ];
        let ada = read(&ada).unwrap();
        assert_eq!((ada.name.as_deref(), ada.picture, ada.email_verified), (Some("Ada"), None, true));
        assert_eq!(ada.created_at.unwrap().unix_timestamp(), 1_800_000_060);
        let first = read(&[(Email, "ada@example.com"), (CreatedAt, "1970-01-01T00:00:00Z")]).unwrap();
        assert_eq!(first.created_at, Some(OffsetDateTime::UNIX_EPOCH));
        let address = ada.email.unwrap();
        assert_eq!((address.folded(), address.as_given()), ("ada@example.com", "Ada@Example.com"));
        let nobody = read(&[(Provider, "idp"), (Subject, "1"), (EmailVerified, "true")]).unwrap();
        assert!(!nobody.email_verified && !nobody.identities[0].email_verified, "there is no address");
    }

    #[test]
    fn an_identity_has_the_rows_address_unless_it_has_one_of_its_own() {
        let rules = Rules { providers: vec!["idp".into()], now: 1_800_000_000 };
        let mut raw = Raw { email: Some("ada@example.com"), email_verified: Some("true"), ..Raw::default() };
        let of =
            |subject| RawIdentity { provider: Some("idp"), subject: Some(subject), ..RawIdentity::default() };
        raw.identities = vec![of("1"), RawIdentity { email: Some("old@example.com"), ..of("2") }];
        raw.identities.push(RawIdentity { email_verified: Some("false"), ..of("3") });
        let ada = Person::read(&raw, &rules).unwrap();
        let told = ada.identities.iter().map(|i| (i.email.as_ref().unwrap().as_given(), i.email_verified));
        let expected = [("ada@example.com", true), ("old@example.com", false), ("ada@example.com", false)];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        raw.identities.push(of("1"));
        assert_eq!(Person::read(&raw, &rules).unwrap_err(), Refused::TwiceAnIdentity);
    }
}
