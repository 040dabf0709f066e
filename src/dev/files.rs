//! Generated secrets, kept in files that only their owner can read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::error::Error;
use crate::accounts::OpaqueToken;
use crate::secret::Secret;

/// Reads the secret in this file. If the file is missing or empty, it gets a secret of 256 random
/// bits.
pub(super) fn secret(path: &Path) -> Result<Secret<String>, Error> {
    let bytes = read_or_create(path, || {
        Ok(OpaqueToken::generate().text.expose().clone().into_bytes())
    })?;
    let text = String::from_utf8(bytes).map_err(io::Error::other);
    text.map(Secret::new)
        .map_err(|error| Error::File(path.to_owned(), error))
}

/// Reads this file. If it is missing or empty, it gets the content that `make` returns.
pub(super) fn read_or_create(
    path: &Path,
    make: impl FnOnce() -> io::Result<Vec<u8>>,
) -> Result<Vec<u8>, Error> {
    let content = match fs::read(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(content) if !content.is_empty() => Ok(content),
        _ => make().and_then(|content| create(path, &content).map(|()| content)),
    };
    content.map_err(|error| Error::File(path.to_owned(), error))
}

fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    // A file is written under another name first, so that a killed program leaves no half-written
    // secret.
    let new = path.with_extension("new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(new, path)
}
