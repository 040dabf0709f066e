//! The cluster: one data directory per `PostgreSQL` major version. Its creation either completes or
//! leaves nothing.

use std::fs;
use std::path::{Path, PathBuf};

use super::ROLE;
use super::error::{Error, said};
use super::place;
use super::server::Server;

/// The mark in the name of a directory that `initdb` is still filling.
const UNFINISHED: &str = ".unfinished-";

pub(super) fn data_dir(root: &Path, major: u32) -> PathBuf {
    root.join(format!("postgres-{major}"))
}

/// Creates the server's data directory in `root` if it is missing. The caller holds the lock.
pub(super) fn ensure(root: &Path, server: &Server, durable: bool) -> Result<(), Error> {
    let mut others = String::new();
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().contains(UNFINISHED) {
            // If an `initdb` has not ended yet and still writes, the next start removes the rest.
            let _ = fs::remove_dir_all(entry.path());
        } else if entry.path().join("PG_VERSION").is_file() {
            others = format!(
                "; the data of another version stays in {}",
                entry.path().display()
            );
        }
    }
    if server.data_dir.exists() {
        return Ok(());
    }
    let new = server.data_dir.display();
    eprintln!("creating the PostgreSQL cluster in {new} (first start only{others}) ...");
    create(server, durable)
}

/// Fills a directory with another name and renames it, so that a killed program leaves no
/// incomplete cluster under the final name.
fn create(server: &Server, durable: bool) -> Result<(), Error> {
    let mut unfinished = server.data_dir.as_os_str().to_owned();
    unfinished.push(format!("{UNFINISHED}{}", std::process::id()));
    let unfinished = place::private(Path::new(&unfinished), server.account.uid, 0o700)?;

    let initdb = server.bin_dir.join("initdb");
    let mut command = server.account.command(&initdb, &unfinished);
    command
        .args([
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-instructions",
            "--username",
            ROLE,
        ])
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
    fs::rename(&unfinished, &server.data_dir).map_err(Error::io("create", &server.data_dir))
}
