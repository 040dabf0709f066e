//! The Unix socket: its directory, short and private, and the URL that leads
//! to it. There is no other way in.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::ROLE;
use super::account::Account;
use super::error::Error;
use super::place;

/// Only a part of the socket's name, but clients must be told.
pub(super) const PORT: u16 = 5432;

/// Bytes a socket's path may have: `sun_path` of macOS and the BSDs, less the
/// terminating zero. Linux has four more.
const LONGEST: usize = 103;

/// The socket directory that belongs to `data_dir`, created if missing.
pub(super) fn directory(data_dir: &Path, account: Option<&Account>) -> Result<PathBuf, Error> {
    let owner = Account::server_uid(account);
    let name = format!("vestibule-{owner}-{:016x}", place::hash(data_dir.as_os_str()));
    // The runtime directory of root is closed to the server's user.
    let runtime = match account {
        None => runtime_dir().map(|dir| dir.join(&name)),
        Some(_) => None,
    };
    let path = runtime.filter(|dir| fits(dir)).unwrap_or_else(|| Path::new("/tmp").join(&name));
    place::private(&path, owner, 0o700)
}

/// The name of the directory, as unique as the data directory it belongs to,
/// is also the name of the cluster.
pub(super) fn cluster_name(dir: &Path) -> String {
    dir.file_name().map_or_else(|| ROLE.to_owned(), |name| name.to_string_lossy().into_owned())
}

fn runtime_dir() -> Option<PathBuf> {
    let dir = PathBuf::from(env::var_os("XDG_RUNTIME_DIR")?);
    (dir.is_absolute() && dir.is_dir() && dir.to_str().is_some()).then_some(dir)
}

fn fits(dir: &Path) -> bool {
    file(dir).as_os_str().len() <= LONGEST
}

fn file(dir: &Path) -> PathBuf {
    dir.join(format!(".s.PGSQL.{PORT}"))
}

/// Removes what a killed server left. A stale socket lock whose process id
/// now belongs to some other process of the user would stop the next server.
/// Only to be called when no server runs.
pub(super) fn clear(dir: &Path) -> Result<(), Error> {
    let socket = file(dir);
    let mut lock = socket.clone().into_os_string();
    lock.push(".lock");
    for path in [socket, lock.into()] {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::io("remove", &path)(error));
            }
            _ => (),
        }
    }
    Ok(())
}

/// See [`super::Postgres::url`].
pub(super) fn url(dir: &Path, database: &str) -> String {
    let database = percent_encode(database.as_bytes());
    let host = percent_encode(dir.as_os_str().as_encoded_bytes());
    format!("postgres://{ROLE}@localhost:{PORT}/{database}?host={host}&sslmode=disable")
}

fn percent_encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            text.push(char::from(*byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_leads_to_the_socket_whatever_the_names() {
        assert_eq!(
            url(Path::new("/tmp/a b"), "x/y?"),
            "postgres://vestibule@localhost:5432/x%2Fy%3F?host=%2Ftmp%2Fa%20b&sslmode=disable"
        );
    }

    #[test]
    fn a_directory_too_long_for_a_socket_does_not_fit() {
        assert!(fits(Path::new("/run/user/1000/vestibule-1000-0123456789abcdef")));
        assert!(!fits(&Path::new("/").join("x".repeat(100))));
    }
}
