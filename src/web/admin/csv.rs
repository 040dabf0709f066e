//! Files of rows, written as they are read: any number of them in the same memory (RFC 4180).

use ::csv::{QuoteStyle, Writer, WriterBuilder};
use rocket::futures::stream::{BoxStream, StreamExt, once};
use rocket::http::{ContentType, Header};
use rocket::request::Request;
use rocket::response::stream::ByteStream;
use rocket::response::{self, Responder};

use crate::store;

/// What stands at the end of a file whose rows could not all be read. HTTP has no way to take back the
/// status, so the file says it.
const INCOMPLETE: &str = "INCOMPLETE: the database failed; export again";

/// A file on its way.
pub(super) struct Csv {
    name: String,
    body: BoxStream<'static, Vec<u8>>,
}

/// Some rows, each as its cells.
pub(super) type Rows = Vec<Vec<String>>;

impl Csv {
    /// A file of that name with a heading, and rows as they come.
    pub(super) fn new(
        name: &str,
        heading: &[&str],
        rows: BoxStream<'static, Result<Rows, store::Error>>,
    ) -> Self {
        let heading = text(&[heading.iter().map(|cell| (*cell).to_owned()).collect()]);
        let rows = rows.map(|rows| match rows {
            Ok(rows) => text(&rows),
            Err(error) => {
                tracing::warn!(%error, "an export was cut short");
                text(&[vec![INCOMPLETE.to_owned()]])
            }
        });
        let first = once(std::future::ready(heading));
        Self { name: name.to_owned(), body: first.chain(rows).boxed() }
    }
}

impl<'r> Responder<'r, 'r> for Csv {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'r> {
        let mut response = ByteStream(self.body).respond_to(request)?;
        response.set_header(ContentType::CSV.with_params(("charset", "utf-8")));
        let disposition = format!("attachment; filename=\"{}.csv\"", self.name);
        response.set_header(Header::new("Content-Disposition", disposition));
        response.set_header(Header::new("Cache-Control", "no-store"));
        Ok(response)
    }
}

/// Rows as they stand in a file.
fn text(rows: &[Vec<String>]) -> Vec<u8> {
    let mut writer: Writer<Vec<u8>> =
        WriterBuilder::new().flexible(true).quote_style(QuoteStyle::Necessary).from_writer(Vec::new());
    for row in rows {
        // Writing to memory does not fail.
        let _ = writer.write_record(row.iter().map(|cell| defused(cell)));
    }
    writer.into_inner().unwrap_or_default()
}

/// A cell that a spreadsheet does not take for a formula (OWASP, "CSV Injection").
fn defused(cell: &str) -> String {
    let first = cell.trim_start_matches(|c: char| c.is_whitespace() || c == '\'' || c == '"').chars().next();
    // The full-width forms count in East Asian spreadsheets; a tab or line break at the start hides them.
    let formula = first.is_some_and(|c| "=+-@＝＋－＠".contains(c)) || cell.starts_with(['\t', '\r', '\n']);
    if formula { format!("'{cell}") } else { cell.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula_and_every_other_stays_as_it_is() {
        for cell in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "\"=1", "＝1", "'=1", "\u{a0}=1"]
        {
            assert_eq!(defused(cell), format!("'{cell}"), "{cell:?}");
        }
        for cell in ["", "Ada", "a=b", "ada@example.com", "2026-11-21", "O'Brien", "東京"] {
            assert_eq!(defused(cell), cell);
        }
    }

    #[test]
    fn cells_with_commas_quotes_and_line_breaks_are_read_as_they_were_written() {
        let row = ["a,b", "\"quoted\"", "two\nlines", ""];
        let text = text(&[row.map(str::to_owned).to_vec()]);
        let mut reader = ::csv::ReaderBuilder::new().has_headers(false).from_reader(&text[..]);
        let read = reader.records().next().unwrap().unwrap();
        assert!(read.iter().eq(row), "{read:?}");
    }
}
