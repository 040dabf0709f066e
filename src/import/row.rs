//! Imported users, as a file describes them. Their values must satisfy the same rules as a provider's claims.
//! An invalid row is refused with a reason, not corrected.

use std::collections::HashSet;

use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::domain::Email;
use crate::domain::claims::{self, LEEWAY};

pub struct ImportRow {
    pub line: u64,
    pub user: ImportedUser,
}

#[derive(Debug)]
pub struct ImportedUser {
    /// The id to keep; without one, the user gets a new id.
    pub id: Option<Uuid>,
    pub email: Option<Email>,
    pub email_verified: bool,
    pub name: Option<String>,
    pub picture: Option<String>,
    /// The time of registration; the current time if it is not known.
    pub created_at: Option<OffsetDateTime>,
    pub disabled: bool,
    /// The user's identities, each of them once.
    pub identities: Vec<Identity>,
}

#[derive(Debug)]
pub struct Identity {
    pub provider: String,
    pub subject: String,
    pub email: Option<Email>,
    pub email_verified: bool,
}

/// The columns of CSV, which are also the members of a JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
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

/// The values of a row, or of one of its further identities, as they stand in the file; `None` if empty.
#[derive(Default)]
pub struct RawRow<'a> {
    values: [Option<&'a str>; 9],
    pub identities: Vec<Self>,
}

pub struct Rules {
    pub providers: Vec<String>,
    /// The current time, in seconds since 1970-01-01T00:00:00Z.
    pub now: i64,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    #[error("is not UTF-8")]
    NotUtf8,
    #[error("is longer than {0} bytes")]
    TooLong(usize),
    #[error("has {found} fields, but the header has {named}")]
    Fields { found: usize, named: usize },
    #[error(
        "has a quotation mark that is never closed, so the rest of the file was read as part of this row"
    )]
    Unclosed,
    #[error("is not JSON (column {0})")]
    NotJson(usize),
    #[error("is not a JSON object")]
    NotAnObject,
    /// Two parsers could read two different users.
    #[error("has a duplicate member")]
    DuplicateMember,
    #[error("has more than {0} values")]
    TooManyValues(usize),
    #[error("`{0}` has the wrong type")]
    Type(String),
    #[error("`id` is not a UUID")]
    Id,
    #[error("`email` is not exactly one e-mail address")]
    Email,
    #[error("`{0}` must be true or false")]
    Flag(&'static str),
    #[error("`created_at` is not an RFC 3339 time such as 2024-05-31T12:00:00Z")]
    Time,
    #[error("`created_at` is in the future")]
    Future,
    /// Some programs write such a time if they know none.
    #[error("`created_at` is before 1970; leave it empty if it is unknown")]
    Ancient,
    #[error("`provider` or `subject` is missing")]
    HalfAnIdentity,
    #[error("`provider` is not a configured provider ({0})")]
    Provider(String),
    #[error("`subject` must be 1 to 255 visible ASCII characters")]
    Subject,
    #[error("has a duplicate identity")]
    DuplicateIdentity,
    /// No sign-in could find the user.
    #[error("has neither an `email` nor a `provider` with a `subject`")]
    Unidentified,
    #[error("its `id` belongs to a user with another e-mail address")]
    IdOfAnother,
    #[error("its `email` belongs to a user with another id")]
    EmailOfAnother,
    #[error("its identity belongs to another user")]
    IdentityOfAnother,
    #[error("the user exists and has changed since an import, so nothing is added")]
    NotOurs,
    #[error(
        "a user with its `email` exists, and an unverified address is not linked; give the rows of one user the \
         same `id`, or a verified address"
    )]
    Unproven,
}

impl ImportedUser {
    /// Reads a row by the rules of a sign-in. Returns the first problem found.
    pub fn read(raw: &RawRow<'_>, rules: &Rules) -> Result<Self, RowError> {
        let email = raw.email()?;
        let email_verified = email.is_some() && flag("email_verified", raw.get(Column::EmailVerified))?;
        let own = raw.get(Column::Provider).or(raw.get(Column::Subject)).map(|_| raw);
        let all = own.into_iter().chain(&raw.identities);
        let identities = all.map(|raw| identity(raw, email.as_ref(), email_verified, rules));
        let identities = identities.collect::<Result<Vec<_>, _>>()?;
        let mut seen = HashSet::with_capacity(identities.len());
        if !identities.iter().all(|i| seen.insert((&i.provider, &i.subject))) {
            return Err(RowError::DuplicateIdentity);
        }
        if email.is_none() && identities.is_empty() {
            return Err(RowError::Unidentified);
        }
        Ok(Self {
            id: raw.get(Column::Id).map(|id| Uuid::parse_str(id).map_err(|_| RowError::Id)).transpose()?,
            email,
            email_verified,
            name: raw.get(Column::Name).and_then(claims::display_name),
            picture: raw.get(Column::Picture).and_then(claims::picture),
            created_at: raw.get(Column::CreatedAt).map(|text| time(text, rules.now)).transpose()?,
            disabled: flag("disabled", raw.get(Column::Disabled))?,
            identities,
        })
    }
}

/// Reads a Boolean, also as PostgreSQL writes it into CSV.
fn flag(name: &'static str, text: Option<&str>) -> Result<bool, RowError> {
    let is = |text: &str, names: [&str; 2]| names.iter().any(|name| text.eq_ignore_ascii_case(name));
    match text {
        None => Ok(false),
        Some(text) if is(text, ["false", "f"]) => Ok(false),
        Some(text) if is(text, ["true", "t"]) => Ok(true),
        Some(_) => Err(RowError::Flag(name)),
    }
}

