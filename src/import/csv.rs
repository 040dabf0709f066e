//! Reads users from CSV (RFC 4180), also with semicolons or tabs as some spreadsheets write it. The
//! first line names the columns; a line before it may name the separator. Each row is a user, or a
//! further identity of a user.
//!
//! A quoted value may have several lines. A stray quotation mark would take the rows behind it for
//! such a value, so if a row of several lines is invalid, only its first line is refused, and the
//! next row begins on the second one.

use std::collections::VecDeque;
use std::io::{self, BufRead};
use std::mem;

use super::batch::{Batch, Error, LONGEST};
use super::row::{Column, Field, ImportedUser, RawRow, RowError, Rules};
use crate::domain::{printable, spreadsheet};

/// The number of unknown columns that are shown, and of characters of each.
const SHOWN: usize = 100;

pub struct Csv<R> {
    lines: Lines<R>,
    rules: Rules,
    separator: u8,
    /// The meaning of each column.
    columns: Vec<Field>,
    record: Record,
}

impl<R: BufRead> Csv<R> {
    pub fn open(input: R, rules: Rules) -> Result<Self, Error> {
        let lines = Lines {
            input,
            number: 0,
            position: 0,
            again: VecDeque::new(),
        };
        let mut csv = Self {
            lines,
            rules,
            separator: b',',
            columns: Vec::new(),
            record: Record::default(),
        };
        let missing = || Error::Header("it is missing".to_owned());
        let mut first = csv.lines.next_row()?.ok_or_else(missing)?;
        if first.text.starts_with("\u{feff}".as_bytes()) {
            first.text.drain(..3);
        }
        if let Some(separator) = first.separator() {
            csv.separator = separator;
            first = csv.lines.next_row()?.ok_or_else(missing)?;
        } else {
            csv.separator = csv.rules.separator(&first.text);
        }
        csv.read_record(&first)?
            .map_err(|error| Error::Header(format!("it {error}")))?;
        csv.columns = csv.header()?;
        Ok(csv)
    }

    /// Reads the columns from the first record.
    fn header(&self) -> Result<Vec<Field>, Error> {
        let mut columns = Vec::new();
        let mut unknown = Vec::new();
        for number in 0..self.record.ends.len() {
            let name = self
                .record
                .field(number)
                .map_err(|error| Error::Header(format!("it {error}")))?;
            match self.rules.field(name) {
                Some(Field::Value(column)) if columns.contains(&Field::Value(column)) => {
                    return Err(Error::Header(format!(
                        "it names `{}` twice",
                        <&str>::from(column)
                    )));
                }
                Some(Field::Identities) | None => {
                    unknown.push(format!("`{}`", printable(name.trim(), SHOWN)));
                }
                Some(field) => columns.push(field),
            }
        }
        // The error must not show a user's data, such as the hash of a password.
        let has_names = columns.iter().any(|field| *field != Field::Unnamed);
        if !has_names && unknown.iter().any(|name| name.contains('@')) {
            return Err(Error::Header(
                "it is missing, and the first row is a user".to_owned(),
            ));
        }
        if !unknown.is_empty() {
            unknown.truncate(SHOWN);
            return Err(Error::Header(format!(
                "it names unknown columns: {} (known: {}; `--ignore NAME` leaves one out)",
                unknown.join(", "),
                Column::names(),
            )));
        }
        let has = |column| columns.contains(&Field::Value(column));
        if !(has(Column::Email) || has(Column::Provider) && has(Column::Subject)) {
            return Err(Error::Header(
                "it names neither `email` nor `provider` and `subject`".to_owned(),
            ));
        }
        Ok(columns)
    }

    /// Adds the next row to a batch. Returns false at the end of the file.
    pub fn read(&mut self, batch: &mut Batch) -> io::Result<bool> {
        let Some(first) = self.lines.next_row()? else {
            return Ok(false);
        };
        let line = first.number;
        let user = self.read_record(&first)?.and_then(|()| self.user());
        if user.is_err() {
            self.lines.put_back(&mut self.record.further);
        }
        batch.push(line, user, self.lines.position);
        Ok(true)
    }

    /// Reads the record that begins with this line, and further lines while a quoted value is open.
    fn read_record(&mut self, first: &Line) -> io::Result<Result<(), RowError>> {
        self.record.clear();
        if first.too_long {
            return Ok(Err(RowError::TooLong(LONGEST)));
        }
        let mut length = first.text.len();
        let mut read = self.record.read(&first.text, self.separator);
        while let Ok(Read::Open) = read {
            let Some(line) = self.lines.next()? else {
                return Ok(Err(RowError::Unclosed));
            };
            length += line.text.len();
            let too_long = line.too_long || length > LONGEST;
            read = if too_long {
                Err(RowError::Unclosed)
            } else {
                self.record.read(&line.text, self.separator)
            };
            self.record.further.push(line);
        }
        Ok(read.map(|_| ()))
    }

    fn user(&self) -> Result<ImportedUser, RowError> {
        let found = self.record.ends.len();
        let named = self.columns.len();
        if found != named {
            return Err(RowError::Fields { found, named });
        }
        let mut raw = RawRow::default();
        for (number, field) in self.columns.iter().enumerate() {
            match field {
                Field::Value(column) => raw.set(*column, value(self.record.field(number)?)),
                Field::Unnamed if !self.record.bytes(number).trim_ascii().is_empty() => {
                    return Err(RowError::Unnamed(number + 1));
                }
                Field::Unnamed | Field::Ignored | Field::Identities => {}
            }
        }
        ImportedUser::read(&raw, &self.rules)
    }
}

