//! A private `PostgreSQL` server: it is found on the machine, gets a cluster of its own, and runs
//! as long as this program.
//!
//! It is for development without a `DATABASE_URL` and for the test suite. It is no client (it
//! returns a URL) and no way to run a database in production.

mod account;
mod cluster;
mod error;
mod locate;
mod place;
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use url::form_urlencoded::byte_serialize;

use account::Account;
use server::{PAUSE, PORT, Server};

pub use error::Error;

/// The database superuser, and the only role of a new cluster. Only the owner of the socket
/// directory can connect, so it has no password.
pub const ROLE: &str = "vestibule";

/// The kind of server and its directory.
pub struct Options {
    /// The directory of the cluster and the server's log, e.g. `<project>/.vestibule`. It is
    /// created if missing.
    pub data_dir_root: PathBuf,
    /// True if data must survive a crash of the *machine*. Tests set `false`, which disables every
    /// `fsync`; even then, committed data survives a `kill -9` of the server or of this program.
    pub durable: bool,
    pub max_connections: u16,
    /// Further server settings, `(name, value)`; they override the built-in ones.
    pub settings: Vec<(String, String)>,
}

impl Options {
    /// Creates options for a durable server for 100 connections.
    pub fn new(data_dir_root: impl Into<PathBuf>) -> Self {
        Self {
            data_dir_root: data_dir_root.into(),
            durable: true,
            max_connections: 100,
            settings: Vec::new(),
        }
    }

    /// Returns the directory that is used and the server in it, running or not.
    fn server(&self) -> Result<(PathBuf, Server), Error> {
        let account = Account::choose()?;
        let root = place::root(&self.data_dir_root, &account)?;
        let locate::Installation { bin_dir, major } = locate::installation()?;
        let data_dir = cluster::data_dir(&root, major);
        let socket_dir = place::socket_dir(&data_dir, &account);
        let log = data_dir.with_extension("log");
        Ok((
            root,
            Server {
                bin_dir,
                data_dir,
                socket_dir,
                account,
                log,
            },
        ))
    }
}

/// The time in which a server accepts connections, also after a crash.
const STARTING: Duration = Duration::from_mins(5);
/// The time for a fast shutdown, before the server is killed.
const STOPPING: Duration = Duration::from_secs(15);

/// A running server. Dropping this value stops it and waits for the end (a fast shutdown).
#[derive(Debug)]
pub struct Postgres {
    server: Server,
    process: Child,
}

impl Postgres {
    /// Finds `PostgreSQL`, creates the cluster if it does not exist, and starts the server. Returns
    /// once it accepts connections. That takes some seconds the first time, a fraction of a second
    /// later, and longer after a crash.
    pub fn start(options: &Options) -> Result<Self, Error> {
        let (root, server) = options.server()?;
        let log = server.lock()?;
        cluster::ensure(&root, &server, options.durable)?;
        let process = server.spawn(log, options)?;
        let mut postgres = Self { server, process };
        postgres.wait()?;
        Ok(postgres)
    }

    /// Waits until the server accepts connections.
    fn wait(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        while let Err(error) = self.run("postgres", "SELECT 1") {
            if !matches!(error, Error::Psql(..)) || began.elapsed() > STARTING {
                return Err(error);
            }
            if self
                .process
                .try_wait()
                .map_err(Error::io("wait for", &self.server.bin_dir))?
                .is_some()
            {
                return Err(self.server.not_started());
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Returns the URL of `database` on the server that another program runs with these options, if
    /// there is one.
    pub fn beside(options: &Options, database: &str) -> Result<Option<String>, Error> {
        let (_, server) = options.server()?;
        Ok(server
            .is_running()?
            .then(|| url(&server.socket_dir, database)))
    }

    /// Returns the URL of `database` on this server, for `sqlx` and libpq. It contains port and
    /// `sslmode`, so that no `PG*` variable of the environment can override them.
    pub fn url(&self, database: &str) -> String {
        url(&self.server.socket_dir, database)
    }

    /// Returns the directory of the server's Unix socket, which only its owner can enter.
    pub fn socket_dir(&self) -> &Path {
        &self.server.socket_dir
    }

    /// Returns the cluster's data directory. It is below [`Options::data_dir_root`], unless the
    /// server's user cannot enter that.
    pub fn data_dir(&self) -> &Path {
        &self.server.data_dir
    }

    /// Returns the postmaster's process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn ensure_database(&self, database: &str) -> Result<(), Error> {
        let create = format!("CREATE DATABASE \"{}\"", database.replace('"', "\"\""));
        // The statement has no `IF NOT EXISTS`.
        self.run(database, "SELECT 1")
            .or_else(|_| self.run("postgres", &create))
    }

    /// Creates the extension in `database`, unless it exists or is not installed on this machine.
    pub fn ensure_extension(&self, database: &str, extension: &str) -> Result<(), Error> {
        // The server's packages often leave its extensions to another package.
        let available = format!("SELECT FROM pg_available_extensions WHERE name = '{extension}'");
        let create = format!("CREATE EXTENSION IF NOT EXISTS {extension}");
        self.run(
            database,
            &format!("DO $$ BEGIN IF EXISTS ({available}) THEN {create}; END IF; END $$"),
        )
    }

    /// Returns `psql` connected to `database`: no startup file, no password prompt, no `PG*`
    /// variable; it exits on an error. The caller adds the statements.
    pub fn psql(&self, database: &str) -> Command {
        // Some packages separate it from the server.
        let beside = self.server.bin_dir.join("psql");
        let mut command = account::plain(if beside.is_file() {
            beside
        } else {
            "psql".into()
        });
        command
            .args([
                "--no-psqlrc",
                "--no-password",
                "--quiet",
                "--tuples-only",
                "--no-align",
            ])
            .args(["--set=ON_ERROR_STOP=1", "--dbname", &self.url(database)]);
        command
    }

    fn run(&self, database: &str, statement: &str) -> Result<(), Error> {
        let output = self
            .psql(database)
            .args(["-c", statement])
            .output()
            .map_err(Error::io("run", "psql"))?;
        let refused = || Error::Psql(database.to_owned(), error::said(&output));
        output.status.success().then_some(()).ok_or_else(refused)
    }

    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let began = Instant::now();
        while matches!(self.process.try_wait(), Ok(None)) && began.elapsed() < STOPPING {
            thread::sleep(PAUSE);
        }
        // The process is ours, so these do not fail. A process that has ended takes no signal.
        let _ = self.process.kill();
        let _ = self.process.wait();
        // The next start creates it again, so an error does not matter.
        let _ = fs::remove_dir(&self.server.socket_dir);
    }
}

fn url(socket_dir: &Path, database: &str) -> String {
    // libpq takes a plus sign for itself.
    let encoded = |bytes| {
        byte_serialize(bytes)
            .collect::<String>()
            .replace('+', "%20")
    };
    let database = encoded(database.as_bytes());
    let host = encoded(socket_dir.as_os_str().as_encoded_bytes());
    format!("postgres://{ROLE}@localhost:{PORT}/{database}?host={host}&sslmode=disable")
}
