//! Batches of rows on their way from the file to the database, their outcomes, and the errors that
//! end an import.

use std::collections::BTreeMap;
use std::io;

use super::row::{ImportRow, ImportedUser, RowError};
use crate::database;
use crate::domain::printable;

/// The longest row, in bytes.
pub(super) const LONGEST: usize = 1 << 20;
/// The number of providers that are counted by name, and of characters of each name.
const NAMES: usize = 100;

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the file cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("the refused rows cannot be written: {0}")]
    Report(#[source] io::Error),
    #[error("the header row is invalid: {0}; see `vestibule import --help`")]
    Header(String),
    #[error("{0}; the imported rows stay, and the same command continues the import")]
    Store(#[from] database::Error),
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
    pub left_out: LeftOut,
}

/// The users and identities that are left out, because no sign-in here could use them.
#[derive(Default)]
pub(super) struct LeftOut {
    /// Users without an e-mail address, who have a phone number or identities of other providers
    /// alone.
    pub users: u64,
    /// Identities by their providers, which are not configured.
    pub identities: BTreeMap<String, u64>,
}

impl LeftOut {
    fn count(&mut self, provider: &str, count: u64) {
        // The name comes from a file, and a terminal would obey its control characters.
        let mut name = printable(provider, NAMES);
        if self.identities.len() == NAMES && !self.identities.contains_key(&name) {
            "others".clone_into(&mut name);
        }
        *self.identities.entry(name).or_default() += count;
    }

    pub fn add(&mut self, other: &Self) {
        self.users += other.users;
        for (provider, count) in &other.identities {
            self.count(provider, *count);
        }
    }
}

#[derive(Default)]
pub(super) struct Batch {
    pub rows: Vec<ImportRow>,
    /// Refused rows, by the line on which they begin.
    pub refused: Vec<(u64, RowError)>,
    pub left_out: LeftOut,
    /// The number of bytes of the file up to its end.
    pub position: u64,
}

impl Batch {
    /// The number of rows of the file.
    pub fn len(&self) -> usize {
        self.rows.len()
            + self.refused.len()
            + usize::try_from(self.left_out.users).unwrap_or(usize::MAX)
    }

    pub fn push(&mut self, line: u64, user: Result<ImportedUser, RowError>, position: u64) {
        self.position = position;
        match user {
            Ok(user) => {
                for provider in &user.left_out {
                    self.left_out.count(provider, 1);
                }
                if user.is_unreachable() {
                    self.left_out.users += 1;
                } else {
                    self.rows.push(ImportRow { line, user });
                }
            }
            Err(error) => self.refused.push((line, error)),
        }
    }
}