impl Rules {
    /// Returns the separator by which a header has the most known columns and, of several, the most
    /// columns.
    fn separator(&self, header: &[u8]) -> u8 {
        let is_known = |name: &[u8]| {
            let name = std::str::from_utf8(name)
                .unwrap_or_default()
                .trim()
                .trim_matches('"');
            !matches!(self.field(name), Some(Field::Unnamed) | None)
        };
        let count = |separator: u8| {
            let names = header.split(|byte| *byte == separator);
            (
                names.clone().filter(|name| is_known(name)).count(),
                names.count(),
            )
        };
        // Of equals, the last is taken.
        [b'\t', b';', b',']
            .into_iter()
            .max_by_key(|separator| count(*separator))
            .unwrap_or(b',')
    }
}

/// Returns a field's value. Databases write `\N` or `NULL` for a missing value. An export of the
/// service writes an apostrophe before a value that a spreadsheet would change.
fn value(field: &str) -> &str {
    match field {
        "\\N" | "NULL" => "",
        _ => field
            .strip_prefix('\'')
            .filter(|rest| spreadsheet::changes(rest))
            .unwrap_or(field),
    }
}

/// The fields of a row.
#[derive(Default)]
struct Record {
    text: Vec<u8>,
    /// The end of each field in the text.
    ends: Vec<usize>,
    within: Within,
    /// The lines behind the first one.
    further: Vec<Line>,
}

#[derive(Clone, Copy, Default)]
enum Within {
    #[default]
    Nothing,
    Plain,
    Quotes,
    /// Behind a quotation mark in a quoted value: its end, or the first half of a quotation mark in
    /// it.
    Quote,
}

enum Read {
    Whole,
    /// The next line belongs to it.
    Open,
}

impl Record {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.further.clear();
        self.within = Within::Nothing;
    }

    fn read(&mut self, line: &[u8], separator: u8) -> Result<Read, RowError> {
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        let content = content.strip_suffix(b"\r").unwrap_or(content);
        for &byte in content {
            self.within = match self.within {
                Within::Nothing if byte == b'"' => Within::Quotes,
                Within::Quotes if byte == b'"' => Within::Quote,
                Within::Quote if byte == b'"' => {
                    self.text.push(byte);
                    Within::Quotes
                }
                Within::Quotes => {
                    self.text.push(byte);
                    Within::Quotes
                }
                _ if byte == separator => {
                    self.ends.push(self.text.len());
                    Within::Nothing
                }
                Within::Quote => return Err(RowError::AfterQuote),
                Within::Nothing | Within::Plain => {
                    self.text.push(byte);
                    Within::Plain
                }
            };
        }
        if matches!(self.within, Within::Quotes) {
            self.text.extend(&line[content.len()..]);
            return Ok(Read::Open);
        }
        self.ends.push(self.text.len());
        Ok(Read::Whole)
    }

    fn bytes(&self, number: usize) -> &[u8] {
        let begin = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[begin..self.ends[number]]
    }

    fn field(&self, number: usize) -> Result<&str, RowError> {
        std::str::from_utf8(self.bytes(number)).map_err(|_| RowError::NotUtf8)
    }
}

/// A line with its end. The rest of a line that is too long was dropped.
struct Line {
    number: u64,
    text: Vec<u8>,
    too_long: bool,
}

impl Line {
    /// Returns the separator that a line such as `sep=;` names, which Excel reads and some programs
    /// write before the header.
    fn separator(&self) -> Option<u8> {
        let (name, rest) = self.text.split_at_checked("sep=".len())?;
        let (&separator, end) = rest.split_first()?;
        let is_line =
            name.eq_ignore_ascii_case(b"sep=") && end.iter().all(|byte| b"\r\n".contains(byte));
        let separates = separator == b'\t' || separator.is_ascii_punctuation() && separator != b'"';
        (is_line && separates).then_some(separator)
    }

    fn is_blank(&self) -> bool {
        self.text.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
    }
}

struct Lines<R> {
    input: R,
    /// The number of lines that were read.
    number: u64,
    position: u64,
    /// Lines to be read again.
    again: VecDeque<Line>,
}

impl<R: BufRead> Lines<R> {
    /// Returns the next line that is not blank.
    fn next_row(&mut self) -> io::Result<Option<Line>> {
        loop {
            match self.next()? {
                Some(line) if line.is_blank() => {}
                line => return Ok(line),
            }
        }
    }

    fn next(&mut self) -> io::Result<Option<Line>> {
        if let Some(line) = self.again.pop_front() {
            return Ok(Some(line));
        }
        let mut line = Line {
            number: self.number + 1,
            text: Vec::new(),
            too_long: false,
        };
        loop {
            let buffer = self.input.fill_buf()?;
            let ends = |byte: &u8| matches!(byte, b'\n' | b'\r');
            let end = buffer.iter().position(ends);
            let part = &buffer[..end.map_or(buffer.len(), |end| end + 1)];
            line.too_long |= line.text.len() + part.len() > LONGEST;
            if !line.too_long {
                line.text.extend_from_slice(part);
            }
            let read = part.len();
            let last = part.last().copied();
            self.input.consume(read);
            self.position += read as u64;
            if end.is_none() && read > 0 {
                continue;
            }
            if last == Some(b'\r') && self.input.fill_buf()?.first() == Some(&b'\n') {
                self.input.consume(1);
                self.position += 1;
                line.text.push(b'\n');
            }
            if line.text.is_empty() && !line.too_long {
                return Ok(None);
            }
            self.number += 1;
            return Ok(Some(line));
        }
    }

    fn put_back(&mut self, lines: &mut Vec<Line>) {
        for line in mem::take(lines).into_iter().rev() {
            self.again.push_front(line);
        }
    }
}
