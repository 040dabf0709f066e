//! What `.ci/real` installs, and how it is run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::deploy::tools;
use crate::support::missing::skip;

/// A file of the project, or of its `target` folder.
pub fn project(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// The folder that Python's packages are in, and the programs that this machine lacked.
fn environment() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("real")
}

fn there(file: PathBuf) -> Option<PathBuf> {
    if !file.exists() {
        skip(&format!("{} is not there; `.ci/real` installs it", file.display()));
        return None;
    }
    Some(file)
}

/// A program of that folder, or else of this machine.
fn program(name: &str) -> Option<PathBuf> {
    let own = environment().join("bin").join(name);
    if own.is_file() { Some(own) } else { tools::program(name) }
}

/// A command that does not go on for ever, with the rest of the environment that its caches need.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.arg("300").arg(program).env("no_proxy", "*");
    command
}

/// Node, where the packages are that our programs for it import.
pub fn node() -> Option<PathBuf> {
    there(project("tests/real/node_modules"))?;
    program("node")
}

/// npm with the Node that is used here, for a folder whose packages are there.
pub fn npm(folder: &str) -> Option<Command> {
    there(project(folder).join("node_modules"))?;
    let (npm, node) = (program("npm")?, program("node")?);
    let mut command = command(&npm);
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = node.parent().map(Path::to_owned).into_iter().chain(env::split_paths(&path));
    command.env("PATH", env::join_paths(folders).unwrap());
    Some(command)
}

/// Maven without the network, for a folder that was built before.
pub fn maven(folder: &str) -> Option<Command> {
    there(project(folder).join("target/test-classes"))?;
    let mut command = Command::new("timeout");
    command.arg("600").arg(program("mvn")?).args(["-q", "-B", "-o"]).current_dir(project(folder));
    Some(command)
}

/// Maven without the network, in a folder that becomes that of our program in Java.
pub fn java_project(folder: &Path) -> Option<Command> {
    there(environment().join("java-project"))?;
    let from = project("tests/real/generated/java");
    for file in ["pom.xml", "src/main/java/Backend.java"] {
        fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
        fs::copy(from.join(file), folder.join(file)).unwrap();
    }
    let mut command = command(&program("mvn")?);
    // It ends before it would pay to compile it well.
    command.env("MAVEN_OPTS", "-XX:TieredStopAtLevel=1");
    command.args(["-q", "-B", "-o"]).current_dir(folder);
    Some(command)
}

/// Python, with the packages.
pub fn python() -> Option<PathBuf> {
    there(environment().join("bin/python"))
}

/// Go, whose modules are in its cache.
pub fn go() -> Option<PathBuf> {
    program("go")
}

/// Java, and the archive of openapi-generator.
pub fn openapi_generator() -> Option<(PathBuf, PathBuf)> {
    let java = program("java")?;
    let packages = there(environment().join("lib"))?;
    let versions = packages.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let archive = "site-packages/openapi_generator_cli/openapi-generator.jar";
    let mut archives = versions.map(|version| version.join(archive)).filter(|archive| archive.is_file());
    Some((java, there(archives.next().unwrap_or(packages.join(archive)))?))
}

/// The folder of Keycloak, built for the way it is started here.
pub fn keycloak() -> Option<PathBuf> {
    program("java")?;
    there(environment().join("keycloak"))
}

/// What a program printed. It has to end well.
pub async fn printed(mut command: Command) -> String {
    let what = format!("{command:?}");
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{what}\n{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}
