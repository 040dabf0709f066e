//! Imported users, as a file describes them. Their values must satisfy the same rules as a
//! provider's claims. An invalid row is refused with a reason, not corrected.

use std::collections::HashSet;

use strum::VariantArray;
use time::format_description::well_known::{Rfc2822, Rfc3339};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::domain::Email;
use crate::domain::claims::{self, LEEWAY};
use crate::domain::spreadsheet::is_rounded;
use crate::domain::text::is_ignorable;
use crate::domain::user::MAX_IDENTITIES;

/// The least number of milliseconds; a smaller one counts seconds. Both mean a day between 1973 and 5138.
const LEAST_MILLISECONDS: i64 = 100_000_000_000;

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
    /// The subject that an identity of an existing user had until now: the user gets `identities`
    /// beside it.
    pub old_subject: Option<String>,
    /// The providers of the identities that are left out, because no provider of that name is
    /// configured.
    pub left_out: Vec<String>,
}

#[derive(Debug)]
pub struct Identity {
    pub provider: String,
    pub subject: String,
    pub email: Option<Email>,
}

/// The columns of CSV, which are also the members of a JSON object.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum Column {
    Id,
    Email,
    EmailVerified,
    Name,
    Picture,
    CreatedAt,
    Disabled,
    Phone,
    Provider,
    Subject,
    NewSubject,
}

/// The meaning of a column of CSV, or of a member of a JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Value(Column),
    Identities,
    /// The operator has named it to be ignored.
    Ignored,
    /// A column without a name, as spreadsheets write them. It must be empty.
    Unnamed,
}

/// The values of a row, or of one of its further identities, as they stand in the file; `None` if
/// empty.
#[derive(Default)]
pub struct RawRow<'a> {
    values: [Option<&'a str>; Column::VARIANTS.len()],
    pub identities: Vec<Self>,
}

pub struct Rules {
    pub providers: Vec<String>,
    /// The columns to be ignored, as [`folded`].
    ignored: Vec<String>,
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
    #[error("has a value in column {0}, which has no name in the header")]
    Unnamed(usize),
    #[error("has a quotation mark that is never closed")]
    Unclosed,
    #[error("has text between a closing quotation mark and the end of its field")]
    AfterQuote,
    #[error("has the unknown member `{0}`; `--ignore` leaves it out")]
    Member(String),
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
    #[error("`created_at` is not a time such as 2024-05-31T12:00:00Z")]
    Time,
    #[error("`created_at` is in the future")]
    Future,
    /// Some programs write such a time if they know none.
    #[error("`created_at` is before 1970; leave it empty if it is unknown")]
    Ancient,
    #[error("`provider` or `subject` is missing")]
    HalfAnIdentity,
    #[error(
        "`subject` must be 1 to 255 ASCII characters, without control characters, and not only blanks"
    )]
    Subject,
    /// No account has such a subject, and several users of one file may seem to have the same.
    #[error("`subject` was rounded by a spreadsheet; import the file as it was before that")]
    Rounded,
    #[error("has a duplicate identity")]
    DuplicateIdentity,
    #[error("its user would have more than {MAX_IDENTITIES} identities")]
    TooManyIdentities,
    #[error("`new_subject` needs a `provider` and a `subject`, and no other value beside them")]
    NewSubject,
    /// No sign-in could find the user.
    #[error("has neither an `email` nor a `provider` with a `subject`")]
    Unidentified,
    #[error("its user, or its identity, was deleted here")]
    Deleted,
    #[error("its `id` is that of a user who was merged into another one here")]
    Merged,
    #[error("no user has its `subject`")]
    NoUser,
    #[error(
        "an identity of the user is suspended, because its provider reported it; staff release it first"
    )]
    Suspended,
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

