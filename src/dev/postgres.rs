//! A private `PostgreSQL` server, owned by this program: found on the machine,
//! given a cluster of its own, kept running, and stopped with the program.
//!
//! It is for development without a `DATABASE_URL` and for the test suite. It
//! is not a client (it hands out a URL) and not a way to run a database in
//! production: that server is somebody else's process.

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

/// The database superuser, and the only role of a fresh cluster. Only the
/// owner of the socket directory can reach it, so it has no password.
pub const ROLE: &str = "vestibule";

/// Where progress lines for a human go; called from the supervising thread
/// too.
pub type Progress = Arc<dyn Fn(&str) + Send + Sync>;

/// What kind of server to run, and where.
#[derive(Clone)]
pub struct Options {
    /// The directory that holds the cluster, the server's log and the lock,
    /// e.g. `<project>/.vestibule`. Created when missing.
    pub data_dir_root: PathBuf,
    /// Whether data outlives a crash of the *machine*. Tests say `false`,
    /// which drops every `fsync`; even then, what was committed outlives a
    /// `kill -9` of the server or of this program.
    pub durable: bool,
    /// How many clients may be connected at once.
    pub max_connections: u16,
    /// Further server settings, `(name, value)`; they win over the built-in
    /// ones.
    pub settings: Vec<(String, String)>,
    /// Receives lines such as "creating the `PostgreSQL` cluster ...".
    pub progress: Progress,
}

impl Options {
    /// A durable server for 100 connections, silent about its progress.
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

/// A running server. It is started again whenever it dies, until this value
/// is dropped; dropping stops it and waits for that (a fast shutdown).
#[derive(Debug)]
pub struct Postgres {
    // Fields drop in this order: the lock is given back only once the server
    // has left.
    supervisor: Supervisor,
    server: Arc<Server>,
    _lock: Lock,
}

impl Postgres {
    /// Finds `PostgreSQL`, creates the cluster if there is none, and starts
    /// it. Returns once the server accepts connections: some seconds the
    /// first time, a fraction of one later, longer after a crash or when a
    /// server left behind by a killed program is still leaving.
    ///
    /// # Errors
    ///
    /// Any [`Error`]: each names what is wrong and what to do about it, on one
    /// line.
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

    /// The URL of `database` on this server, for `sqlx` and libpq alike. It
    /// spells out port and `sslmode` so that no `PG*` variable of the
    /// environment can bend it.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        socket::url(&self.server.socket_dir, database)
    }

    /// The directory of the server's Unix socket, reachable by its owner only.
    #[must_use]
    pub fn socket_dir(&self) -> &Path {
        &self.server.socket_dir
    }

    /// The cluster's data directory. Below [`Options::data_dir_root`], unless
    /// the server's user cannot reach that.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.server.data_dir
    }

    /// The file the server writes its log to.
    #[must_use]
    pub fn log_file(&self) -> &Path {
        self.server.log.path()
    }

    /// The postmaster's process id; `None` in the moments in which it has
    /// died and is not started again yet.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.supervisor.pid()
    }

    /// Creates `database` unless it exists.
    ///
    /// # Errors
    ///
    /// [`Error::Psql`] with what the server answered, or [`Error::Io`] when
    /// `psql` cannot be run.
    pub fn ensure_database(&self, database: &str) -> Result<(), Error> {
        psql::ensure_database(&self.server, database)
    }

    /// The URL of `database` on the server that another program runs with these options.
    ///
    /// # Errors
    ///
    /// Any [`Error`] of finding it; whether it answers is found out later.
    pub fn url_beside(options: &Options, database: &str) -> Result<String, Error> {
        let account = Account::choose()?;
        let root = place::choose(&options.data_dir_root, account.as_ref(), &options.progress)?;
        let data_dir = cluster::data_dir(&root, locate::installation(&root)?.major);
        Ok(socket::url(&socket::directory(&data_dir, account.as_ref())?, database))
    }

    /// Creates the extension in `database` unless it exists, or is not installed on this machine.
    ///
    /// # Errors
    ///
    /// As [`Self::ensure_database`].
    pub fn ensure_extension(&self, database: &str, extension: &str) -> Result<(), Error> {
        psql::ensure_extension(&self.server, database, extension)
    }

    /// `psql` connected to `database`: no startup file, no password prompt, no
    /// `PG*` variable, an error ends it. The caller adds the statements.
    #[must_use]
    pub fn psql(&self, database: &str) -> Command {
        psql::command(&self.server, database)
    }

    /// Stops the server and waits until it has left; dropping does the same.
    pub fn stop(self) {
        drop(self);
    }
}
