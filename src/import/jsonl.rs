//! Reads users from JSON lines: each line is an object with a user and all the user's identities.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Read};

use serde_json::Value;
use serde_json::error::Category;

use super::row::{Column, Person, Raw, RawIdentity, Refused, Rules};
use super::{LONGEST, Row, Rows};
use crate::domain::json::Object;

/// The number of ignored members that are remembered, so that each is reported once.
const REMEMBERED: usize = 100;

/// The lines of a file.
pub(super) struct Json<R> {
    input: R,
    rules: Rules,
    text: Vec<u8>,
    line: u64,
    position: u64,
    /// The unknown members that have been reported.
    unknown: BTreeSet<String>,
    ignored: Vec<String>,
}

impl<R: BufRead> Json<R> {
    pub fn new(input: R, rules: Rules) -> Self {
        let (unknown, ignored) = (BTreeSet::new(), Vec::new());
        Self { input, rules, text: Vec::new(), line: 0, position: 0, unknown, ignored }
    }

    /// Reads the next line that is not blank. Returns false with it if it is too long.
    fn next_line(&mut self) -> io::Result<Option<bool>> {
        loop {
            if !self.read_on()? {
                return Ok(None);
            }
            self.line += 1;
            let mut short = true;
            while self.text.len() > LONGEST && !self.text.ends_with(b"\n") {
                short = false;
                if !self.read_on()? {
                    break;
                }
            }
            if !short || !self.text.trim_ascii().is_empty() {
                return Ok(Some(short));
            }
        }
    }

    /// Reads to the end of the line, or as much as the buffer may hold.
    fn read_on(&mut self) -> io::Result<bool> {
        self.text.clear();
        let read = self.input.by_ref().take(LONGEST as u64 + 1).read_until(b'\n', &mut self.text)?;
        self.position += read as u64;
        Ok(read > 0)
    }

    fn person(&mut self) -> Result<Person, Refused> {
        let line = self.text.trim_ascii_end();
        if std::str::from_utf8(line).is_err() {
            return Err(Refused::NotUtf8);
        }
        let object = Object::parse(line).map_err(|error| match error.classify() {
            Category::Data if error.to_string().starts_with("duplicate member") => Refused::TwiceAMember,
            Category::Data => Refused::NotAnObject,
            _ => Refused::NotJson(error.column()),
        })?;
        for name in object.names() {
            let known = name == "identities" || Column::from_name(name).is_some();
            if !known && self.unknown.len() < REMEMBERED && self.unknown.insert(name.to_owned()) {
                self.ignored.push(name.to_owned());
            }
        }
        let mut raw = Raw::default();
        for column in Column::ALL {
            if let Some(value) = text(object.get(column.name()), column.name())? {
                raw.set(column, value);
            }
        }
        let several = match object.get("identities") {
            None => &[][..],
            Some(Value::Array(several)) => several,
            Some(_) => return Err(Refused::Type("identities")),
        };
        for one in several {
            let member = |name| text(one.get(name).filter(|value| !value.is_null()), name);
            if !one.is_object() {
                return Err(Refused::Type("identities"));
            }
            raw.identities.push(RawIdentity {
                provider: member("provider")?,
                subject: member("subject")?,
                email: member("email")?,
                email_verified: member("email_verified")?,
            });
        }
        Person::read(&raw, &self.rules)
    }
}

/// Returns a value as it would stand in CSV; an empty one counts as absent.
fn text<'a>(value: Option<&'a Value>, name: &'static str) -> Result<Option<&'a str>, Refused> {
    let flag = matches!(name, "email_verified" | "disabled");
    match value {
        None => Ok(None),
        Some(Value::String(text)) => Ok((!text.is_empty()).then_some(text)),
        Some(Value::Bool(is)) if flag => Ok(Some(if *is { "true" } else { "false" })),
        Some(_) => Err(Refused::Type(name)),
    }
}

impl<R: BufRead> Rows for Json<R> {
    fn next(&mut self) -> io::Result<Option<Row>> {
        let Some(short) = self.next_line()? else { return Ok(None) };
        let person = if short { self.person() } else { Err(Refused::TooLong(LONGEST)) };
        Ok(Some(Row { line: self.line, person, position: self.position }))
    }

    fn ignored(&mut self) -> Vec<String> {
        std::mem::take(&mut self.ignored)
    }
}
