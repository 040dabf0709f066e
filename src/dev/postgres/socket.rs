//! The Unix socket: its directory, short and private, and the URL for clients. The server listens nowhere else.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::ROLE;
use super::account::Account;
use super::error::Error;
use super::place;

/// The port is only a part of the socket's name, but clients need it.
pub(super) const PORT: u16 = 5432;

/// The longest path of a socket in bytes: `sun_path` of macOS and the BSDs, less the terminating zero. Linux has
/// four more.
const LONGEST: usize = 103;

/// Returns the socket directory for `data_dir`, and creates it if missing.
pub(super) fn directory(data_dir: &Path, account: Option<&Account>) -> Result<PathBuf, Error> {
    let owner = Account::server_uid(account);
    let name = format!("vestibule-{owner}-{:016x}", place::hash(data_dir.as_os_str()));
    // The server's user cannot enter root's runtime directory.
    let runtime = match account {
        None => runtime_dir().map(|dir| dir.join(&name)),
        Some(_) => None,
    };
    let path = runtime.filter(|dir| fits(dir)).unwrap_or_else(|| Path::new("/tmp").join(&name));
    place::private(&path, owner, 0o700)
}

/// Returns the name of the cluster. It is that of the socket directory, which is unique per data directory.
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

/// Removes files that a killed server left. A stale socket lock would stop the next server if its process id now
/// belongs to another process of the user. No server may be running.
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
