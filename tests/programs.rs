//! Finds programs of others on this machine.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::missing::skip;

/// Debian's folders for servers, which not every user has in PATH.
const FOLDERS: [&str; 2] = ["/usr/local/sbin", "/usr/sbin"];

/// Finds a program in `target/real` or on this machine that starts and has at least that version.
/// Otherwise the test is skipped.
pub fn program(name: &str, least: (u32, u32)) -> Option<PathBuf> {
    one_of(&[name], least)
}

/// The same for a program with several names.
pub fn one_of(names: &[&str], least: (u32, u32)) -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .unwrap()
        .join("real/bin");
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = [own]
        .into_iter()
        .chain(env::split_paths(&path))
        .chain(FOLDERS.map(PathBuf::from));
    let mut files = folders.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    let sound = files.find(|file| file.is_file() && version(file) >= Some(least));
    if sound.is_none() {
        skip(&format!(
            "there is no {} {}.{} or newer that starts",
            names.join(" or "),
            least.0,
            least.1
        ));
    }
    sound
}

/// Major and minor version that a program reports, if it starts.
pub fn version(program: &Path) -> Option<(u32, u32)> {
    let ask = match program.file_name()?.to_str()? {
        "haproxy" | "nginx" => "-v",
        "go" => "version",
        _ => "--version",
    };
    // A wrong JAVA_HOME would stop a Java program that PATH finds.
    let output = Command::new(program)
        .arg(ask)
        .env_remove("JAVA_HOME")
        .output()
        .ok()?;
    let said = String::from_utf8([output.stdout, output.stderr].concat()).ok()?;
    let words: Vec<_> = said
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .collect();
    // Numbers with a dot take precedence: a lone number may be the code of a colour.
    let dotted = words.iter().find_map(|word| {
        let (major, rest) = word.split_once('.')?;
        Some((major.parse().ok()?, rest.split('.').next()?.parse().ok()?))
    });
    let version = dotted.or_else(|| words.iter().find_map(|word| Some((word.parse().ok()?, 0))));
    version.filter(|_| output.status.success())
}
