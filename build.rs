//! Rebuilds when the schema changes, keeps the build away from any database, and records the commit.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=.sqlx");
    println!("cargo:rerun-if-env-changed=SQLX_OFFLINE");
    // Queries are checked against the committed `.sqlx`, also where DATABASE_URL names the database
    // that the program, not the compiler, should use.
    if env::var_os("SQLX_OFFLINE").is_none() {
        println!("cargo:rustc-env=SQLX_OFFLINE=true");
    }
    println!("cargo:rerun-if-env-changed=VESTIBULE_COMMIT");
    println!("cargo:rustc-env=VESTIBULE_COMMIT={}", commit());
}

/// Returns the commit that is built: `VESTIBULE_COMMIT`, or that of the repository, or `unknown` in a source archive. A build
/// for development does not ask the repository, because each commit would compile everything anew.
fn commit() -> String {
    let given = env::var("VESTIBULE_COMMIT").ok().filter(|commit| !commit.is_empty());
    let release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    given.or_else(|| if release { of_repository() } else { None }).unwrap_or_else(|| "unknown".into())
}

fn of_repository() -> Option<String> {
    // An archive that was unpacked inside another repository is none of its commits.
    if !Path::new(&env::var_os("CARGO_MANIFEST_DIR")?).join(".git").exists() {
        return None;
    }
    let git = |arguments: &[&str]| {
        let output =
            Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    // Each commit, and each change of the branch, adds a line to it.
    println!("cargo:rerun-if-changed={}", git(&["rev-parse", "--git-path", "logs/HEAD"])?);
    git(&["rev-parse", "HEAD"])
}
