//! nginx with `deploy/nginx.conf`, on loopback.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::deploy::site::Site;
use crate::deploy::tools::{Running, shipped};
use crate::deploy::vestibule::Vestibule;
use crate::programs::program;
use crate::support::process::{eventually, free_port};

pub struct Nginx {
    pub site: Site,
    /// The address that redirects to HTTPS.
    pub plain: SocketAddr,
    pub requests: PathBuf,
    running: Running,
}

impl Nginx {
    /// Starts nginx, if it is installed, for these two instances, with some of the shipped settings
    /// replaced.
    pub async fn start(
        folder: &Path,
        instances: &[Vestibule; 2],
        changes: &[(&str, &str)],
    ) -> Option<Self> {
        let program = program("nginx", (1, 22))?;
        let port = free_port();
        let plain = free_port();
        let requests = folder.join("requests.log");
        let site = Site::on(port);
        let [certificate, key] = site.write(folder);
        let own = [
            ("listen 80;", &*format!("listen 127.0.0.1:{plain};")),
            ("/var/log/nginx/vestibule.log", requests.to_str().unwrap()),
            ("listen 443 ssl", &format!("listen 127.0.0.1:{port} ssl")),
            ("/etc/nginx/vestibule.pem", certificate.to_str().unwrap()),
            ("/etc/nginx/vestibule.key", key.to_str().unwrap()),
            ("allow 10.0.0.0/24;", "allow 127.0.0.0/8;"),
            ("allow 10.0.0.40;", "allow 127.0.0.0/8; # backends"),
            (
                "10.0.0.11:8000",
                &format!("127.0.0.1:{}", instances[0].port),
            ),
            (
                "10.0.0.12:8000",
                &format!("127.0.0.1:{}", instances[1].port),
            ),
        ];
        let server = shipped("nginx.conf", &[&own, changes].concat());
        // The configuration that a distribution wraps around the file, in a folder of its own.
        let place = folder.display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {place}/{name};"))
            .concat();
        // One process: workers would outlive a killed master.
        let text = format!(
            "daemon off; master_process off; pid {place}/nginx.pid; error_log stderr; events {{ }}
             http {{ gzip on; {temporary} {server} }}"
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, text).unwrap();
        let log = folder.join("nginx.log");
        let running = Running::start_as_server(&program, &log, |command| {
            command.args(["-e", "stderr", "-c"]).arg(&file);
        });
        eventually(
            &format!("nginx listens; see {}", log.display()),
            async || tokio::net::TcpStream::connect(site.address).await.ok(),
        )
        .await;
        Some(Self {
            site,
            plain: ([127, 0, 0, 1], plain).into(),
            requests,
            running,
        })
    }

    /// The contents of its error log.
    pub fn said(&self) -> String {
        self.running.said()
    }
}
