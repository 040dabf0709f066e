//! HAProxy with `deploy/haproxy.cfg`, on loopback, with a certificate of its own.

use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use reqwest::ClientBuilder;

use crate::certificate::{Certificate, HOST};
use crate::tools::{Running, eventually, free_port, program, shipped};
use crate::vestibule::Vestibule;

pub struct HaProxy {
    pub address: SocketAddr,
    pub certificate: Certificate,
    admin: PathBuf,
    _running: Running,
}

impl HaProxy {
    /// Before these two instances, where there is HAProxy.
    pub fn start(folder: &Path, instances: &[&Vestibule; 2]) -> Option<Self> {
        let program = program("haproxy")?;
        let certificate = Certificate::new();
        let pem = folder.join("vestibule.pem");
        fs::write(&pem, format!("{}{}", certificate.text, certificate.key)).unwrap();
        let (plain, port, admin) = (free_port(), free_port(), folder.join("admin.sock"));
        let text = shipped(
            "haproxy.cfg",
            &[
                ("bind :80\n", &format!("bind 127.0.0.1:{plain}\n")),
                ("bind :443 ", &format!("bind 127.0.0.1:{port} ")),
                ("/etc/haproxy/vestibule.pem", pem.to_str().unwrap()),
                ("/run/haproxy/admin.sock", admin.to_str().unwrap()),
                ("10.0.0.11:8000", &format!("127.0.0.1:{}", instances[0].port)),
                ("10.0.0.12:8000", &format!("127.0.0.1:{}", instances[1].port)),
            ],
        );
        let file = folder.join("haproxy.cfg");
        fs::write(&file, text).unwrap();
        let running = Running::start(&program, &folder.join("haproxy.log"), |command| {
            command.args(["-db", "-f"]).arg(&file);
        });
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Some(Self { address, certificate, admin, _running: running })
    }

    pub fn url(&self) -> String {
        format!("https://{HOST}:{}", self.address.port())
    }

    /// A client that knows it.
    pub fn client(&self) -> ClientBuilder {
        self.certificate.client(self.address)
    }

    /// Waits until it sends requests to that many instances.
    pub async fn sees(&self, instances: usize) {
        eventually("HAProxy finds the instances", async || {
            let state = command(&self.admin, "show stat")?;
            let up = |line: &&str| line.starts_with("vestibule,vestibule") && line.contains(",UP,");
            (state.lines().filter(up).count() == instances).then_some(())
        })
        .await;
    }
}

fn command(socket: &Path, line: &str) -> Option<String> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.write_all(format!("{line}\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
