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
    create_if_missing(server, database).or_else(|_| create_if_missing(server, database))
}

fn create_if_missing(server: &Server, database: &str) -> Result<(), Error> {
    let program = program(server);
    let mut psql = command(server, MAINTENANCE)
        .arg(format!("--set=name={database}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::io("run", &program))?;
    if let Some(mut stdin) = psql.stdin.take() {
        // A psql that could not connect reads nothing, and says why below.
        let _ = stdin.write_all(ENSURE.as_bytes());
    }
    let output = psql.wait_with_output().map_err(Error::io("run", &program))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Psql { database: database.to_owned(), output: said(&output) })
}
