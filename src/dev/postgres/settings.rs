//! The server settings. They are passed on the command line, so that they override the distribution's
//! `postgresql.conf`.

use std::path::Path;

use super::socket::{self, PORT};

/// Returns all settings, `(name, value)`. If a name occurs twice, the later one counts.
pub(super) fn all(
    socket_dir: &Path,
    durable: bool,
    max_connections: u16,
    extra: Vec<(String, String)>,
) -> Vec<(String, String)> {
    // The setting is a list of directories, so the path is quoted in case it has a comma.
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
        // This is in the title of every server process, which identifies the processes of a dead server.
        own("cluster_name", &socket::cluster_name(socket_dir)),
        // Some distributions collect logs in the data directory, where our error messages would not find them.
        own("log_destination", "stderr"),
        own("logging_collector", "off"),
    ];
    if !durable {
        // `synchronous_commit` stays on: without fsync it costs next to nothing, and off would lose commits when the
        // server is killed.
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
