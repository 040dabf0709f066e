//! The server settings, passed on its command line so that they win over
//! whatever a distribution puts into a fresh `postgresql.conf`.

use std::path::Path;

use super::socket::{self, PORT};

/// All settings, `(name, value)`; of two with one name the later one wins.
pub(super) fn all(
    socket_dir: &Path,
    durable: bool,
    max_connections: u16,
    extra: Vec<(String, String)>,
) -> Vec<(String, String)> {
    // A list of directories: quoted, so that a comma in the path is no end.
    let sockets = socket_dir.to_string_lossy().replace('"', "\"\"");
    let mut settings = vec![
        own("listen_addresses", ""),
        own("unix_socket_directories", &format!("\"{sockets}\"")),
        own("unix_socket_permissions", "0700"),
        own("port", &PORT.to_string()),
        own("max_connections", &max_connections.to_string()),
        own("shared_buffers", "64MB"),
        own("jit", "off"),
        own("timezone", "UTC"),
        own("log_timezone", "UTC"),
        // In the title of every server process, which tells those of a dead
        // server from everybody else's.
        own("cluster_name", &socket::cluster_name(socket_dir)),
        // Some distributions collect logs into the data directory, where no
        // error message of ours would find them.
        own("log_destination", "stderr"),
        own("logging_collector", "off"),
    ];
    if !durable {
        // `synchronous_commit` stays on: without fsync it costs next to
        // nothing, and off would lose commits when the server is killed.
        settings.extend([
            own("fsync", "off"),
            own("full_page_writes", "off"),
            own("wal_level", "minimal"),
            own("max_wal_senders", "0"),
            own("autovacuum", "off"),
        ]);
    }
    settings.extend(extra);
    settings
}

fn own(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}
