//! Files that settings name: what is wrong with one, and what mends it.

use std::path::Path;
use std::{fs, io};

/// A problem and its remedy.
pub(super) type Mistake = (String, &'static str);

/// The secret that a file holds, without the line break that editors leave behind it.
pub(super) fn secret(path: &Path) -> Result<String, Mistake> {
    match fs::read_to_string(path).map(|text| text.trim().to_owned()) {
        Ok(text) if text.is_empty() => Err(("names an empty file".into(), "put the secret into it")),
        Ok(text) => Ok(text),
        Err(error) => Err(unreadable(&error)),
    }
}

pub(super) fn unreadable(error: &io::Error) -> Mistake {
    let problem = format!("names a file that cannot be read ({error})");
    (problem, "correct the path or the file's permissions")
}
