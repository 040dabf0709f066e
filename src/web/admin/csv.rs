//! Tables as files, made as they are sent: a batch of rows at a time, whatever the number of rows
//! (RFC 4180).

use std::pin::Pin;

use csv::{Terminator, WriterBuilder};
use rocket::futures::stream::{self, Stream, StreamExt};
use rocket::http::{ContentType, Header};
use rocket::request::Request;
use rocket::response::stream::ByteStream;
use rocket::response::{self, Responder};
use time::OffsetDateTime;

use crate::clock;
use crate::store;
use crate::store::deadline::in_time;

/// What the file ends with when the rest of the rows cannot be read. HTTP has a way to say that a body broke
/// off, but Rocket ends one that fails as if it were whole, so the file itself must not look it: the quote
/// that is not closed is an error to a program, and what it opens is a sentence to a person.
const BROKEN_OFF: &str = "\"The export broke off here. It is not complete; please try again.";

/// The rows of a file, a batch at a time.
pub(super) trait Rows: Send + 'static {
    /// What the file is called, before the date.
    const NAME: &'static str;
    /// What the first line calls the columns.
    const COLUMNS: &'static [&'static str];

    /// The next rows; none when there are no more. No connection is held in between.
    fn next(&mut self) -> impl Future<Output = Result<Vec<Vec<String>>, store::Error>> + Send;
}

/// A file on its way to the browser.
pub(super) struct Csv {
    name: String,
    body: Pin<Box<dyn Stream<Item = Vec<u8>> + Send>>,
}

impl Csv {
    /// Reads the first rows, so that a database that fails at once is told by a page.
    pub(super) async fn begin<R: Rows>(mut rows: R) -> Result<Self, store::Error> {
        let header = R::COLUMNS.iter().map(|column| (*column).to_owned()).collect();
        let first = lines([vec![header], rows.next().await?].concat());
        let rest = stream::unfold(Some(rows), |rows| async move {
            let mut rows = rows?;
            match in_time(rows.next()).await {
                Ok(batch) if batch.is_empty() => None,
                Ok(batch) => Some((lines(batch), Some(rows))),
                Err(error) => {
                    tracing::error!(error = %error, "an export broke off");
                    Some((BROKEN_OFF.into(), None))
                }
            }
        });
        let today = OffsetDateTime::from_unix_timestamp(clock::now()).map(OffsetDateTime::date);
        let date = today.map_or_else(|_| String::new(), |date| format!("-{date}"));
        let body = Box::pin(stream::once(async { first }).chain(rest));
        Ok(Self { name: format!("{}{date}.csv", R::NAME), body })
    }
}

impl<'r> Responder<'r, 'r> for Csv {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'r> {
        let mut response = ByteStream(self.body).respond_to(request)?;
        response.set_header(ContentType::CSV);
        let disposition = format!("attachment; filename=\"{}\"", self.name);
        response.set_header(Header::new("Content-Disposition", disposition));
        response.set_header(Header::new("Cache-Control", "no-store"));
        Ok(response)
    }
}

/// Rows as lines.
fn lines(rows: Vec<Vec<String>>) -> Vec<u8> {
    let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    for row in rows {
        // Writing to memory does not fail, and every row is as long as the first.
        let _ = writer.write_record(row.into_iter().map(defused));
    }
    writer.into_inner().unwrap_or_default()
}

/// A cell that no spreadsheet takes for a formula (OWASP, "CSV Injection"), whatever it would skip before one.
fn defused(cell: String) -> String {
    let formula = |c: char| matches!(c, '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠');
    let skipped = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\'' | '`' | '\u{feff}');
    let starts_one =
        cell.starts_with(['\t', '\r', '\n']) || cell.trim_start_matches(skipped).starts_with(formula);
    if starts_one { format!("'{cell}") } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        for cell in [
            "=1+1",
            "+1",
            "-1",
            "@SUM(A1)",
            "\t=1",
            "\rx",
            "\n=1",
            " =1",
            "  +1",
            "\"=1",
            "'=1",
            "\u{a0}=1",
            "＝1",
            "\u{feff}=1",
            "\u{0}=1",
            "-",
            "=",
        ] {
            assert_eq!(defused(cell.into()), format!("'{cell}"));
        }
        for cell in ["", "ada@example.com", "a=b", "O'Brien", "2026-11-21", "1-2", "Ångström", " x", "\"x\""]
        {
            assert_eq!(defused(cell.into()), cell);
        }
    }

    #[test]
    fn a_cell_holds_whatever_it_is_given() {
        let cells = ["a,b", "a\"b", "a\r\nb", "", " ", "é🦀"].map(str::to_owned).to_vec();
        let written = lines(vec![cells.clone(), cells.clone()]);
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(written.as_slice());
        let read: Vec<Vec<String>> = reader.deserialize().map(Result::unwrap).collect();
        assert_eq!(read, [cells.clone(), cells]);
    }
}
