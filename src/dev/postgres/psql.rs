//! Statements through `psql`, for what must happen before a real client can
//! connect. Not a client library.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::command;
use super::error::{Error, said};
use super::server::Server;
use super::socket;

/// The database every cluster has.
const MAINTENANCE: &str = "postgres";

/// `CREATE DATABASE` knows no `IF NOT EXISTS`; `\gexec` runs what the query
/// returns, if it returns anything.
const ENSURE: &str = "SELECT format('CREATE DATABASE %I', :'name') \
    WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'name') \\gexec\n";

/// Packages of the server often leave its extensions to another package.
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

/// Beside the server, or on PATH where packages split the two.
fn program(server: &Server) -> PathBuf {
    let beside = server.bin_dir.join("psql");
    if beside.is_file() { beside } else { PathBuf::from("psql") }
}

/// See [`super::Postgres::ensure_database`].
pub(super) fn ensure_database(server: &Server, database: &str) -> Result<(), Error> {
    // Of two that create it at once one fails, and finds it at its second try.
    let create = || run(server, MAINTENANCE, ENSURE, database);
    create().or_else(|_| create())
}

/// See [`super::Postgres::ensure_extension`].
pub(super) fn ensure_extension(server: &Server, database: &str, extension: &str) -> Result<(), Error> {
    run(server, database, ENSURE_EXTENSION, extension)
}

/// Runs a script about a name.
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
        // A psql that could not connect reads nothing, and says why below.
        let _ = stdin.write_all(script.as_bytes());
    }
    let output = psql.wait_with_output().map_err(Error::io("run", &program))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Psql { database: database.to_owned(), output: said(&output) })
}
