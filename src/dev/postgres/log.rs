//! The server's log file: opened for a server to write, read back for error messages.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::error::{Error, last_lines};

/// The size in bytes above which the log is renamed at the next start.
const ROTATE_AT: u64 = 8 * 1024 * 1024;
/// The most bytes that are read from the end for a message.
const TAIL: u64 = 16 * 1024;

/// A log file that exists.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
}

impl Log {
    /// Opens the log at `path`. A log that is too large is renamed and replaces the one renamed before.
    pub(super) fn open(path: PathBuf) -> Result<Self, Error> {
        let log = Self { path };
        if log.len() > ROTATE_AT {
            let aside = log.path.with_extension("log.old");
            fs::rename(&log.path, &aside).map_err(Error::io("put aside", &log.path))?;
        }
        log.writer()?;
        Ok(log)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a handle for a server's standard output and error.
    pub(super) fn writer(&self) -> Result<File, Error> {
        OpenOptions::new().append(true).create(true).open(&self.path).map_err(Error::io("open", &self.path))
    }

    /// Returns the size in bytes, to find new text later.
    pub(super) fn len(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }

    /// Returns the text written after the log had size `from`, or its end.
    pub(super) fn since(&self, from: u64) -> String {
        self.read_since(from).unwrap_or_default()
    }

    /// Returns the last lines written after the log had size `from`, as one line.
    pub(super) fn tail_since(&self, from: u64) -> String {
        last_lines(&self.since(from))
    }

    fn read_since(&self, from: u64) -> std::io::Result<String> {
        let mut file = File::open(&self.path)?;
        let start = from.max(file.metadata()?.len().saturating_sub(TAIL));
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
