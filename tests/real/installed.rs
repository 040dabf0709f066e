//! Commands for the programs and packages that `.ci/real` installs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::programs::program;
use crate::support::missing::skip;

/// The oldest Java that the projects compile with.
const JAVA: (u32, u32) = (17, 0);

/// A file of the project, or of its `target` folder.
pub fn project(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// The folder of Python's packages, of the caches of Go and Maven, and of programs that this
/// machine lacked.
fn environment() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .unwrap()
        .join("real")
}

fn there(file: PathBuf) -> Option<PathBuf> {
    if !file.exists() {
        skip(&format!(
            "{} is not there; `.ci/real` installs it",
            file.display()
        ));
        return None;
    }
    Some(file)
}

/// A command with a time limit. It inherits the environment, without `JAVA_HOME` and proxies.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command
        .arg("600")
        .arg(program)
        .env("no_proxy", "*")
        .env_remove("JAVA_HOME");
    command
}

/// Node, if the packages that our programs import are installed.
pub fn node() -> Option<PathBuf> {
    there(project("tests/real/node_modules"))?;
    program("node", (20, 0))
}

/// npm with the Node of these tests, for a folder with installed packages.
pub fn npm(folder: &str) -> Option<Command> {
    there(project(folder).join("node_modules"))?;
    let npm = program("npm", (9, 0))?;
    let node = program("node", (20, 0))?;
    let mut command = command(&npm);
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = node
        .parent()
        .map(Path::to_owned)
        .into_iter()
        .chain(env::split_paths(&path));
    command.env("PATH", env::join_paths(folders).unwrap());
    Some(command)
}

/// Maven without the network, with the packages that `.ci/real` has fetched.
fn maven() -> Option<Command> {
    there(environment().join("complete"))?;
    program("javac", JAVA)?;
    let mut command = command(&program("mvn", (3, 6))?);
    command.args(["-q", "-B", "-o"]).arg(format!(
        "-Dmaven.repo.local={}",
        environment().join("maven").display()
    ));
    Some(command)
}

/// Maven in a folder that was built before.
pub fn maven_in(folder: &str) -> Option<Command> {
    there(project(folder).join("target/test-classes"))?;
    let mut command = maven()?;
    command.current_dir(project(folder));
    Some(command)
}

/// Copies our Java program into a folder, and returns Maven for it.
pub fn java_project(folder: &Path) -> Option<Command> {
    let mut command = maven()?;
    let from = project("tests/real/generated/java");
    for file in ["pom.xml", "src/main/java/Backend.java"] {
        fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
        fs::copy(from.join(file), folder.join(file)).unwrap();
    }
    // Maven runs too briefly for the optimizing compiler to pay off.
    command
        .env("MAVEN_OPTS", "-XX:TieredStopAtLevel=1")
        .current_dir(folder);
    Some(command)
}

/// Python with its installed packages.
pub fn python() -> Option<PathBuf> {
    there(environment().join("bin/python"))
}

/// Makes a folder one of our modules, and returns Go for it, without the network and with the
/// modules that `.ci/real` has fetched.
pub fn go(folder: &Path) -> Option<impl Fn() -> Command> {
    there(environment().join("complete"))?;
    let go = program("go", (1, 25))?;
    for file in ["go.mod", "go.sum"] {
        fs::copy(project("tests/real").join(file), folder.join(file)).unwrap();
    }
    let folder = folder.to_owned();
    Some(move || {
        let mut command = command(&go);
        command
            .current_dir(&folder)
            .env("GOMODCACHE", environment().join("go"));
        command.envs([
            ("GOPROXY", "off"),
            ("GOFLAGS", ""),
            ("GOTOOLCHAIN", "local"),
            ("GOWORK", "off"),
        ]);
        command
    })
}

/// Java, and the archive of openapi-generator.
pub fn openapi_generator() -> Option<(PathBuf, PathBuf)> {
    let java = program("java", JAVA)?;
    let packages = there(environment().join("lib"))?;
    let versions = packages
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let archive = "site-packages/openapi_generator_cli/openapi-generator.jar";
    let mut archives = versions
        .map(|version| version.join(archive))
        .filter(|archive| archive.is_file());
    Some((
        java,
        there(archives.next().unwrap_or(packages.join(archive)))?,
    ))
}

/// The folder of Keycloak, built for the options that the tests start it with.
pub fn keycloak() -> Option<PathBuf> {
    program("java", JAVA)?;
    there(environment().join("keycloak"))
}

/// Runs a program that must succeed, and returns its output.
pub async fn printed(mut command: Command) -> String {
    let what = format!("{command:?}");
    let output = tokio::task::spawn_blocking(move || command.output())
        .await
        .unwrap()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{what}\n{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    said
}
