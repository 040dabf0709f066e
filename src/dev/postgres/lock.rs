//! The lock that allows one program per directory. It is an `flock` rather than a pid file, because the kernel
//! releases it however the program ends. `PostgreSQL`'s own lock (`postmaster.pid`) only guards against a second
//! *server*.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use super::error::Error;

/// Holds the lock until it is dropped. The file is never removed, because two programs could then lock two files
/// with the same name. Servers do not inherit it, because std opens files close-on-exec.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of `root`, or reports the program that holds it.
    pub(super) fn acquire(root: &Path) -> Result<Self, Error> {
        let path = root.join("lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(Error::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => (),
            Err(TryLockError::WouldBlock) => return Err(in_use(root, &mut file)),
            Err(TryLockError::Error(source)) => return Err(Error::io("lock", &path)(source)),
        }
        // The process id is for the error message of another program.
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(Error::io("write", &path))?;
        Ok(Self { _file: file })
    }
}

fn in_use(root: &Path, file: &mut File) -> Error {
    let mut text = String::new();
    // The file may be unreadable or half-written, which is no reason for another error.
    let _ = file.read_to_string(&mut text);
    let holder = text.trim();
    Error::InUse {
        root: root.to_owned(),
        holder: if holder.is_empty() { "unknown" } else { holder }.to_owned(),
    }
}
