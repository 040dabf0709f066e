//! Bulk writes by `COPY` (PostgreSQL, "COPY", its text format).

use std::fmt::{Display, Write};

use sqlx::PgConnection;

use super::Error;

/// Rows of one table in the text format of `COPY`.
#[derive(Debug, Default)]
pub(super) struct Rows(String);

impl Rows {
    /// Adds a row; `None` is NULL.
    pub fn push(&mut self, values: &[Option<&dyn Display>]) {
        for (number, value) in values.iter().enumerate() {
            if number > 0 {
                self.0.push('\t');
            }
            // Writing to a string does not fail.
            let _ = match value {
                Some(value) => write!(Escaped(&mut self.0), "{value}"),
                None => self.0.write_str("\\N"),
            };
        }
        self.0.push('\n');
    }

    /// Sends the rows by a `COPY … FROM STDIN` statement.
    pub async fn send(&self, connection: &mut PgConnection, statement: &'static str) -> Result<(), Error> {
        let mut copy = connection.copy_in_raw(statement).await?;
        copy.send(self.0.as_bytes()).await?;
        copy.finish().await?;
        Ok(())
    }
}

/// The characters that stand for something else in the text format.
const SPECIAL: [u8; 4] = *b"\\\t\n\r";

/// A writer that escapes the special characters of `COPY`.
struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        // The usual case is quick in a build for development, too.
        if !SPECIAL.iter().any(|special| text.as_bytes().contains(special)) {
            self.0.push_str(text);
            return Ok(());
        }
        let mut rest = text;
        while let Some(at) = rest.find(SPECIAL.map(char::from)) {
            let (plain, special) = rest.split_at(at);
            self.0.push_str(plain);
            self.0.push_str(match special.as_bytes()[0] {
                b'\\' => "\\\\",
                b'\t' => "\\t",
                b'\n' => "\\n",
                _ => "\\r",
            });
            rest = &special[1..];
        }
        self.0.push_str(rest);
        Ok(())
    }
}
