//! Files that `npm ci` installs.

use std::path::{Path, PathBuf};

use crate::support::missing::skip;

/// Finds a file that `npm ci` installs. Without it the test is skipped.
pub fn npm(file: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let file = folder.join("node_modules").join(file);
    if !file.is_file() {
        skip(&format!(
            "{} is not there; `npm ci` in {} installs it",
            file.display(),
            folder.display()
        ));
        return None;
    }
    Some(file)
}