impl Column {
    /// Returns the names of all columns, for an error message.
    pub fn names() -> String {
        Self::VARIANTS
            .iter()
            .map(<&str>::from)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl Rules {
    pub fn new(providers: Vec<String>, ignored: &[String], now: i64) -> Self {
        Self {
            providers,
            ignored: ignored.iter().map(|name| folded(name)).collect(),
            now,
        }
    }

    /// Returns the meaning of a column or member; `None` if its name is unknown.
    pub fn field(&self, name: &str) -> Option<Field> {
        // The usual spelling first: JSON names each member in each line.
        if let Ok(column) = name.parse() {
            return Some(Field::Value(column));
        }
        let name = folded(name);
        let is = |column: &&Column| folded((*column).into()) == name;
        match name.as_str() {
            "" => Some(Field::Unnamed),
            "identities" => Some(Field::Identities),
            _ if self.ignored.contains(&name) => Some(Field::Ignored),
            _ => Column::VARIANTS
                .iter()
                .find(is)
                .map(|column| Field::Value(*column)),
        }
    }
}

/// Returns a column's name without the differences between programs: case, blanks, hyphens,
/// underscores and invisible characters such as a byte order mark. Commas separate the names that
/// `--ignore` gets.
fn folded(name: &str) -> String {
    let counts =
        |c: &char| !c.is_whitespace() && !matches!(c, '-' | '_' | ',') && !is_ignorable(*c);
    name.chars()
        .filter(counts)
        .flat_map(char::to_lowercase)
        .collect()
}

impl ImportedUser {
    /// Reads a row by the rules of a sign-in. Returns the first problem found.
    pub fn read(raw: &RawRow<'_>, rules: &Rules) -> Result<Self, RowError> {
        let old_subject = raw.old_subject()?;
        let email = raw.email()?;
        let email_verified =
            email.is_some() && flag("email_verified", raw.get(Column::EmailVerified))?;
        let own = raw
            .get(Column::Provider)
            .or(raw.get(Column::Subject))
            .map(|_| raw);
        let mut identities = Vec::new();
        let mut left_out = Vec::new();
        for raw in own.into_iter().chain(&raw.identities) {
            match identity(raw, email.as_ref(), rules)? {
                Ok(identity) => identities.push(identity),
                Err(provider) => left_out.push(provider),
            }
        }
        let mut seen = HashSet::with_capacity(identities.len());
        let old = old_subject.map(|subject| (identities.first().map(|it| &*it.provider), subject));
        let mut all = identities
            .iter()
            .map(|it| (Some(&*it.provider), &*it.subject))
            .chain(old);
        if !all.all(|identity| seen.insert(identity)) {
            return Err(RowError::DuplicateIdentity);
        }
        if identities.len() > usize::from(MAX_IDENTITIES) {
            return Err(RowError::TooManyIdentities);
        }
        if email.is_none()
            && identities.is_empty()
            && left_out.is_empty()
            && !raw.has(Column::Phone)
        {
            return Err(RowError::Unidentified);
        }
        Ok(Self {
            id: raw
                .get(Column::Id)
                .map(|id| Uuid::parse_str(id).map_err(|_| RowError::Id))
                .transpose()?,
            email,
            email_verified,
            name: raw.get(Column::Name).and_then(claims::display_name),
            picture: raw.get(Column::Picture).and_then(claims::picture),
            created_at: raw
                .get(Column::CreatedAt)
                .map(|text| time(text, rules.now))
                .transpose()?,
            disabled: flag("disabled", raw.get(Column::Disabled))?,
            old_subject: old_subject.map(str::to_owned),
            identities,
            left_out,
        })
    }

    /// Returns true if no sign-in could find the user, who has a phone number alone, or identities
    /// of other providers.
    pub const fn is_unreachable(&self) -> bool {
        self.email.is_none() && self.identities.is_empty()
    }
}

/// Reads a Boolean, also as PostgreSQL (`t`), spreadsheets (`TRUE`) and other databases (`1`) write
/// it.
fn flag(name: &'static str, text: Option<&str>) -> Result<bool, RowError> {
    let is =
        |text: &str, names: [&str; 3]| names.iter().any(|name| text.eq_ignore_ascii_case(name));
    match text {
        None => Ok(false),
        Some(text) if is(text, ["false", "f", "0"]) => Ok(false),
        Some(text) if is(text, ["true", "t", "1"]) => Ok(true),
        Some(_) => Err(RowError::Flag(name)),
    }
}

/// Reads a time in the form of RFC 3339, PostgreSQL, or Firebase: as `2024-01-02 03:04:05.678+00`,
/// milliseconds or seconds since 1970, or `Tue, 02 Jan 2024 03:04:05 GMT` (RFC 2822).
fn time(text: &str, now: i64) -> Result<OffsetDateTime, RowError> {
    let time = if let Ok(number) = text.parse::<i64>() {
        let milliseconds = if number < LEAST_MILLISECONDS {
            i128::from(number) * 1000
        } else {
            i128::from(number)
        };
        OffsetDateTime::from_unix_timestamp_nanos(milliseconds * 1_000_000)
            .map_err(|_| RowError::Time)?
    } else {
        let written = OffsetDateTime::parse(&rfc3339(text), &Rfc3339);
        written
            .or_else(|_| OffsetDateTime::parse(text, &Rfc2822))
            .map_err(|_| RowError::Time)?
    };
    // With an offset, the first and the last days of the calendar do not exist in UTC.
    let time = time.checked_to_utc().ok_or(RowError::Time)?;
    if time < OffsetDateTime::UNIX_EPOCH {
        return Err(RowError::Ancient);
    }
    let ahead = Duration::seconds(time.unix_timestamp().saturating_sub(now));
    if ahead > Duration::seconds(LEEWAY) {
        Err(RowError::Future)
    } else {
        Ok(time.into())
    }
}

/// Returns a time of PostgreSQL, or of ISO 8601, in the form of RFC 3339. Without a zone, it is
/// UTC.
fn rfc3339(text: &str) -> String {
    let text = text.strip_suffix(" UTC").unwrap_or(text);
    let after_date = |at: &usize| *at > "2024-01-02".len();
    let zone = text
        .rfind(['+', '-', 'Z', 'z'])
        .filter(after_date)
        .unwrap_or(text.len());
    let (time, zone) = text.split_at(zone);
    let zone = match zone.len() {
        0 => "Z".to_owned(),
        3 => format!("{zone}:00"),
        // Also `+0000`.
        5 if zone.is_ascii() && !zone.contains(':') => format!("{}:{}", &zone[..3], &zone[3..]),
        _ => zone.to_owned(),
    };
    format!("{}{zone}", time.replacen(' ', "T", 1))
}

/// Reads an identity. Returns the provider's name as an `Err` if no such provider is configured.
fn identity(
    raw: &RawRow<'_>,
    email: Option<&Email>,
    rules: &Rules,
) -> Result<Result<Identity, String>, RowError> {
    let provider = raw.get(Column::Provider).ok_or(RowError::HalfAnIdentity)?;
    let Some(provider) = rules
        .providers
        .iter()
        .find(|known| known.eq_ignore_ascii_case(provider))
    else {
        return Ok(Err(provider.to_owned()));
    };
    let subject = raw
        .get(Column::NewSubject)
        .or(raw.get(Column::Subject))
        .ok_or(RowError::HalfAnIdentity)?;
    if !claims::is_subject(subject) {
        return Err(RowError::Subject);
    }
    if is_rounded(subject) {
        return Err(RowError::Rounded);
    }
    let email = raw.email()?.or_else(|| email.cloned());
    // Files of other systems have the flag for identities, too. No token has proven the address
    // here, so only the user's own flag counts.
    flag("email_verified", raw.get(Column::EmailVerified))?;
    Ok(Ok(Identity {
        provider: provider.clone(),
        subject: subject.to_owned(),
        email,
    }))
}

impl<'a> RawRow<'a> {
    /// Sets a value; an empty one counts as absent. Only subjects are compared byte by byte, so
    /// blanks around other values do not count.
    pub fn set(&mut self, column: Column, value: &'a str) {
        let exact = matches!(column, Column::Subject | Column::NewSubject);
        let value = if exact { value } else { value.trim() };
        self.values[column as usize] = (!value.is_empty()).then_some(value);
    }

    /// Returns the subject that `new_subject` replaces.
    fn old_subject(&self) -> Result<Option<&'a str>, RowError> {
        if !self.has(Column::NewSubject) {
            return Ok(None);
        }
        let needed = |column: &&Column| {
            matches!(
                column,
                Column::Provider | Column::Subject | Column::NewSubject
            ) == self.has(**column)
        };
        let exactly = Column::VARIANTS.iter().filter(needed).count() == Column::VARIANTS.len();
        let alone = exactly && self.identities.is_empty();
        if alone {
            Ok(self.get(Column::Subject))
        } else {
            Err(RowError::NewSubject)
        }
    }

    pub const fn has(&self, column: Column) -> bool {
        self.values[column as usize].is_some()
    }

    const fn get(&self, column: Column) -> Option<&'a str> {
        self.values[column as usize]
    }

