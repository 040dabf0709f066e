//! Reads users from CSV (RFC 4180): the first line names the columns, and a row is a user or a further identity of
//! one. A row uses a bounded amount of memory, however long it is in the file.

use std::io::{self, BufRead};
use std::ops::Range;

use csv_core::{ReadRecordResult, Reader};

use super::row::{Column, Person, Raw, Refused, Rules};
use super::{Error, LONGEST, Row, Rows};

/// The largest number of columns.
const COLUMNS: usize = 2048;

/// The rows of a CSV file.
pub(super) struct Csv<R> {
    input: R,
    reader: Reader,
    rules: Rules,
    /// The column of each field; `None` if it is ignored.
    columns: Vec<Option<Column>>,
    ignored: Vec<String>,
    fields: Vec<u8>,
    ends: Vec<usize>,
    line: u64,
    position: u64,
}

impl<R: BufRead> Csv<R> {
    /// Reads the header.
    pub fn open(input: R, rules: Rules) -> Result<Self, Error> {
        let mut csv = Self {
            input,
            reader: Reader::new(),
            rules,
            columns: Vec::new(),
            ignored: Vec::new(),
            fields: vec![0; LONGEST],
            ends: vec![0; COLUMNS],
            line: 1,
            position: 0,
        };
        let header = csv.record()?.ok_or_else(|| Error::header("there is none"))?;
        let names = match header.1 {
            Ok(count) => (0..count).map(|number| csv.field(number)).collect::<Result<Vec<_>, _>>(),
            Err(refused) => Err(refused),
        };
        let names = names.map_err(|refused| Error::Header(format!("it {refused}")))?;
        let names: Vec<String> = names.into_iter().map(|name| name.trim().to_owned()).collect();
        for name in names {
            let column = Column::from_name(&name);
            if column.is_some() && csv.columns.contains(&column) {
                return Err(Error::Header(format!("it names `{name}` twice")));
            }
            if column.is_none() {
                csv.ignored.push(name);
            }
            csv.columns.push(column);
        }
        let has = |column| csv.columns.contains(&Some(column));
        let whom = has(Column::Email) || (has(Column::Provider) && has(Column::Subject));
        if !whom {
            return Err(Error::header(
                "it names neither `email` nor `provider` and `subject` (columns are separated by commas)",
            ));
        }
        Ok(csv)
    }

    /// Reads the next record. Returns the line that it begins on and its number of fields.
    fn record(&mut self) -> io::Result<Option<(u64, Result<usize, Refused>)>> {
        if !self.skip_blank()? {
            return Ok(None);
        }
        let (begins, mut long) = (self.line, false);
        let (mut written, mut ended) = (0, 0);
        loop {
            let buffer = self.input.fill_buf()?;
            let at_end = buffer.is_empty();
            // The last line may have no line break, so one is added. In an open quoted field it ends nothing.
            let buffer = if at_end { b"\n" } else { buffer };
            let (result, read, wrote, ends) =
                self.reader.read_record(buffer, &mut self.fields[written..], &mut self.ends[ended..]);
            if !at_end {
                self.line += newlines(&buffer[..read]);
                self.position += read as u64;
                self.input.consume(read);
            }
            (written, ended) = (written + wrote, ended + ends);
            match result {
                ReadRecordResult::InputEmpty if at_end => return Ok(Some((begins, Err(Refused::Unclosed)))),
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    // The rest of a row that is too long is read and dropped.
                    (written, ended, long) = (0, 0, true);
                }
                ReadRecordResult::Record if long => {
                    return Ok(Some((begins, Err(Refused::TooLong(LONGEST)))));
                }
                ReadRecordResult::Record => return Ok(Some((begins, Ok(ended)))),
                ReadRecordResult::End => return Ok(None),
            }
        }
    }

    /// Skips blank lines. Returns true if more text follows.
    fn skip_blank(&mut self) -> io::Result<bool> {
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(false);
            }
            let blank = buffer.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
            let more = blank < buffer.len();
            self.line += newlines(&buffer[..blank]);
            self.position += blank as u64;
            self.input.consume(blank);
            if more {
                return Ok(true);
            }
        }
    }

    fn range(&self, number: usize) -> Range<usize> {
        let begin = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        begin..self.ends[number]
    }

    fn field(&self, number: usize) -> Result<&str, Refused> {
        std::str::from_utf8(&self.fields[self.range(number)]).map_err(|_| Refused::NotUtf8)
    }

    fn person(&self, fields: usize) -> Result<Person, Refused> {
        let named = self.columns.len();
        if fields != named {
            return Err(Refused::Fields { found: fields, named });
        }
        let mut raw = Raw::default();
        for (number, column) in self.columns.iter().enumerate() {
            if let Some(column) = column {
                raw.set(*column, self.field(number)?);
            }
        }
        Person::read(&raw, &self.rules)
    }
}

impl<R: BufRead> Rows for Csv<R> {
    fn next(&mut self) -> io::Result<Option<Row>> {
        let Some((line, fields)) = self.record()? else { return Ok(None) };
        let person = fields.and_then(|fields| self.person(fields));
        Ok(Some(Row { line, person, position: self.position }))
    }

    fn ignored(&mut self) -> Vec<String> {
        std::mem::take(&mut self.ignored)
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}
