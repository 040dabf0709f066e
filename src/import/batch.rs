//! The rows on their way from the file to the database, what became of them, and the errors that end an import.

use std::io;

use super::row::{ImportRow, ImportedUser, RowError};
use crate::store;

/// The longest row, in bytes.
pub(super) const LONGEST: usize = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the file cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("the refused rows cannot be written: {0}")]
    Report(#[source] io::Error),
    #[error("the header row is invalid: {0}; see `vestibule import --help`")]
    Header(String),
    #[error("{0}; the imported rows stay, and the same command continues the import")]
    Store(#[from] store::Error),
    /// The reader panicked, which is a bug.
    #[error("the import failed unexpectedly; the imported rows stay")]
    Stopped,
}

#[derive(Default)]
pub(super) struct Summary {
    pub read: u64,
    pub users: u64,
    pub identities: u64,
    /// Rows whose user existed and got further identities.
    pub linked: u64,
    /// Rows whose data all existed.
    pub already: u64,
    pub refused: u64,
}

#[derive(Default)]
pub(super) struct Batch {
    pub rows: Vec<ImportRow>,
    /// Refused rows, by the line on which they begin.
    pub refused: Vec<(u64, RowError)>,
    /// Unknown columns or members that have not been reported yet.
    pub ignored: Vec<String>,
    /// The number of bytes of the file up to its end.
    pub position: u64,
}

impl Batch {
    pub fn push(&mut self, line: u64, user: Result<ImportedUser, RowError>, position: u64) {
        self.position = position;
        match user {
            Ok(user) => self.rows.push(ImportRow { line, user }),
            Err(error) => self.refused.push((line, error)),
        }
    }
}
