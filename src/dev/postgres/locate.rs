//! Finds the `PostgreSQL` installation to run.

use std::cmp::Reverse;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::account;
use super::error::{Error, OLDEST_MAJOR, OVERRIDE};

/// The directories of packages: the parent of one for each version, and the beginning of their
/// names.
const PACKAGED: [(&str, &str); 6] = [
    ("/usr/lib/postgresql", ""),
    ("/usr", "pgsql-"),
    ("/opt/homebrew/opt", "postgresql"),
    ("/usr/local/opt", "postgresql"),
    ("/home/linuxbrew/.linuxbrew/opt", "postgresql"),
    ("/Applications/Postgres.app/Contents/Versions", ""),
];

#[derive(Debug)]
pub(super) struct Installation {
    pub(super) bin_dir: PathBuf,
    pub(super) major: u32,
}

/// Returns the installation that the environment names, otherwise the first usable one.
pub(super) fn installation() -> Result<Installation, Error> {
    let Some(dir) = env::var_os(OVERRIDE).map(PathBuf::from) else {
        return first_usable(found());
    };
    match examine(&dir) {
        Ok(found) if found.major >= OLDEST_MAJOR => Ok(found),
        Ok(Installation { major, .. }) => Err(Error::Override(
            dir,
            format!(
                "it contains PostgreSQL {major}, and the oldest supported version is {OLDEST_MAJOR}"
            ),
        )),
        Err(why) => Err(Error::Override(dir, why)),
    }
}

/// Returns the `PostgreSQL` on PATH, and then the packaged ones, the newest first.
fn found() -> Vec<Installation> {
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).filter_map(|dir| {
        // PATH often has only a link to the server itself.
        examine(fs::canonicalize(dir.join("postgres")).ok()?.parent()?).ok()
    });
    let versions = PACKAGED.iter().flat_map(|(parent, prefix)| {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        entries.filter(move |entry| entry.file_name().to_string_lossy().starts_with(prefix))
    });
    let mut packaged: Vec<_> = versions
        .filter_map(|version| examine(&version.path().join("bin")).ok())
        .collect();
    packaged.sort_by_key(|found| Reverse(found.major));
    on_path.chain(packaged).collect()
}

fn first_usable(found: Vec<Installation>) -> Result<Installation, Error> {
    let old = found
        .first()
        .map(|old| format!(" (only {} in {})", old.major, old.bin_dir.display()));
    let usable = found.into_iter().find(|found| found.major >= OLDEST_MAJOR);
    usable.ok_or_else(|| Error::NotInstalled(old.unwrap_or_default()))
}

/// Returns the installation in `dir`, or the reason why it cannot be used.
fn examine(dir: &Path) -> Result<Installation, String> {
    let mut programs = ["postgres", "initdb"].into_iter();
    if let Some(missing) = programs.find(|program| !dir.join(program).is_file()) {
        return Err(format!("it does not contain `{missing}`"));
    }
    let output = account::plain(dir.join("postgres"))
        .arg("--version")
        .output()
        .map_err(|error| format!("its `postgres` cannot be run ({error})"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let major =
        major(&text).ok_or_else(|| "the version of its `postgres` is unknown".to_owned())?;
    Ok(Installation {
        bin_dir: dir.to_owned(),
        major,
    })
}

/// Reads the major version, e.g. from `postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)`.
fn major(text: &str) -> Option<u32> {
    let version = text.split_once("(PostgreSQL) ")?.1;
    version
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the choice among installations of these versions.
    fn chosen(majors: &[u32]) -> Result<u32, String> {
        let found = majors.iter().map(|major| Installation {
            bin_dir: "/pg/bin".into(),
            major: *major,
        });
        first_usable(found.collect())
            .map(|found| found.major)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_first_usable_installation_wins() {
        assert_eq!(chosen(&[9, 17, 15]), Ok(17));
        let packages = [
            "apt-get install postgresql",
            "dnf install postgresql-server",
            "brew install postgresql@17",
        ];
        for (majors, found) in [
            (&[][..], "newer found;"),
            (&[9], "found (only 9 in /pg/bin);"),
        ] {
            let text = chosen(majors).unwrap_err();
            assert!(
                packages.iter().all(|package| text.contains(package)) && text.contains(found),
                "{text}"
            );
            assert_eq!(text.lines().count(), 1);
        }
    }

    #[test]
    fn the_major_is_read_from_every_spelling_of_a_version() {
        for (text, expected) in [
            (
                "postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)\n",
                Some(15),
            ),
            ("postgres (PostgreSQL) 18beta1", Some(18)),
            ("postgres (PostgreSQL) 9.6.24", Some(9)),
            ("something else", None),
        ] {
            assert_eq!(major(text), expected);
        }
    }
}
