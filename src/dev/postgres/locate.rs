//! Finds the `PostgreSQL` installation to run.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::cluster;
use super::command;
use super::error::Error;

/// The variable that names the bin directory, which replaces the search.
pub(super) const OVERRIDE: &str = "VESTIBULE_PG_BIN";

/// Older servers are out of support and not tested.
pub(super) const OLDEST_MAJOR: u32 = 14;

/// The `bin` directories of packages: the path before and after the version.
const PACKAGED: [(&str, &str, &str); 8] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/opt/homebrew/opt", "postgresql@", "bin"),
    ("/opt/homebrew/opt", "postgresql", "bin"),
    ("/usr/local/opt", "postgresql@", "bin"),
    ("/usr/local/opt", "postgresql", "bin"),
    ("/home/linuxbrew/.linuxbrew/opt", "postgresql@", "bin"),
    ("/Applications/Postgres.app/Contents/Versions", "", "bin"),
];

/// A usable `PostgreSQL` installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Installation {
    pub(super) bin_dir: PathBuf,
    pub(super) major: u32,
}

/// Returns the installation for the clusters in `root`: the one the environment names, otherwise the best found.
pub(super) fn installation(root: &Path) -> Result<Installation, Error> {
    if let Some(dir) = env::var_os(OVERRIDE) {
        return overridden(PathBuf::from(dir));
    }
    best(&candidates(), &cluster::majors(root))
}

fn overridden(dir: PathBuf) -> Result<Installation, Error> {
    let why = match examine(&dir) {
        Ok(found) if found.major >= OLDEST_MAJOR => return Ok(found),
        Ok(found) => {
            format!("that is PostgreSQL {}, and {OLDEST_MAJOR} is the oldest supported", found.major)
        }
        Err(why) => why,
    };
    Err(Error::Override { dir, why })
}

/// Returns the bin directories of the `PostgreSQL` on PATH and then of packages, the newest first.
fn candidates() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).filter_map(|dir| {
        // PATH often has only a link to the server itself.
        let server = fs::canonicalize(dir.join("postgres")).ok()?;
        server.parent().map(Path::to_owned)
    });
    let mut packaged: Vec<(u32, PathBuf)> =
        PACKAGED.iter().flat_map(|(parent, prefix, bin)| versions(Path::new(parent), prefix, bin)).collect();
    packaged.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    on_path.chain(packaged.into_iter().map(|(_, dir)| dir)).collect()
}

/// Returns the bin directories at `<parent>/<prefix><version>/<bin>` with their version as a number (so that 9 is
/// older than 10); zero if there is none.
fn versions(parent: &Path, prefix: &str, bin: &str) -> Vec<(u32, PathBuf)> {
    fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let version = name.to_str()?.strip_prefix(prefix)?;
            let version = match version {
                "" | "latest" => 0,
                version => leading_number(version)?,
            };
            Some((version, entry.path().join(bin)))
        })
        .collect()
}

/// Returns the first usable candidate. One whose major version already has a data directory comes first (the newest
/// of those): an additional `PostgreSQL` must not hide existing data.
fn best(candidates: &[PathBuf], with_data: &[u32]) -> Result<Installation, Error> {
    let found: Vec<Installation> = candidates.iter().filter_map(|dir| examine(dir).ok()).collect();
    let usable = || found.iter().filter(|found| found.major >= OLDEST_MAJOR);
    with_data
        .iter()
        .rev()
        .find_map(|major| usable().find(|found| found.major == *major))
        .or_else(|| usable().next())
        .cloned()
        .ok_or_else(|| Error::NotInstalled {
            found: found.first().map_or_else(String::new, |old| {
                format!(" (only {} in {})", old.major, old.bin_dir.display())
            }),
        })
}

/// Returns the installation in `dir`, or the reason why it cannot be used.
fn examine(dir: &Path) -> Result<Installation, String> {
    for program in ["postgres", "initdb"] {
        if !dir.join(program).is_file() {
            return Err(format!("there is no `{program}` in it"));
        }
    }
    let output = command::plain(dir.join("postgres"))
        .arg("--version")
        .output()
        .map_err(|error| format!("its `postgres` cannot be run ({error})"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let major = major(&text).ok_or_else(|| "its `postgres` does not tell its version".to_owned())?;
    Ok(Installation { bin_dir: dir.to_owned(), major })
}

/// Reads the major version, e.g. from `postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)`.
fn major(text: &str) -> Option<u32> {
    leading_number(text.split_once("(PostgreSQL) ")?.1)
}

fn leading_number(text: &str) -> Option<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Bin directories with a `postgres` that says it is of these versions.
    fn installed(test: &str, versions: &[&str]) -> (PathBuf, Vec<PathBuf>) {
        let base = env::temp_dir().join(format!("locate-{test}-{}", std::process::id()));
        let dirs: Vec<PathBuf> = versions.iter().map(|v| base.join(v)).collect();
        for (dir, version) in dirs.iter().zip(versions) {
            fs::create_dir_all(dir).unwrap();
            for program in ["postgres", "initdb"] {
                let file = dir.join(program);
                fs::write(&file, format!("#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")).unwrap();
                fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        (base, dirs)
    }

    #[test]
    fn without_postgresql_the_error_is_one_line_that_says_what_to_install() {
        let error = best(&[PathBuf::from("/nonexistent/bin")], &[]).unwrap_err();
        let text = error.to_string();
        assert_eq!(text.lines().count(), 1);
        for hint in [
            "sudo apt-get install postgresql",
            "sudo dnf install postgresql-server",
            "brew install postgresql@17",
        ] {
            assert!(text.contains(hint), "{text}");
        }
    }

    #[test]
    fn the_first_candidate_wins_unless_another_has_the_data() {
        let (base, dirs) = installed("data", &["17.5", "15.2"]);
        assert_eq!(best(&dirs, &[]).unwrap().major, 17);
        assert_eq!(best(&dirs, &[15]).unwrap().major, 15);
        assert_eq!(best(&dirs, &[15, 17]).unwrap().major, 17);
        assert_eq!(best(&dirs, &[16]).unwrap().major, 17);
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_postgresql_that_is_too_old_is_named_and_refused() {
        let (base, dirs) = installed("old", &["9.6.24"]);
        let text = best(&dirs, &[]).unwrap_err().to_string();
        assert!(text.contains("only 9 in"), "{text}");
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        let (base, _) = installed("order", &["pg-9.6", "pg-17", "pg-15", "other"]);
        let mut found: Vec<u32> =
            versions(&base, "pg-", "bin").into_iter().map(|(version, _)| version).collect();
        found.sort_unstable();
        assert_eq!(found, [9, 15, 17]);
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn the_major_is_read_from_every_spelling_of_a_version() {
        for (text, expected) in [
            ("postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)\n", 15),
            ("postgres (PostgreSQL) 18beta1", 18),
            ("postgres (PostgreSQL) 9.6.24", 9),
        ] {
            assert_eq!(major(text), Some(expected));
        }
        assert_eq!(major("something else"), None);
    }
}
