//! The lock that allows one program per directory. It is an `flock` rather than a pid file, because the kernel
//! releases it however the program ends. `PostgreSQL`'s own lock (`postmaster.pid`) only guards against a second
//! *server*.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::Path;

use super::error::Error;

/// Takes the lock of `root`, or reports the program that holds it. The lock is held until the file is dropped.
///
/// The file is never removed, because two programs could then lock two files with the same name. Servers do not
/// inherit it, because std opens files close-on-exec.
pub(super) fn acquire(root: &Path) -> Result<File, Error> {
    let path = root.join("lock");
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = opened.map_err(Error::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => (),
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // The file may be unreadable or half-written, which is no reason for another error.
            let _ = file.read_to_string(&mut holder);
            let holder = if holder.is_empty() { "unknown" } else { holder.trim() };
            return Err(Error::InUse(root.to_owned(), holder.to_owned()));
        }
        Err(TryLockError::Error(source)) => return Err(Error::io("lock", &path)(source)),
    }
    // The process id is for the error message of another program.
    let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    written.map_err(Error::io("write", &path))?;
    Ok(file)
}
