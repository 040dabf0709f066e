//! The cluster: one data directory per `PostgreSQL` major version. Its creation either completes or leaves nothing.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::error::{Error, said};
use super::place;
use super::server::Server;
use super::{Options, ROLE};

/// The mark in the name of a directory that `initdb` is still filling.
const UNFINISHED: &str = ".unfinished-";

pub(super) fn data_dir(root: &Path, major: u32) -> PathBuf {
    root.join(format!("postgres-{major}"))
}

/// Returns the major versions with a data directory in `root`, ascending.
pub(super) fn majors(root: &Path) -> Vec<u32> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let major = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_prefix("postgres-")?.parse().ok();
    let mut majors: Vec<u32> = entries.filter_map(major).collect();
    majors.sort_unstable();
    majors
}

/// Creates the server's data directory in `root` if it is missing. The caller holds the lock.
pub(super) fn ensure(root: &Path, server: &Server, options: &Options) -> Result<(), Error> {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().contains(UNFINISHED) {
            // If an `initdb` has not ended yet and still writes, the next start removes the rest.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let (new, expected) = (server.data_dir.display(), server.account.uid);
    match fs::metadata(&server.data_dir).map(|found| found.uid()) {
        Ok(owner) if owner == expected => return Ok(()),
        Ok(owner) => return Err(Error::WrongOwner(server.data_dir.clone(), owner, expected)),
        Err(error) if error.kind() == ErrorKind::NotFound => (),
        Err(error) => return Err(Error::io("examine", &server.data_dir)(error)),
    }
    if let Some(old) = majors(root).last() {
        let kept = data_dir(root, *old);
        let kept = kept.display();
        (options.progress)(&format!(
            "the data of PostgreSQL {old} stays in {kept}; the new cluster is empty"
        ));
    }
    (options.progress)(&format!("creating the PostgreSQL cluster in {new} (first start only) ..."));
    create(root, server, options.durable)
}

/// Fills a directory with another name and renames it, so that a killed program leaves no incomplete cluster under
/// the final name.
fn create(root: &Path, server: &Server, durable: bool) -> Result<(), Error> {
    let mut unfinished = server.data_dir.as_os_str().to_owned();
    unfinished.push(format!("{UNFINISHED}{}", std::process::id()));
    let unfinished = place::private(Path::new(&unfinished), server.account.uid, 0o700)?;

    let initdb = server.bin_dir.join("initdb");
    let mut command = server.account.command(&initdb, &unfinished);
    command
        .args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions", "--username", ROLE])
        .arg("--pgdata")
        .arg(&unfinished);
    if !durable {
        command.arg("--no-sync");
    }
    let output = command.output().map_err(Error::io("run", &initdb))?;
    if !output.status.success() {
        // If this fails, the next start removes the directory.
        let _ = fs::remove_dir_all(&unfinished);
        return Err(Error::Initdb(server.data_dir.clone(), said(&output)));
    }
    fs::rename(&unfinished, &server.data_dir).map_err(Error::io("create", &server.data_dir))?;
    if durable {
        File::open(root).and_then(|root| root.sync_all()).map_err(Error::io("write", root))?;
    }
    Ok(())
}