fn time(text: &str, now: i64) -> Result<OffsetDateTime, RowError> {
    let time = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| RowError::Time)?;
    // With an offset, the first and the last days of the calendar do not exist in UTC.
    let time = time.checked_to_utc().ok_or(RowError::Time)?;
    if time < OffsetDateTime::UNIX_EPOCH {
        return Err(RowError::Ancient);
    }
    let ahead = Duration::seconds(time.unix_timestamp().saturating_sub(now));
    if ahead > Duration::seconds(LEEWAY) { Err(RowError::Future) } else { Ok(time.into()) }
}

fn identity(
    raw: &RawRow<'_>,
    email: Option<&Email>,
    email_verified: bool,
    rules: &Rules,
) -> Result<Identity, RowError> {
    let (Some(provider), Some(subject)) = (raw.get(Column::Provider), raw.get(Column::Subject)) else {
        return Err(RowError::HalfAnIdentity);
    };
    if !rules.providers.iter().any(|known| known == provider) {
        return Err(RowError::Provider(rules.providers.join(", ")));
    }
    if !claims::is_subject(subject) {
        return Err(RowError::Subject);
    }
    // An identity's own e-mail address counts as verified only if its own flag says so.
    let (own, verified) = (raw.email()?, raw.get(Column::EmailVerified));
    let verified =
        if own.is_none() && verified.is_none() { email_verified } else { flag("email_verified", verified)? };
    let email = own.or_else(|| email.cloned());
    let email_verified = verified && email.is_some();
    Ok(Identity { provider: provider.to_owned(), subject: subject.to_owned(), email, email_verified })
}

impl<'a> RawRow<'a> {
    /// Sets a value; an empty one counts as absent.
    pub fn set(&mut self, column: Column, value: &'a str) {
        self.values[column as usize] = (!value.is_empty()).then_some(value);
    }

    const fn get(&self, column: Column) -> Option<&'a str> {
        self.values[column as usize]
    }

    fn email(&self) -> Result<Option<Email>, RowError> {
        self.get(Column::Email).map(|text| Email::parse(text).ok_or(RowError::Email)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[(Column, &str)]) -> Result<ImportedUser, RowError> {
        let rules = Rules { providers: vec!["idp".into()], now: 1_800_000_000 };
        let mut raw = RawRow::default();
        for (column, value) in values {
            raw.set(*column, value);
        }
        ImportedUser::read(&raw, &rules)
    }

    #[test]
    fn what_a_sign_in_would_not_store_is_refused_or_cleaned() {
        use Column::{CreatedAt, Disabled, Email, EmailVerified, Id, Name, Picture, Provider, Subject};
        let long = "9".repeat(256);
        for (values, why) in [
            (&[(Name, "Ada")][..], RowError::Unidentified),
            (&[(Email, "")], RowError::Unidentified),
            (&[(Email, "Ada <ada@example.com>")], RowError::Email),
            (&[(Email, "ada@example.com\0")], RowError::Email),
            (&[(Email, "ada@example.com"), (EmailVerified, "yes")], RowError::Flag("email_verified")),
            (&[(Email, "ada@example.com"), (Disabled, "2")], RowError::Flag("disabled")),
            (&[(Email, "ada@example.com"), (Id, "7")], RowError::Id),
            (&[(Email, "ada@example.com"), (CreatedAt, "2024-05-31")], RowError::Time),
            (&[(Email, "ada@example.com"), (CreatedAt, "9999-12-31T23:59:59-23:59")], RowError::Time),
            (&[(Email, "ada@example.com"), (CreatedAt, "0000-01-01T00:00:00+23:59")], RowError::Ancient),
            (&[(Email, "ada@example.com"), (CreatedAt, "0001-01-01T00:00:00Z")], RowError::Ancient),
            (&[(Email, "ada@example.com"), (CreatedAt, "2027-01-15T08:01:01Z")], RowError::Future),
            (&[(Email, "ada@example.com"), (Provider, "idp")], RowError::HalfAnIdentity),
            (&[(Email, "ada@example.com"), (Subject, "1")], RowError::HalfAnIdentity),
            (&[(Provider, "other"), (Subject, "1")], RowError::Provider("idp".into())),
            (&[(Provider, "idp"), (Subject, &long)], RowError::Subject),
            (&[(Provider, "idp"), (Subject, "ü")], RowError::Subject),
            (&[(Provider, "idp"), (Subject, "a\0")], RowError::Subject),
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
        let mut raw = RawRow::default();
        raw.set(Column::Email, "ada@example.com");
        raw.set(Column::EmailVerified, "true");
        let of = |subject, further: &[(Column, &'static str)]| {
            let mut identity = RawRow::default();
            for (column, value) in
                [(Column::Provider, "idp"), (Column::Subject, subject)].iter().chain(further)
            {
                identity.set(*column, value);
            }
            identity
        };
        raw.identities = vec![of("1", &[]), of("2", &[(Column::Email, "old@example.com")])];
        raw.identities.push(of("3", &[(Column::EmailVerified, "false")]));
        let ada = ImportedUser::read(&raw, &rules).unwrap();
        let told = ada.identities.iter().map(|i| (i.email.as_ref().unwrap().as_given(), i.email_verified));
        let expected = [("ada@example.com", true), ("old@example.com", false), ("ada@example.com", false)];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        raw.identities.push(of("1", &[]));
        assert_eq!(ImportedUser::read(&raw, &rules).unwrap_err(), RowError::DuplicateIdentity);
    }
}
