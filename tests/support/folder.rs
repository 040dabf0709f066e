//! Temporary folders for tests.

use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// A test's folder, which other users may enter and the server's user may write to. It is deleted
/// once the test has passed.
pub struct Folder(PathBuf);

pub fn folder(name: &str) -> Folder {
    // A short path: paths of sockets have at most 107 bytes.
    let folder = env::temp_dir().join(format!("vestibule-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    Folder(folder)
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
