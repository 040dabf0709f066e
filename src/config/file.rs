//! Files that settings name, with the problem and the remedy if one cannot be used.

use std::path::Path;
use std::{fs, io};

/// A problem and its remedy.
pub(super) type Mistake = (String, &'static str);

/// Reads a secret from a file and removes the trailing line break that editors add.
pub(super) fn secret(path: &Path) -> Result<String, Mistake> {
    match fs::read_to_string(path).map(|text| text.trim().to_owned()) {
        Ok(text) if text.is_empty() => {
            Err(("names an empty file".into(), "write the secret to it"))
        }
        Ok(text) => Ok(text),
        Err(error) => Err(unreadable(&error)),
    }
}

pub(super) fn unreadable(error: &io::Error) -> Mistake {
    let problem = format!("names a file that cannot be read ({error})");
    (problem, "correct the path or the file's permissions")
}
