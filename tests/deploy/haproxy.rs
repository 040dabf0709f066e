//! HAProxy with `deploy/haproxy.cfg`, on loopback, with a certificate of its own.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::deploy::site::Site;
use crate::deploy::tools::{Running, shipped};
use crate::deploy::vestibule::Vestibule;
use crate::programs::program;
use crate::support::process::{eventually, free_port};

pub struct HaProxy {
    pub site: Site,
    admin: PathBuf,
    _running: Running,
}

impl HaProxy {
    /// Starts HAProxy, if it is installed, for these two instances, with some of the shipped
    /// settings replaced, and waits until it has found both to be ready.
    pub async fn start(
        folder: &Path,
        instances: &[Vestibule; 2],
        changes: &[(&str, &str)],
    ) -> Option<Self> {
        let program = program("haproxy", (2, 6))?;
        let plain = free_port();
        let port = free_port();
        let admin = folder.join("admin.sock");
        let site = Site::on(port);
        let pem = folder.join("vestibule.pem");
        fs::write(&pem, format!("{}{}", site.certificate, site.key)).unwrap();
        // A process that changes its user loses the signal that ends it with the test.
        let own = [
            (
                "    user haproxy\n    group haproxy\n    chroot /var/lib/haproxy\n",
                "",
            ),
            ("staff src 10.0.0.0/24", "staff src 127.0.0.0/8"),
            ("backends src 10.0.0.40", "backends src 127.0.0.0/8"),
            ("bind :80\n", &*format!("bind 127.0.0.1:{plain}\n")),
            ("bind :443 ", &format!("bind 127.0.0.1:{port} ")),
            ("/etc/haproxy/vestibule.pem", pem.to_str().unwrap()),
            ("/run/haproxy/admin.sock", admin.to_str().unwrap()),
            (
                "10.0.0.11:8000",
                &format!("127.0.0.1:{}", instances[0].port),
            ),
            (
                "10.0.0.12:8000",
                &format!("127.0.0.1:{}", instances[1].port),
            ),
        ];
        let text = shipped("haproxy.cfg", &[&own, changes].concat());
        let file = folder.join("haproxy.cfg");
        fs::write(&file, text).unwrap();
        let running = Running::start(&program, &folder.join("haproxy.log"), |command| {
            command.args(["-db", "-f"]).arg(&file);
        });
        let proxy = Self {
            site,
            admin,
            _running: running,
        };
        proxy.sees(2).await;
        Some(proxy)
    }

    /// Waits until HAProxy finds exactly that many instances ready.
    pub async fn sees(&self, instances: usize) {
        eventually("HAProxy finds the instances", async || {
            let state = command(&self.admin, "show stat")?;
            let servers = state
                .lines()
                .filter(|line| line.starts_with("vestibule,vestibule"));
            let ready: Option<Vec<_>> = servers.map(readiness).collect();
            (ready?.into_iter().filter(|ready| *ready).count() == instances).then_some(())
        })
        .await;
    }
}

/// Returns `true` if a server is ready, and `None` before its first check, when it counts as up.
fn readiness(line: &str) -> Option<bool> {
    // The columns `status` and `check_status`, which has a star while the next check runs.
    let fields: Vec<_> = line.split(',').collect();
    match (fields[17], fields[36].trim_start_matches("* ")) {
        ("UP", "L7OK") => Some(true),
        ("DOWN", _) => Some(false),
        _ => None,
    }
}

fn command(socket: &Path, line: &str) -> Option<String> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.write_all(format!("{line}\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
