//! Chooses a directory that the server's user can enter, and creates private directories below shared ones.

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

/// This directory survives a reboot, unlike `/tmp`.
const ELSEWHERE: &str = "/var/tmp";

/// Returns `wanted` if the server's user can enter it, otherwise another directory that is the same at every start.
/// Creates it, and returns it without symbolic links.
pub(super) fn choose(
    wanted: &Path,
    account: Option<&Account>,
    progress: &Progress,
) -> Result<PathBuf, Error> {
    if !wanted.is_dir() {
        fs::create_dir_all(wanted).map_err(Error::io("create", wanted))?;
        // Another user, if there is one, only needs to enter.
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

/// Lets the kernel decide, because permission bits do not include access control lists.
fn can_enter(account: &Account, dir: &Path) -> Result<bool, Error> {
    let status = command::as_server("/bin/sh", Some(account), dir).args(["-c", ":"]).status();
    match status {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(false),
        Err(error) => Err(Error::io("try to enter", dir)(error)),
    }
}

/// Returns a directory with exactly this owner and mode, created if missing. It is safe even if all users may write
/// to the parent: a directory that another user created or could still change is refused. Only root can change the
/// owner.
pub(super) fn private(path: &Path, owner: u32, mode: u32) -> Result<PathBuf, Error> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(Error::io("create", path)(error));
        }
        _ => (),
    }
    let untrusted = |why: String| Error::Untrusted { path: path.to_owned(), why };
    // From here on, everything uses the open directory, because the name may soon refer to another one.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = rustix::fs::open(path, flags, Mode::empty())
        .map(File::from)
        .map_err(|error| untrusted(format!("it is not a directory ({error})")))?;
    let found = dir.metadata().map_err(Error::io("examine", path))?;
    if found.uid() != owner {
        // We created it, just now or in a run that was killed at this point.
        if found.uid() != geteuid().as_raw() {
            return Err(untrusted(format!("it belongs to user id {}", found.uid())));
        }
        std::os::unix::fs::fchown(&dir, Some(owner), None).map_err(Error::io("change the owner of", path))?;
    }
    dir.set_permissions(fs::Permissions::from_mode(mode))
        .map_err(Error::io("set the permissions of", path))?;
    Ok(path.to_owned())
}

/// Computes FNV-1a. Names on disk depend on it, so std's hasher, which may change between releases, cannot be used.
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
