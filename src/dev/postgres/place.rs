//! Where the files go: a directory the server's user can reach, and private
//! directories below shared ones. Not what is in them.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;

use super::Progress;
use super::account::Account;
use super::command;
use super::error::Error;

/// Survives a reboot, unlike `/tmp`.
const ELSEWHERE: &str = "/var/tmp";

/// `wanted` if the server's user can reach it, otherwise a place of its own
/// that is the same at every start. Creates it, and returns it without
/// symbolic links.
pub(super) fn choose(
    wanted: &Path,
    account: Option<&Account>,
    progress: &Progress,
) -> Result<PathBuf, Error> {
    if !wanted.is_dir() {
        fs::create_dir_all(wanted).map_err(Error::io("create", wanted))?;
        // Entering is all another user needs, and only when there is one.
        let mode = if account.is_some() { 0o711 } else { 0o700 };
        fs::set_permissions(wanted, fs::Permissions::from_mode(mode))
            .map_err(Error::io("set the permissions of", wanted))?;
    }
    let wanted = fs::canonicalize(wanted).map_err(Error::io("resolve", wanted))?;
    let Some(account) = account else {
        return Ok(wanted);
    };
    if can_enter(account, &wanted)? {
        return Ok(wanted);
    }
    let name = format!("vestibule-{}-{:016x}", geteuid().as_raw(), hash(wanted.as_os_str()));
    let other = private(&Path::new(ELSEWHERE).join(name), geteuid().as_raw(), 0o711)?;
    progress(&format!(
        "{} is closed to user {}, which PostgreSQL runs as; the database is kept in {}",
        wanted.display(),
        account.name,
        other.display()
    ));
    fs::canonicalize(&other).map_err(Error::io("resolve", &other))
}

/// Asks the kernel instead of adding up permission bits, which would miss
/// access control lists and the like.
fn can_enter(account: &Account, dir: &Path) -> Result<bool, Error> {
    let status = command::as_server("/bin/sh", Some(account), dir).args(["-c", ":"]).status();
    match status {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(false),
        Err(error) => Err(Error::io("try to enter", dir)(error)),
    }
}

/// A directory with exactly this owner and mode, created if missing, even if
/// its parent is writable for everybody: what another user could have put
/// there, or could still change, is refused. Changing the owner takes root.
pub(super) fn private(path: &Path, owner: u32, mode: u32) -> Result<PathBuf, Error> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(Error::io("create", path)(error));
        }
        _ => (),
    }
    let untrusted = |why: String| Error::Untrusted { path: path.to_owned(), why };
    // All that follows is about the opened directory, not about a name that
    // may come to mean another one.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = rustix::fs::open(path, flags, Mode::empty())
        .map(File::from)
        .map_err(|error| untrusted(format!("it is not a directory ({error})")))?;
    let found = dir.metadata().map_err(Error::io("examine", path))?;
    if found.uid() != owner {
        // Our own creation, just now or in a run that was killed right here.
        if found.uid() != geteuid().as_raw() {
            return Err(untrusted(format!("it belongs to user id {}", found.uid())));
        }
        std::os::unix::fs::fchown(&dir, Some(owner), None).map_err(Error::io("change the owner of", path))?;
    }
    dir.set_permissions(fs::Permissions::from_mode(mode))
        .map_err(Error::io("set the permissions of", path))?;
    Ok(path.to_owned())
}

/// FNV-1a. Names on disk depend on it, which std's hasher, free to change
/// from release to release, is not made for.
pub(super) fn hash(text: &OsStr) -> u64 {
    text.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(hash(OsStr::new("")), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(OsStr::new("foobar")), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_symbolic_link_is_no_private_directory() {
        let base = std::env::temp_dir().join(format!("place-test-{}", std::process::id()));
        let link = base.join("link");
        fs::create_dir_all(&base).unwrap();
        std::os::unix::fs::symlink("/", &link).unwrap();
        let refused = private(&link, geteuid().as_raw(), 0o700);
        fs::remove_dir_all(&base).unwrap();
        assert!(matches!(refused, Err(Error::Untrusted { .. })));
    }
}
