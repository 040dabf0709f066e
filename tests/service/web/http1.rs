//! Only HTTP/1.1 is served, with and without TLS in the service.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::support::app::App;
use crate::support::raw::Raw;
use crate::support::tls::pem;

/// The connection preface of a client that assumes HTTP/2 (RFC 9113 §3.4), and empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Starts a service that terminates TLS itself.
async fn with_tls() -> (App, CertificateDer<'static>) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("http1-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let [certs, key] = ["certificate.pem", "key.pem"].map(|name| folder.join(name));
    std::fs::write(&certs, pem("CERTIFICATE", certified.cert.der())).unwrap();
    std::fs::write(
        &key,
        pem("PRIVATE KEY", &certified.signing_key.serialize_der()),
    )
    .unwrap();
    let app =
        App::start_with(|figment| figment.merge(("tls.certs", certs)).merge(("tls.key", key)))
            .await;
    (app, certified.cert.der().clone())
}

async fn connect(
    app: &App,
    trusted: &CertificateDer<'static>,
    offered: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = offered
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    let stream = TcpStream::connect(app.url.strip_prefix("http://").unwrap()).await?;
    TlsConnector::from(Arc::new(config))
        .connect(ServerName::try_from("localhost").unwrap(), stream)
        .await
}

/// Returns everything that the service sends until it closes the connection.
async fn answer_to(stream: &mut TlsStream<TcpStream>, request: &[u8]) -> String {
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    // An end without `close_notify` counts, too.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn where_tls_ends_here_nobody_is_offered_http_2() {
    let (app, certificate) = with_tls().await;
    let mut stream = connect(&app, &certificate, &["h2", "http/1.1"])
        .await
        .unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let request = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = answer_to(&mut stream, request).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        connect(&app, &certificate, &["h2"]).await.is_err(),
        "who wants nothing else is turned away"
    );
    let mut stream = connect(&app, &certificate, &[]).await.unwrap();
    let answer = answer_to(&mut stream, PREFACE).await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 400"),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_changes_to_http_2_without_tls() {
    let app = App::start().await;
    let mut raw = Raw::connect(&app).await;
    raw.send(PREFACE).await;
    assert!(raw.answer().await.is_none_or(|answer| answer.status == 400));
    let mut raw = Raw::connect(&app).await;
    let upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n";
    raw.send(format!(
        "GET /livez HTTP/1.1\r\nHost: vestibule\r\n{upgrade}\r\n"
    ))
    .await;
    assert_eq!(raw.answer().await.unwrap().status, 200, "and not 101");
}