    fn email(&self) -> Result<Option<Email>, RowError> {
        self.get(Column::Email)
            .map(|text| Email::parse(text).ok_or(RowError::Email))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[(Column, &str)]) -> Result<ImportedUser, RowError> {
        let rules = Rules::new(vec!["idp".into()], &[], 1_800_000_000);
        let mut raw = RawRow::default();
        for (column, value) in values {
            raw.set(*column, value);
        }
        ImportedUser::read(&raw, &rules)
    }

    #[test]
    fn what_a_sign_in_would_not_store_is_refused_or_cleaned() {
        use Column::{
            CreatedAt, Disabled, Email, EmailVerified, Id, Name, NewSubject, Picture, Provider,
            Subject,
        };
        let long = "9".repeat(256);
        for (values, why) in [
            (&[(Name, "Ada")][..], RowError::Unidentified),
            (&[(Email, "")], RowError::Unidentified),
            (&[(Email, "Ada <ada@example.com>")], RowError::Email),
            (&[(Email, "ada@example.com\0")], RowError::Email),
            (
                &[(Email, "ada@example.com"), (EmailVerified, "yes")],
                RowError::Flag("email_verified"),
            ),
            (
                &[(Email, "ada@example.com"), (Disabled, "2")],
                RowError::Flag("disabled"),
            ),
            (&[(Email, "ada@example.com"), (Id, "7")], RowError::Id),
            (
                &[(Email, "ada@example.com"), (CreatedAt, "2024-05-31")],
                RowError::Time,
            ),
            (
                &[
                    (Email, "ada@example.com"),
                    (CreatedAt, "9999-12-31T23:59:59-23:59"),
                ],
                RowError::Time,
            ),
            (
                &[
                    (Email, "ada@example.com"),
                    (CreatedAt, "0000-01-01T00:00:00+23:59"),
                ],
                RowError::Ancient,
            ),
            (
                &[
                    (Email, "ada@example.com"),
                    (CreatedAt, "0001-01-01T00:00:00Z"),
                ],
                RowError::Ancient,
            ),
            (
                &[
                    (Email, "ada@example.com"),
                    (CreatedAt, "2027-01-15T08:01:01Z"),
                ],
                RowError::Future,
            ),
            (
                &[(Email, "ada@example.com"), (Provider, "idp")],
                RowError::HalfAnIdentity,
            ),
            (
                &[(Email, "ada@example.com"), (Subject, "1")],
                RowError::HalfAnIdentity,
            ),
            (
                &[(Provider, "idp"), (NewSubject, "2")],
                RowError::NewSubject,
            ),
            (
                &[(Provider, "idp"), (Subject, "1"), (NewSubject, "1")],
                RowError::DuplicateIdentity,
            ),
            (
                &[
                    (Provider, "idp"),
                    (Subject, "1"),
                    (NewSubject, "2"),
                    (Name, "Ada"),
                ],
                RowError::NewSubject,
            ),
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
        assert_eq!(
            (ada.name.as_deref(), ada.picture, ada.email_verified),
            (Some("Ada"), None, true)
        );
        assert_eq!(ada.created_at.unwrap().unix_timestamp(), 1_800_000_060);
        let first = read(&[
            (Email, "ada@example.com"),
            (CreatedAt, "1970-01-01T00:00:00Z"),
        ])
        .unwrap();
        assert_eq!(first.created_at, Some(OffsetDateTime::UNIX_EPOCH));
        let address = ada.email.unwrap();
        assert_eq!(
            (address.folded(), address.as_given()),
            ("ada@example.com", "Ada@Example.com")
        );
        let nobody = read(&[(Provider, "idp"), (Subject, "1"), (EmailVerified, "true")]).unwrap();
        assert!(!nobody.email_verified, "there is no address");
    }

    #[test]
    fn an_identity_of_an_unknown_provider_is_left_out() {
        use Column::{Email, EmailVerified, Phone, Provider, Subject};
        let ada = read(&[
            (Email, "ada@example.com"),
            (Provider, "github"),
            (Subject, "ü"),
        ])
        .unwrap();
        assert_eq!(
            (ada.identities.len(), ada.left_out.as_slice()),
            (0, ["github".to_owned()].as_slice())
        );
        assert!(!ada.is_unreachable());
        let github = read(&[
            (Provider, "github"),
            (Subject, "1"),
            (EmailVerified, "true"),
        ])
        .unwrap();
        assert!(github.is_unreachable());
        let phone = read(&[(Phone, "+4930123")]).unwrap();
        assert!(phone.is_unreachable() && phone.left_out.is_empty());
    }

    #[test]
    fn a_time_is_read_as_other_systems_print_it() {
        let now = 1_800_000_000;
        for (text, seconds, milliseconds) in [
            ("2024-01-02T03:04:05Z", 1_704_164_645, 0),
            ("2024-01-02 03:04:05+00", 1_704_164_645, 0),
            ("2024-01-02 03:04:05.678901+00", 1_704_164_645, 678),
            ("2024-01-02 08:34:05+05:30", 1_704_164_645, 0),
            ("2024-01-01 23:34:05.6-03:30", 1_704_164_645, 600),
            ("2024-01-02 03:04:05", 1_704_164_645, 0),
            ("2024-01-02 03:04:05 UTC", 1_704_164_645, 0),
            ("1704164645678", 1_704_164_645, 678),
            ("1704164645", 1_704_164_645, 0),
            ("0", 0, 0),
            ("2024-01-02T03:04:05+0000", 1_704_164_645, 0),
            ("2024-01-02T08:34:05.678+0530", 1_704_164_645, 678),
            ("Tue, 02 Jan 2024 03:04:05 GMT", 1_704_164_645, 0),
            ("Tue, 2 Jan 2024 05:04:05 +0200", 1_704_164_645, 0),
        ] {
            let read = time(text, now).map(|time| (time.unix_timestamp(), time.millisecond()));
            assert_eq!(read, Ok((seconds, milliseconds)), "{text}");
        }
        for (text, why) in [
            ("2024-01-02", RowError::Time),
            ("02.01.2024 03:04:05", RowError::Time),
            ("infinity", RowError::Time),
            ("2024-01-02 03:04:05+é", RowError::Time),
            ("2024-13-02 03:04:05+00", RowError::Time),
            ("9223372036854775807", RowError::Time),
            ("-1", RowError::Ancient),
            ("0044-03-15 12:00:00+00:53:28 BC", RowError::Time),
            ("1999999999999", RowError::Future),
        ] {
            assert_eq!(time(text, now), Err(why), "{text}");
        }
    }

    #[test]
    fn a_columns_name_is_read_in_every_spelling() {
        let rules = Rules::new(Vec::new(), &["Shoe Size".to_owned()], 0);
        for name in [
            "created_at",
            "createdAt",
            "CREATED AT",
            " created-at ",
            "\u{feff}Created\u{a0}At",
        ] {
            assert_eq!(
                rules.field(name),
                Some(Field::Value(Column::CreatedAt)),
                "{name}"
            );
        }
        assert_eq!(rules.field("shoe_size"), Some(Field::Ignored));
        assert_eq!(rules.field("Shoe, Size"), Some(Field::Ignored));
        assert_eq!(rules.field("Identities"), Some(Field::Identities));
        assert_eq!(
            (rules.field("\u{feff}"), rules.field("mail")),
            (Some(Field::Unnamed), None)
        );
    }

    #[test]
    fn an_identity_without_an_address_gets_the_rows_address() {
        let rules = Rules::new(vec!["idp".into()], &[], 1_800_000_000);
        let mut raw = RawRow::default();
        raw.set(Column::Email, "ada@example.com");
        raw.set(Column::EmailVerified, "true");
        let of = |subject, further: &[(Column, &'static str)]| {
            let mut identity = RawRow::default();
            for (column, value) in [(Column::Provider, "idp"), (Column::Subject, subject)]
                .iter()
                .chain(further)
            {
                identity.set(*column, value);
            }
            identity
        };
        raw.identities = vec![of("1", &[]), of("2", &[(Column::Email, "old@example.com")])];
        raw.identities
            .push(of("3", &[(Column::EmailVerified, "false")]));
        let ada = ImportedUser::read(&raw, &rules).unwrap();
        let told = ada
            .identities
            .iter()
            .map(|i| i.email.as_ref().unwrap().as_given());
        assert_eq!(
            told.collect::<Vec<_>>(),
            ["ada@example.com", "old@example.com", "ada@example.com"]
        );
        raw.identities.push(of("1", &[]));
        assert_eq!(
            ImportedUser::read(&raw, &rules).unwrap_err(),
            RowError::DuplicateIdentity
        );
    }
}
