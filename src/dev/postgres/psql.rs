//! Runs statements through `psql`, for work before a real client can connect.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::command;
use super::error::{Error, said};
use super::server::Server;
use super::socket;

/// The database that every cluster has.
const MAINTENANCE: &str = "postgres";

/// `CREATE DATABASE` has no `IF NOT EXISTS`; `\gexec` runs the query's result, if there is one.
const ENSURE: &str = "SELECT format('CREATE DATABASE %I', :'name') \
    WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'name') \\gexec\n";

/// The server's packages often leave its extensions to another package.
const ENSURE_EXTENSION: &str = "SELECT format('CREATE EXTENSION IF NOT EXISTS %I', :'name') \
    WHERE EXISTS (SELECT FROM pg_available_extensions WHERE name = :'name') \\gexec\n";

/// See [`super::Postgres::psql`].
pub(super) fn command(server: &Server, database: &str) -> Command {
    let mut command = command::plain(program(server));
    command
        .args(["--no-psqlrc", "--no-password", "--quiet", "--tuples-only"])
        .args(["--no-align", "--set=ON_ERROR_STOP=1"])
        .arg(format!("--dbname={}", socket::url(&server.socket_dir, database)));
    command
}

/// Returns the `psql` beside the server, or the one on PATH where packages separate the two.
fn program(server: &Server) -> PathBuf {
    let beside = server.bin_dir.join("psql");
    if beside.is_file() { beside } else { PathBuf::from("psql") }
}

/// See [`super::Postgres::ensure_database`].
pub(super) fn ensure_database(server: &Server, database: &str) -> Result<(), Error> {
    // If two programs create it at once, one fails and finds it on its second try.
    let create = || run(server, MAINTENANCE, ENSURE, database);
    create().or_else(|_| create())
}

/// See [`super::Postgres::ensure_extension`].
pub(super) fn ensure_extension(server: &Server, database: &str, extension: &str) -> Result<(), Error> {
    run(server, database, ENSURE_EXTENSION, extension)
}

/// Runs a script with a name as its variable.
fn run(server: &Server, database: &str, script: &str, name: &str) -> Result<(), Error> {
    let program = program(server);
    let mut psql = command(server, database)
        .arg(format!("--set=name={name}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::io("run", &program))?;
    if let Some(mut stdin) = psql.stdin.take() {
        // A psql that could not connect reads nothing; its exit status is reported below.
        let _ = stdin.write_all(script.as_bytes());
    }
    let output = psql.wait_with_output().map_err(Error::io("run", &program))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Psql { database: database.to_owned(), output: said(&output) })
}
