//! Reads users from JSON lines: each line is an object with a user and all the user's identities.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Read};

use serde_json::Value;

use super::batch::{Batch, LONGEST};
use super::row::{Column, ImportedUser, RawRow, RowError, Rules};
use crate::domain::Object;
use crate::domain::json::{self};

/// The number of ignored members that are remembered, so that each is reported once.
const REMEMBERED: usize = 100;

pub struct JsonLines<R> {
    input: R,
    rules: Rules,
    text: Vec<u8>,
    line: u64,
    position: u64,
    /// The unknown members that have been reported.
    unknown: BTreeSet<String>,
}

impl<R: BufRead> JsonLines<R> {
    pub fn new(input: R, rules: Rules) -> Self {
        Self { input, rules, text: Vec::new(), line: 0, position: 0, unknown: BTreeSet::new() }
    }

    /// Adds the next line that is not blank to a batch. Returns false at the end of the file.
    pub fn read(&mut self, batch: &mut Batch) -> io::Result<bool> {
        loop {
            self.text.clear();
            let read = self.input.by_ref().take(LONGEST as u64 + 1).read_until(b'\n', &mut self.text)?;
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
                self.user(&mut batch.ignored)
            };
            batch.push(self.line, user, self.position);
            return Ok(true);
        }
    }

    fn user(&mut self, ignored: &mut Vec<String>) -> Result<ImportedUser, RowError> {
        let line = self.text.trim_ascii_end();
        // Some programs write a byte order mark at the beginning.
        let line = line.strip_prefix("\u{feff}".as_bytes()).filter(|_| self.line == 1).unwrap_or(line);
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
            if let Ok(column) = name.parse() {
                set(&mut raw, name, column, value)?;
            } else if name == "identities" {
                raw.identities = identities(value)?;
            } else if self.unknown.len() < REMEMBERED && self.unknown.insert(name.to_owned()) {
                ignored.push(name.to_owned());
            }
        }
        ImportedUser::read(&raw, &self.rules)
    }
}

fn identities(value: &Value) -> Result<Vec<RawRow<'_>>, RowError> {
    let wrong = || RowError::Type("identities".to_owned());
    let values = if value.is_null() { &[][..] } else { value.as_array().ok_or_else(wrong)? };
    let mut identities = Vec::with_capacity(values.len());
    for value in values {
        let mut raw = RawRow::default();
        for (name, value) in value.as_object().ok_or_else(wrong)? {
            use Column::{Email, EmailVerified, Provider, Subject};
            if let Ok(column @ (Provider | Subject | Email | EmailVerified)) = name.parse() {
                set(&mut raw, name, column, value)?;
            }
        }
        identities.push(raw);
    }
    Ok(identities)
}

fn set<'a>(raw: &mut RawRow<'a>, name: &str, column: Column, value: &'a Value) -> Result<(), RowError> {
    let flag = matches!(column, Column::EmailVerified | Column::Disabled);
    match value {
        Value::Null => {}
        Value::String(text) => raw.set(column, text),
        Value::Bool(is) if flag => raw.set(column, if *is { "true" } else { "false" }),
        _ => return Err(RowError::Type(name.to_owned())),
    }
    Ok(())
}
