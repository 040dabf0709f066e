//! Chooses a directory that the server's user can enter, and creates private directories below
//! shared ones.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use rustix::process::geteuid;

use super::account::Account;
use super::error::Error;

/// This directory survives a reboot, unlike `/tmp`.
const ELSEWHERE: &str = "/var/tmp";

/// Returns `wanted` if the server's user can enter it, otherwise another directory that is the same
/// at every start. Creates it, and returns it without symbolic links.
pub(super) fn root(wanted: &Path, account: &Account) -> Result<PathBuf, Error> {
    if !wanted.is_dir() {
        fs::create_dir_all(wanted).map_err(Error::io("create", wanted))?;
        // Another user, if there is one, only needs to enter.
        let mode = if account.other.is_some() {
            0o711
        } else {
            0o700
        };
        fs::set_permissions(wanted, fs::Permissions::from_mode(mode))
            .map_err(Error::io("set the permissions of", wanted))?;
    }
    let wanted = fs::canonicalize(wanted).map_err(Error::io("resolve", wanted))?;
    let Some((user, _)) = account.other else {
        return Ok(wanted);
    };
    // The kernel decides, because permission bits do not include access control lists.
    match account
        .command("/bin/sh", &wanted)
        .args(["-c", ":"])
        .status()
    {
        Ok(_) => return Ok(wanted),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => (),
        Err(error) => return Err(Error::io("try to enter", wanted)(error)),
    }
    let name = format!("vestibule-{}-{}", geteuid().as_raw(), name_of(&wanted));
    let other = private(&Path::new(ELSEWHERE).join(name), geteuid().as_raw(), 0o711)?;
    eprintln!(
        "user {user}, which runs PostgreSQL, cannot access {}; the database is kept in {}",
        wanted.display(),
        other.display()
    );
    fs::canonicalize(&other).map_err(Error::io("resolve", &other))
}

/// Returns the directory of the server's socket. It is below `/tmp`, because the path of a socket
/// has 103 bytes at most on macOS, and because every program has to find a server that runs.
pub(super) fn socket_dir(data_dir: &Path, account: &Account) -> PathBuf {
    format!("/tmp/vestibule-{}-{}", account.uid, name_of(data_dir)).into()
}

/// Returns a directory with exactly this owner and mode, created if missing. It is safe even if all
/// users may write to the parent: a directory that another user created or could still change is
/// refused. Only root can change the owner.
pub(super) fn private(path: &Path, owner: u32, mode: u32) -> Result<PathBuf, Error> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(Error::io("create", path)(error));
        }
        _ => (),
    }
    // The parent is our own, or has the sticky bit: only its owner and root can replace the
    // directory.
    let found = fs::symlink_metadata(path).map_err(Error::io("examine", path))?;
    let us = geteuid().as_raw();
    if found.is_dir() && found.uid() == us {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .map_err(Error::io("set the permissions of", path))?;
        std::os::unix::fs::lchown(path, Some(owner), None)
            .map_err(Error::io("change the owner of", path))?;
    } else if !found.is_dir() || found.uid() != owner {
        return Err(Error::Untrusted(path.to_owned()));
    }
    Ok(path.to_owned())
}

/// Returns a short name for a path, the same in each release.
fn name_of(path: &Path) -> String {
    let hash = digest(&SHA256, path.as_os_str().as_bytes());
    hash.as_ref()[..8]
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbolic_link_is_no_private_directory() {
        let link = std::env::temp_dir().join(format!("place-test-{}", std::process::id()));
        std::os::unix::fs::symlink("/", &link).unwrap();
        let refused = private(&link, geteuid().as_raw(), 0o700);
        fs::remove_file(&link).unwrap();
        assert!(matches!(refused, Err(Error::Untrusted(..))));
    }
}
