//! Tables as CSV files (RFC 4180), generated while they are sent: one batch of rows at a time.

use std::iter;
use std::pin::Pin;

use csv::{Terminator, WriterBuilder};
use rocket::futures::stream::{self, Stream, StreamExt};
use rocket::http::{ContentType, Header};
use rocket::request::Request;
use rocket::response::stream::ByteStream;
use rocket::response::{self, Responder};
use time::OffsetDateTime;

use crate::admin::staff::sign_in::store::{StaffRow, may_export};
use crate::clock;
use crate::database::{Database, Error};
use crate::domain::spreadsheet::{is_formula, loses_digits};

/// The beginning of a file. Without it, Excel takes the text for one in the system's own encoding.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The end of a file whose remaining rows cannot be read. Rocket ends a failed body as if it were
/// complete, so the file itself must show the failure: the unclosed quote is an error to a program,
/// and its text is readable to a person.
const BROKEN_OFF: &str = "\"The export broke off here. It is not complete; please try again.";

/// A column: its name in the first line, and its cell of a row.
pub(super) type Column<Row> = (&'static str, fn(&Row) -> Option<String>);

pub(super) trait Rows: Send + 'static {
    const NAME: &'static str;
    type Row: Send + 'static;
    const COLUMNS: &'static [Column<Self::Row>];

    /// Returns the next rows; none at the end. No connection is held between calls.
    fn next(&mut self) -> impl Future<Output = Result<Vec<Self::Row>, Error>> + Send;
}

pub(super) struct Csv {
    name: String,
    body: Pin<Box<dyn Stream<Item = Vec<u8>> + Send>>,
}

impl Csv {
    /// Reads the first rows, so that an immediate failure of the database is shown as a page. The
    /// file breaks off when the reader loses the right to export.
    pub(super) async fn begin<R: Rows>(
        mut rows: R,
        reader: &StaffRow,
        database: &Database,
    ) -> Result<Self, Error> {
        let reader = reader.id;
        let database = database.clone();
        let cells = |row: R::Row| {
            R::COLUMNS
                .iter()
                .map(|(_, cell)| cell(&row).unwrap_or_default())
                .collect()
        };
        let header = R::COLUMNS
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect();
        let first = lines(iter::once(header).chain(rows.next().await?.into_iter().map(cells)));
        let first = [BYTE_ORDER_MARK, &first].concat();
        let rest = stream::unfold(Some((rows, database)), move |rest| async move {
            let (mut rows, database) = rest?;
            let batch = async {
                let still = database.run(|_| may_export(&database, reader)).await?;
                if still {
                    rows.next().await.map(Some)
                } else {
                    Ok(None)
                }
            };
            match batch.await {
                Ok(Some(batch)) if batch.is_empty() => None,
                Ok(Some(batch)) => {
                    Some((lines(batch.into_iter().map(cells)), Some((rows, database))))
                }
                Ok(None) => {
                    tracing::warn!("an export broke off: its reader may no longer export");
                    Some((BROKEN_OFF.into(), None))
                }
                Err(error) => {
                    tracing::error!(error = %error, "an export broke off");
                    Some((BROKEN_OFF.into(), None))
                }
            }
        });
        let today = OffsetDateTime::from_unix_timestamp(clock::now()).map(OffsetDateTime::date);
        let date = today.map_or_else(|_| String::new(), |date| format!("-{date}"));
        let body = Box::pin(stream::once(async { first }).chain(rest));
        Ok(Self {
            name: format!("{}{date}.csv", R::NAME),
            body,
        })
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

fn lines(rows: impl Iterator<Item = Vec<String>>) -> Vec<u8> {
    let mut writer = WriterBuilder::new()
        .terminator(Terminator::CRLF)
        .from_writer(Vec::new());
    for row in rows {
        // Writing to memory does not fail, and all rows have the same length.
        let _ = writer.write_record(row.iter().map(|cell| defused(cell)));
    }
    writer.into_inner().unwrap_or_default()
}

/// Returns a cell that no spreadsheet changes, with an apostrophe where one would. If the list
/// separator is not the comma, as in much of Europe, quotes do not protect a cell, and each
/// separator in it begins a new one.
fn defused(cell: &str) -> String {
    let mut defused = String::with_capacity(cell.len() + 1);
    if cell.starts_with(['\t', '\r', '\n']) || loses_digits(cell) {
        defused.push('\'');
    }
    for part in cell.split_inclusive([';', '\t', '|', '\r', '\n']) {
        if is_formula(part) {
            defused.push('\'');
        }
        defused.push_str(part);
    }
    defused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spreadsheet_changes_a_cell() {
        for cell in [
            "=1+1",
            "+1",
            "-1",
            "@SUM(A1)",
            "\rx",
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
            "\u{200b}=1",
            "\u{2066}\u{ad}=1",
            "\u{3164}@x",
            "\u{e0020}=1",
            "\u{301}+1",
            "9912140633506421",
            "04567",
            "891e3",
            "4.892E+092",
        ] {
            assert_eq!(defused(cell), format!("'{cell}"));
        }
        for (cell, safe) in [
            ("\t=1", "'\t'=1"),
            ("\n=1", "'\n'=1"),
            ("x;=1", "x;'=1"),
            ("x\t=1", "x\t'=1"),
            ("x|+1|y", "x|'+1|y"),
            ("x;;\"-1;@y", "x;;'\"-1;'@y"),
            ("x\n=1", "x\n'=1"),
            ("=1;=1", "'=1;'=1"),
            (";\u{200b}=1", ";'\u{200b}=1"),
        ] {
            assert_eq!(defused(cell), safe);
        }
        for cell in [
            "",
            "ada@example.com",
            "a=b",
            "O'Brien",
            "2026-11-21",
            "1-2",
            "Ångström",
            " x",
            "\"x\"",
            "a; b|c",
            "123456789012345",
            "8e7f5c51-5f6e-4b57-9c4e-9f0f3a2c6a01",
        ] {
            assert_eq!(defused(cell), cell);
        }
    }
}
