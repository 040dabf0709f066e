//! Reads users from JSON lines: each line is an object with a user and all the user's identities.

use std::io::{self, BufRead, Read};

use serde_json::Value;

use super::batch::{Batch, LONGEST};
use super::row::{Column, Field, ImportedUser, RawRow, RowError, Rules};
use crate::domain::json::{self};
use crate::domain::{Object, printable};

/// The number of characters of an unknown member that are shown.
const SHOWN: usize = 100;

pub struct JsonLines<R> {
    input: R,
    rules: Rules,
    text: Vec<u8>,
    line: u64,
    position: u64,
}

impl<R: BufRead> JsonLines<R> {
    pub fn new(input: R, rules: Rules) -> Self {
        Self {
            input,
            rules,
            text: Vec::new(),
            line: 0,
            position: 0,
        }
    }

    /// Adds the next line that is not blank to a batch. Returns false at the end of the file.
    pub fn read(&mut self, batch: &mut Batch) -> io::Result<bool> {
        loop {
            self.text.clear();
            let read = self
                .input
                .by_ref()
                .take(LONGEST as u64 + 1)
                .read_until(b'\n', &mut self.text)?;
            if read == 0 {
                return Ok(false);
            }
            self.line += 1;
            self.position += read as u64;
            let user = if read > LONGEST && !self.text.ends_with(b"\n") {
                self.position += self.input.skip_until(b'\n')? as u64;
                Err(RowError::TooLong(LONGEST))
            } else if self.text.trim_ascii().is_empty() {
                continue;
            } else {
                self.user()
            };
            batch.push(self.line, user, self.position);
            return Ok(true);
        }
    }

    fn user(&self) -> Result<ImportedUser, RowError> {
        let line = self.text.trim_ascii_end();
        // Some programs write a byte order mark at the beginning.
        let line = line
            .strip_prefix("\u{feff}".as_bytes())
            .filter(|_| self.line == 1)
            .unwrap_or(line);
        if std::str::from_utf8(line).is_err() {
            return Err(RowError::NotUtf8);
        }
        let object = Object::document(line).map_err(|error| match error {
            json::Error::DuplicateMember => RowError::DuplicateMember,
            json::Error::NotAnObject => RowError::NotAnObject,
            json::Error::TooManyValues(limit) => RowError::TooManyValues(limit),
            json::Error::Syntax(error) => RowError::NotJson(error.column()),
        })?;
        let mut raw = RawRow::default();
        for (name, value) in object.members() {
            match self.rules.field(name) {
                Some(Field::Value(column)) => set(&mut raw, name, column, value)?,
                Some(Field::Identities) => raw.identities = self.identities(value)?,
                Some(Field::Ignored) => {}
                Some(Field::Unnamed) | None => return Err(unknown(name)),
            }
        }
        ImportedUser::read(&raw, &self.rules)
    }

    fn identities<'a>(&self, value: &'a Value) -> Result<Vec<RawRow<'a>>, RowError> {
        let wrong = || RowError::Type("identities".to_owned());
        let values = if value.is_null() {
            &[][..]
        } else {
            value.as_array().ok_or_else(wrong)?
        };
        let mut identities = Vec::with_capacity(values.len());
        for value in values {
            use Column::{Email, EmailVerified, Provider, Subject};
            let mut raw = RawRow::default();
            for (name, value) in value.as_object().ok_or_else(wrong)? {
                match self.rules.field(name) {
                    Some(Field::Value(column @ (Provider | Subject | Email | EmailVerified))) => {
                        set(&mut raw, name, column, value)?;
                    }
                    Some(Field::Ignored) => {}
                    _ => return Err(unknown(name)),
                }
            }
            identities.push(raw);
        }
        Ok(identities)
    }
}

fn unknown(name: &str) -> RowError {
    RowError::Member(printable(name, SHOWN))
}

fn set<'a>(
    raw: &mut RawRow<'a>,
    name: &str,
    column: Column,
    value: &'a Value,
) -> Result<(), RowError> {
    let flag = matches!(column, Column::EmailVerified | Column::Disabled);
    match value {
        Value::Null => {}
        // Two spellings of one name.
        _ if raw.has(column) => return Err(RowError::DuplicateMember),
        Value::String(text) => raw.set(column, text),
        Value::Bool(is) if flag => raw.set(column, if *is { "true" } else { "false" }),
        _ => return Err(RowError::Type(name.to_owned())),
    }
    Ok(())
}
