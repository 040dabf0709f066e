//! Programs that are not ours, where there are any.

use std::env;
use std::path::{Path, PathBuf};

use crate::support::missing::skip;

/// A program of one of these names.
pub fn program(names: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = names.iter().flat_map(|name| env::split_paths(&path).map(move |folder| folder.join(name)));
    let found = found.into_iter().find(|file| file.is_file());
    if found.is_none() {
        skip(&format!("there is no {}: pages were not tried out", names.join(" or ")));
    }
    found
}

/// A file that `npm ci` installs.
pub fn npm(file: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let file = folder.join("node_modules").join(file);
    if !file.is_file() {
        skip(&format!("{} is not there; `npm ci` in {} installs it", file.display(), folder.display()));
        return None;
    }
    Some(file)
}
