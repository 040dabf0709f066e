//! Generated secrets, kept in files that only their owner can read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::Error;
use crate::secret::Secret;
use crate::service::opaque_token::OpaqueToken;

/// Reads the secret in this file. If there is none, it creates one with 256 random bits.
pub(super) fn secret(path: &Path) -> Result<Secret<String>, Error> {
    let failed = |error| Error::File(path.to_owned(), error);
    match fs::read_to_string(path) {
        Ok(text) if !text.is_empty() => Ok(Secret::new(text)),
        Ok(_) => make(path).map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(path).map_err(failed),
        Err(error) => Err(failed(error)),
    }
}

fn make(path: &Path) -> io::Result<Secret<String>> {
    let secret = OpaqueToken::generate().text;
    // A file is written under another name first, so that a killed program leaves no half-written secret.
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(secret.expose().as_bytes())?;
    file.sync_all()?;
    fs::rename(new, path)?;
    Ok(secret)
}
