//! A certificate that nobody vouches for, and clients that know it all the same.

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Client, ClientBuilder};

/// The name in it.
pub const HOST: &str = "id.example.com";

/// A certificate and its key (PEM, RFC 7468).
pub struct Certificate {
    pub text: String,
    pub key: String,
}

impl Certificate {
    pub fn new() -> Self {
        let made = rcgen::generate_simple_self_signed([HOST.to_owned()]).unwrap();
        Self {
            text: pem("CERTIFICATE", made.cert.der()),
            key: pem("PRIVATE KEY", &made.signing_key.serialize_der()),
        }
    }

    /// A client that finds its host there.
    pub fn client(&self, address: SocketAddr) -> ClientBuilder {
        let known = reqwest::Certificate::from_pem(self.text.as_bytes()).unwrap();
        Client::builder()
            .tls_certs_only([known])
            .resolve(HOST, address)
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(20))
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line)).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
