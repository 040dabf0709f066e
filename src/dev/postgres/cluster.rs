//! The cluster: one data directory per `PostgreSQL` major version. Its creation either completes or leaves nothing.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::ROLE;
use super::account::Account;
use super::command;
use super::error::{Error, said};
use super::locate::Installation;
use super::place;

/// The mark in the name of a directory that `initdb` is still filling.
const UNFINISHED: &str = ".unfinished-";

/// A cluster that exists.
#[derive(Debug)]
pub(super) struct Cluster {
    /// Absolute and free of symbolic links, like the root it is in.
    pub(super) data_dir: PathBuf,
}

impl Cluster {
    /// Opens the cluster in `root` for this installation, and creates it if missing. The caller must hold the lock.
    pub(super) fn open(
        root: &Path,
        installation: &Installation,
        account: Option<&Account>,
        durable: bool,
        progress: &dyn Fn(&str),
    ) -> Result<Self, Error> {
        remove_unfinished(root)?;
        let data_dir = data_dir(root, installation.major);
        match fs::metadata(&data_dir) {
            Ok(found) => {
                let expected = Account::server_uid(account);
                if found.uid() != expected {
                    return Err(Error::WrongOwner { data_dir, owner: found.uid(), expected });
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if let Some(old) = majors(root).last() {
                    progress(&format!(
                        "the data of PostgreSQL {old} in {} stays untouched; PostgreSQL {} begins with an empty cluster",
                        self::data_dir(root, *old).display(),
                        installation.major
                    ));
                }
                progress(&format!(
                    "creating the PostgreSQL {} cluster in {} (first start only) ...",
                    installation.major,
                    data_dir.display()
                ));
                create(&data_dir, installation, account, durable)?;
            }
            Err(error) => return Err(Error::io("examine", &data_dir)(error)),
        }
        Ok(Self { data_dir })
    }
}

/// Returns the data directory in `root` for a major version.
pub(super) fn data_dir(root: &Path, major: u32) -> PathBuf {
    root.join(format!("postgres-{major}"))
}

/// Returns the major versions with a data directory in `root`, ascending.
pub(super) fn majors(root: &Path) -> Vec<u32> {
    let mut majors: Vec<u32> = fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            name.to_str()?.strip_prefix("postgres-")?.parse().ok()
        })
        .collect();
    majors.sort_unstable();
    majors
}

/// Fills a directory with another name and renames it, so that a killed program leaves no incomplete cluster under
/// the final name.
fn create(
    data_dir: &Path,
    installation: &Installation,
    account: Option<&Account>,
    durable: bool,
) -> Result<(), Error> {
    let mut unfinished = data_dir.as_os_str().to_owned();
    unfinished.push(format!("{UNFINISHED}{}", std::process::id()));
    let unfinished = PathBuf::from(unfinished);
    place::private(&unfinished, Account::server_uid(account), 0o700)?;

    let initdb = installation.bin_dir.join("initdb");
    let mut command = command::as_server(&initdb, account, &unfinished);
    command.arg("-D").arg(&unfinished).args([
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C",
        "--no-instructions",
    ]);
    command.arg(format!("--username={ROLE}"));
    if !durable {
        command.arg("--no-sync");
    }
    command::end_with_parent(&mut command);
    let output = command.output().map_err(Error::io("run", &initdb))?;
    if !output.status.success() {
        // If this fails, the next start removes the directory.
        let _ = fs::remove_dir_all(&unfinished);
        return Err(Error::Initdb { data_dir: data_dir.to_owned(), output: said(&output) });
    }
    fs::rename(&unfinished, data_dir).map_err(Error::io("create", data_dir))?;
    if durable && let Some(root) = data_dir.parent() {
        File::open(root).and_then(|root| root.sync_all()).map_err(Error::io("write", root))?;
    }
    Ok(())
}

/// Removes directories that a killed program left incomplete. The lock excludes another program. An `initdb` that
/// has not ended yet may still write; the next start removes that.
fn remove_unfinished(root: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(root).map_err(Error::io("read", root))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("postgres-") && name.contains(UNFINISHED) {
            let path = entry.path();
            match fs::remove_dir_all(&path) {
                Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {
                    return Err(Error::io("remove", &path)(error));
                }
                _ => (),
            }
        }
    }
    Ok(())
}
