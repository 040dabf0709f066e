//! A private `PostgreSQL` server, owned by this program: it is found on the machine, gets a cluster of its own, and
//! is restarted and stopped by this program.
//!
//! It is for development without a `DATABASE_URL` and for the test suite. It is no client (it returns a URL) and no
//! way to run a database in production.

mod account;
mod cluster;
mod command;
mod error;
mod leftover;
mod locate;
mod lock;
mod log;
mod pidfile;
mod place;
mod psql;
mod server;
mod settings;
mod socket;
mod supervisor;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use account::Account;
use cluster::Cluster;
use lock::Lock;
use log::Log;
use server::Server;
use supervisor::Supervisor;

pub use error::Error;

/// The database superuser, and the only role of a new cluster. Only the owner of the socket directory can connect,
/// so it has no password.
pub const ROLE: &str = "vestibule";

/// A function that receives progress lines for a human. The supervisor's thread calls it, too.
pub type Progress = Arc<dyn Fn(&str) + Send + Sync>;

/// The kind of server and its directory.
#[derive(Clone)]
pub struct Options {
    /// The directory of the cluster, the server's log and the lock, e.g. `<project>/.vestibule`. It is created if
    /// missing.
    pub data_dir_root: PathBuf,
    /// True if data must survive a crash of the *machine*. Tests set `false`, which disables every `fsync`; even
    /// then, committed data survives a `kill -9` of the server or of this program.
    pub durable: bool,
    /// The largest number of connected clients.
    pub max_connections: u16,
    /// Further server settings, `(name, value)`; they override the built-in ones.
    pub settings: Vec<(String, String)>,
    /// Receives lines such as "creating the `PostgreSQL` cluster ...".
    pub progress: Progress,
}

impl Options {
    /// Creates options for a durable server for 100 connections that reports no progress.
    pub fn new(data_dir_root: impl Into<PathBuf>) -> Self {
        Self {
            data_dir_root: data_dir_root.into(),
            durable: true,
            max_connections: 100,
            settings: Vec::new(),
            progress: Arc::new(|_| ()),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("data_dir_root", &self.data_dir_root)
            .field("durable", &self.durable)
            .field("max_connections", &self.max_connections)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// A running server. It is restarted whenever it dies, until this value is dropped; dropping stops it and waits for
/// the end (a fast shutdown).
#[derive(Debug)]
pub struct Postgres {
    // Fields are dropped in this order: the lock is released only after the server has stopped.
    supervisor: Supervisor,
    server: Arc<Server>,
    _lock: Lock,
}

impl Postgres {
    /// Finds `PostgreSQL`, creates the cluster if there is none, and starts it. Returns once the server accepts
    /// connections. That takes some seconds the first time and a fraction of one later. It takes longer after a
    /// crash, or while a server left by a killed program is still stopping.
    ///
    /// # Errors
    ///
    /// Any [`Error`]: each names the problem and the remedy in one line.
    pub fn start(options: Options) -> Result<Self, Error> {
        let Options { data_dir_root, durable, max_connections, settings, progress } = options;
        let account = Account::choose()?;
        let root = place::choose(&data_dir_root, account.as_ref(), &progress)?;
        let lock = Lock::acquire(&root)?;
        let installation = locate::installation(&root)?;
        let cluster = Cluster::open(&root, &installation, account.as_ref(), durable, progress.as_ref())?;
        let socket_dir = socket::directory(&cluster.data_dir, account.as_ref())?;
        let log = Log::open(root.join(format!("postgres-{}.log", installation.major)))?;
        let settings = settings::all(&socket_dir, durable, max_connections, settings);
        let server = Arc::new(Server {
            bin_dir: installation.bin_dir,
            data_dir: cluster.data_dir,
            socket_dir,
            account,
            settings,
            log,
            progress,
        });
        let supervisor = Supervisor::start(Arc::clone(&server))?;
        Ok(Self { supervisor, server, _lock: lock })
    }

    /// Returns the URL of `database` on this server, for `sqlx` and libpq. It contains port and `sslmode`, so that
    /// no `PG*` variable of the environment can override them.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        socket::url(&self.server.socket_dir, database)
    }

    /// Returns the directory of the server's Unix socket, which only its owner can enter.
    #[must_use]
    pub fn socket_dir(&self) -> &Path {
        &self.server.socket_dir
    }

    /// Returns the cluster's data directory. It is below [`Options::data_dir_root`], unless the server's user cannot
    /// enter that.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.server.data_dir
    }

    /// Returns the path of the server's log.
    #[must_use]
    pub fn log_file(&self) -> &Path {
        self.server.log.path()
    }

    /// Returns the postmaster's process id; `None` while it is being restarted.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.supervisor.pid()
    }

    /// Creates `database` unless it exists.
    ///
    /// # Errors
    ///
    /// [`Error::Psql`] with the server's message, or [`Error::Io`] if `psql` cannot be run.
    pub fn ensure_database(&self, database: &str) -> Result<(), Error> {
        psql::ensure_database(&self.server, database)
    }

    /// Returns the URL of `database` on the server that another program runs with these options.
    ///
    /// # Errors
    ///
    /// Any [`Error`] of finding it. It does not connect.
    pub fn url_beside(options: &Options, database: &str) -> Result<String, Error> {
        let account = Account::choose()?;
        let root = place::choose(&options.data_dir_root, account.as_ref(), &options.progress)?;
        let data_dir = cluster::data_dir(&root, locate::installation(&root)?.major);
        Ok(socket::url(&socket::directory(&data_dir, account.as_ref())?, database))
    }

    /// Creates the extension in `database`, unless it exists or is not installed on this machine.
    ///
    /// # Errors
    ///
    /// As [`Self::ensure_database`].
    pub fn ensure_extension(&self, database: &str, extension: &str) -> Result<(), Error> {
        psql::ensure_extension(&self.server, database, extension)
    }

    /// Returns `psql` connected to `database`: no startup file, no password prompt, no `PG*` variable; it exits on
    /// an error. The caller adds the statements.
    #[must_use]
    pub fn psql(&self, database: &str) -> Command {
        psql::command(&self.server, database)
    }

    /// Stops the server and waits for its end; dropping does the same.
    pub fn stop(self) {
        drop(self);
    }
}
