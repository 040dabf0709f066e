//! People from JSON lines: each line is an object, and an object is one person with all that they sign in with.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Read};

use serde_json::Value;
use serde_json::error::Category;

use super::{LONGEST, Row, Rows};
use crate::domain::import::{Column, Person, Raw, RawIdentity, Refused, Rules};
use crate::domain::json::Object;

/// Members that are ignored and remembered, so that each is named once.
const REMEMBERED: usize = 100;

/// Lines of a file.
pub(super) struct Json<R> {
    input: R,
    rules: Rules,
    text: Vec<u8>,
    line: u64,
    position: u64,
    /// What is not ours, and whether it has been named.
    unknown: BTreeSet<String>,
    ignored: Vec<String>,
}

impl<R: BufRead> Json<R> {
    pub fn new(input: R, rules: Rules) -> Self {
        let (unknown, ignored) = (BTreeSet::new(), Vec::new());
        Self { input, rules, text: Vec::new(), line: 0, position: 0, unknown, ignored }
    }

    /// The next line with something on it; whether it is short enough to be kept.
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

    /// Reads up to the end of the line, or as much of it as there is room for.
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

/// A value as CSV would have it; an empty one is none.
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
