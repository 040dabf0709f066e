//! A host with a self-signed certificate, and clients that trust it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, ClientBuilder};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::support::tls::pem;

/// The host's name, which is in the certificate.
pub const HOST: &str = "id.example.com";

/// A host's address, certificate and key (PEM, RFC 7468).
pub struct Site {
    pub address: SocketAddr,
    pub certificate: String,
    pub key: String,
}

impl Site {
    /// A site on that port of this machine, with a new certificate.
    pub fn on(port: u16) -> Self {
        let made = rcgen::generate_simple_self_signed([HOST.to_owned()]).unwrap();
        Self {
            address: ([127, 0, 0, 1], port).into(),
            certificate: pem("CERTIFICATE", made.cert.der()),
            key: pem("PRIVATE KEY", &made.signing_key.serialize_der()),
        }
    }

    pub fn write(&self, folder: &Path) -> [PathBuf; 2] {
        [
            ("certificate.pem", &self.certificate),
            ("key.pem", &self.key),
        ]
        .map(|(name, content)| {
            let file = folder.join(name);
            fs::write(&file, content).unwrap();
            file
        })
    }

    pub fn url(&self) -> String {
        format!("https://{HOST}:{}", self.address.port())
    }

    /// A client that resolves its name and trusts its certificate.
    pub fn client(&self) -> ClientBuilder {
        let known = reqwest::Certificate::from_pem(self.certificate.as_bytes()).unwrap();
        Client::builder()
            .tls_certs_only([known])
            .resolve(HOST, self.address)
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(20))
    }

    /// TLS for clients that write each byte themselves.
    pub fn tls(&self) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap())
            .unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        TlsConnector::from(Arc::new(config))
    }

    pub fn client_at(&self, address: &str) -> Client {
        self.client()
            .local_address(address.parse().ok())
            .build()
            .unwrap()
    }
}
