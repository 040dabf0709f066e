//! A TLS server with a self-signed certificate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

/// Encodes DER as PEM (RFC 7468).
pub fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<_> = text
        .as_bytes()
        .chunks(64)
        .map(|line| String::from_utf8_lossy(line))
        .collect();
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        lines.join("\n")
    )
}

/// Listens until it is dropped.
pub struct SelfSigned {
    /// The certificate in PEM.
    pub pem: String,
    port: u16,
    handshakes: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
    task: AbortHandle,
}

impl SelfSigned {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// Starts a server whose certificate `change` alters. Unaltered, it is valid for `localhost`.
    pub async fn start_with(change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut parameters = CertificateParams::new(["localhost".to_owned()]).unwrap();
        change(&mut parameters);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        let pem = pem("CERTIFICATE", certificate.der());
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let handshakes = Arc::new(AtomicUsize::new(0));
        let requests = Arc::new(AtomicUsize::new(0));
        let begun = handshakes.clone();
        let seen = requests.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                begun.fetch_add(1, Ordering::SeqCst);
                let acceptor = acceptor.clone();
                let seen = seen.clone();
                tokio::spawn(async move {
                    let mut stream = acceptor.accept(stream).await?;
                    if stream.read(&mut [0; 1]).await? > 0 {
                        seen.fetch_add(1, Ordering::SeqCst);
                    }
                    std::io::Result::Ok(())
                });
            }
        });
        Self {
            pem,
            port,
            handshakes,
            requests,
            task: task.abort_handle(),
        }
    }

    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// Number of connections that were begun.
    pub fn handshakes(&self) -> usize {
        self.handshakes.load(Ordering::SeqCst)
    }

    /// Number of connections on which a request arrived.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Drop for SelfSigned {
    fn drop(&mut self) {
        self.task.abort();
    }
}
