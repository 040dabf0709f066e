//! Reads users from CSV (RFC 4180): the first line names the columns, and a row is a user or a further identity of
//! one. A row uses a bounded amount of memory, however long it is in the file; the crate `csv` has no such bound, so
//! this uses the parser beneath it.

use std::io::{self, BufRead};

use csv_core::{ReadRecordResult, Reader};

use super::batch::{Batch, Error, LONGEST};
use super::row::{Column, ImportedUser, RawRow, RowError, Rules};

const COLUMNS: usize = 2048;

pub struct Csv<R> {
    input: R,
    parser: Reader,
    rules: Rules,
    /// The column of each field; `None` if it is ignored.
    columns: Vec<Option<Column>>,
    ignored: Vec<String>,
    fields: Vec<u8>,
    ends: Vec<usize>,
    position: u64,
}

impl<R: BufRead> Csv<R> {
    pub fn open(input: R, rules: Rules) -> Result<Self, Error> {
        let mut csv = Self {
            input,
            parser: Reader::new(),
            rules,
            columns: Vec::new(),
            ignored: Vec::new(),
            fields: vec![0; LONGEST],
            ends: vec![0; COLUMNS],
            position: 0,
        };
        let unreadable = |error: RowError| Error::Header(format!("it {error}"));
        let (_, count) = csv.record()?.ok_or_else(|| Error::Header("it is missing".to_owned()))?;
        for number in 0..count.map_err(unreadable)? {
            let name = csv.field(number).map_err(unreadable)?.trim().to_owned();
            let column: Option<Column> = name.parse().ok();
            if column.is_none() {
                csv.ignored.push(name);
            } else if csv.columns.contains(&column) {
                return Err(Error::Header(format!("it names `{name}` twice")));
            }
            csv.columns.push(column);
        }
        let has = |column| csv.columns.contains(&Some(column));
        if !(has(Column::Email) || has(Column::Provider) && has(Column::Subject)) {
            let neither =
                "it names neither `email` nor `provider` and `subject` (columns are separated by commas)";
            return Err(Error::Header(neither.to_owned()));
        }
        Ok(csv)
    }

    /// Adds the next row to a batch. Returns false at the end of the file.
    pub fn read(&mut self, batch: &mut Batch) -> io::Result<bool> {
        batch.ignored.append(&mut self.ignored);
        let Some((line, fields)) = self.record()? else { return Ok(false) };
        batch.push(line, fields.and_then(|fields| self.user(fields)), self.position);
        Ok(true)
    }

    /// Reads the next record. Returns the line that it begins on and its number of fields.
    fn record(&mut self) -> io::Result<Option<(u64, Result<usize, RowError>)>> {
        if !self.skip_blank_lines()? {
            return Ok(None);
        }
        let (line, mut too_long) = (self.parser.line(), false);
        let (mut written, mut ended) = (0, 0);
        loop {
            let buffer = self.input.fill_buf()?;
            let at_end = buffer.is_empty();
            // The last line may have no line break, so one is added. In an open quoted field it ends nothing.
            let buffer = if at_end { b"\n" } else { buffer };
            let (result, read, wrote, ends) =
                self.parser.read_record(buffer, &mut self.fields[written..], &mut self.ends[ended..]);
            if !at_end {
                self.position += read as u64;
                self.input.consume(read);
            }
            (written, ended) = (written + wrote, ended + ends);
            return Ok(Some(match result {
                ReadRecordResult::InputEmpty if at_end => (line, Err(RowError::Unclosed)),
                ReadRecordResult::InputEmpty => continue,
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    // The rest of a row that is too long is read and dropped.
                    (written, ended, too_long) = (0, 0, true);
                    continue;
                }
                ReadRecordResult::Record if too_long => (line, Err(RowError::TooLong(LONGEST))),
                ReadRecordResult::Record => (line, Ok(ended)),
                ReadRecordResult::End => return Ok(None),
            }));
        }
    }

    /// Skips blank lines, which the parser would count as part of the next row. Returns true if more text follows.
    fn skip_blank_lines(&mut self) -> io::Result<bool> {
        while let Some(byte @ (b'\n' | b'\r')) = self.input.fill_buf()?.first().copied() {
            self.parser.set_line(self.parser.line() + u64::from(byte == b'\n'));
            self.position += 1;
            self.input.consume(1);
        }
        Ok(!self.input.fill_buf()?.is_empty())
    }

    fn field(&self, number: usize) -> Result<&str, RowError> {
        let begin = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        std::str::from_utf8(&self.fields[begin..self.ends[number]]).map_err(|_| RowError::NotUtf8)
    }

    fn user(&self, fields: usize) -> Result<ImportedUser, RowError> {
        if fields != self.columns.len() {
            return Err(RowError::Fields { found: fields, named: self.columns.len() });
        }
        let mut raw = RawRow::default();
        for (number, column) in self.columns.iter().enumerate() {
            if let Some(column) = column {
                raw.set(*column, self.field(number)?);
            }
        }
        ImportedUser::read(&raw, &self.rules)
    }
}
