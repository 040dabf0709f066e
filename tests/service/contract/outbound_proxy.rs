//! The service calls providers through the environment's proxy, and uses the proxy for nothing
//! else.

use std::process::Output;
use std::sync::{Arc, Mutex};

use rcgen::{CertificateParams, SanType};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use crate::support::app::App;
use crate::support::process::{complete_settings, eventually, run};
use crate::support::tls::SelfSigned;

/// A provider whose host only the proxy resolves.
const PROVIDER: &str = "https://id.example.invalid/tokeninfo";

/// An HTTP proxy that leads every tunnel to one server, whatever host the client requests.
struct Proxy {
    port: u16,
    /// The heads of the requests that it received.
    heads: Arc<Mutex<Vec<String>>>,
    task: AbortHandle,
}

impl Proxy {
    async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&heads);
        let task = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let seen = Arc::clone(&seen);
                let server = server.clone();
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        head.push(client.read_u8().await?);
                    }
                    seen.lock().unwrap().push(String::from_utf8(head).unwrap());
                    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
                    let mut server = TcpStream::connect(server).await?;
                    copy_bidirectional(&mut client, &mut server).await
                });
            }
        });
        Self {
            port,
            heads,
            task: task.abort_handle(),
        }
    }

    /// Returns and clears the received request heads.
    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.heads.lock().unwrap())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts the provider's server, with a certificate for the host that only the proxy resolves.
async fn provider() -> SelfSigned {
    SelfSigned::start_with(|certificate: &mut CertificateParams| {
        certificate.subject_alt_names =
            vec![SanType::DnsName("id.example.invalid".try_into().unwrap())];
    })
    .await
}

/// Writes a trusted certificate to a file, and returns its path.
fn trusted(pem: &str) -> String {
    let file = format!(
        "{}/outbound-proxy-{}.pem",
        env!("CARGO_TARGET_TMPDIR"),
        uuid::Uuid::now_v7()
    );
    std::fs::write(&file, pem).unwrap();
    file
}

fn text(output: &Output) -> String {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert!(!text.contains("hush"), "{text}");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn providers_are_called_through_the_proxy_of_the_environment() {
    let app = App::start().await;
    let server = provider().await;
    let proxy = Proxy::to(server.url().replace("https://", "")).await;
    let certificate = trusted(&server.pem);
    let address = format!("127.0.0.1:{}", proxy.port);
    let with_password = format!("http://operator:hush%40hush@{address}/");
    let plain = format!("http://{address}");
    for (variable, value) in [
        ("HTTPS_PROXY", with_password.as_str()),
        ("https_proxy", &plain),
        ("ALL_PROXY", &plain),
        ("all_proxy", &address),
    ] {
        let settings = complete_settings(&app.database.url, PROVIDER);
        let settings = [
            &settings[..],
            &[(variable, value), ("SSL_CERT_FILE", &certificate)],
        ]
        .concat();
        let told = text(&run(&settings, &["check"]).await);
        let heads = proxy.taken();
        assert!(
            heads.len() == 1 && heads[0].starts_with("CONNECT id.example.invalid:443 "),
            "{variable}: {heads:?}"
        );
        let authorised = heads[0]
            .to_lowercase()
            .contains("proxy-authorization: basic b3blcmf0b3i6ahvzaebodxno");
        assert_eq!(authorised, value.contains("hush"), "{variable}: {heads:?}");
        assert!(
            told.contains(&format!("http://{address}")) && told.contains(variable),
            "{told}"
        );
        assert_eq!(
            server.requests(),
            server.handshakes(),
            "the provider's certificate is verified: {told}"
        );
    }
    let both = [
        ("HTTPS_PROXY", ""),
        ("https_proxy", plain.as_str()),
        ("NO_PROXY", "example.com"),
    ];
    let settings = [&complete_settings(&app.database.url, PROVIDER)[..], &both].concat();
    let told = text(&run(&settings, &["check"]).await);
    assert_eq!(proxy.taken().len(), 1, "an empty variable is none: {told}");
    assert!(told.contains("example.com"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_proxy_and_this_machine_are_reached_directly() {
    let app = App::start().await;
    let proxy = Proxy::to("127.0.0.1:1".into()).await;
    let address = format!("http://127.0.0.1:{}", proxy.port);
    let proxied = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "http_proxy"]
        .map(|name| (name, address.as_str()));
    for (tokeninfo, exceptions) in [
        (PROVIDER, "id.example.invalid"),
        (PROVIDER, "localhost, .example.invalid"),
        (PROVIDER, "*"),
        (app.provider.tokeninfo_url().as_str(), ""),
        ("https://localhost:1/", ""),
        ("https://127.0.0.1:1/", "example.com"),
        ("https://[::1]:1/", "example.com"),
    ] {
        let settings = complete_settings(&app.database.url, tokeninfo);
        let settings = [&settings[..], &proxied, &[("no_proxy", exceptions)]].concat();
        let told = text(&run(&settings, &["check"]).await);
        assert_eq!(proxy.taken(), [""; 0], "{tokeninfo} {exceptions}: {told}");
    }
    // Providers use https, so `HTTP_PROXY` has no effect.
    let settings = [
        &complete_settings(&app.database.url, PROVIDER)[..],
        &[("HTTP_PROXY", &address)],
    ]
    .concat();
    let told = text(&run(&settings, &["check"]).await);
    assert_eq!(proxy.taken(), [""; 0], "{told}");
    assert!(
        told.contains("warn   proxy") && told.contains("HTTPS_PROXY"),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_never_go_through_a_proxy() {
    let app = App::start().await;
    let proxy = Proxy::to("127.0.0.1:1".into()).await;
    let address = format!("http://127.0.0.1:{}", proxy.port);
    for url in [
        "https://hooks.example.invalid/",
        "https://169.254.169.254/",
        "https://10.0.0.1/",
    ] {
        let webhooks = format!(
            "{{shop={{url=\"{url}\",secret=\"whsec_aHVzaCwgYSBzZWNyZXQgb2YgdGhlIHRlc3RzIQ==\"}}}}"
        );
        let settings = complete_settings(&app.database.url, PROVIDER);
        let more = [
            ("HTTPS_PROXY", address.as_str()),
            ("ALL_PROXY", &address),
            ("ROCKET_WEBHOOKS", &webhooks),
        ];
        let settings = [&settings[..], &more].concat();
        let told = text(&run(&settings, &["webhooks", "test", "shop"]).await);
        assert!(
            proxy.taken().is_empty() && !told.contains("unexpected argument"),
            "{told}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_proxy_stops_the_start_without_exposing_its_password() {
    let app = App::start().await;
    for (variable, value) in [
        ("HTTPS_PROXY", "socks5h://u:hush@127.0.0.1:1080"),
        ("https_proxy", "ftp://u:hush@proxy.example.com"),
        ("HTTPS_PROXY", "http://u:hush@"),
        ("ALL_PROXY", "http://u:hush@proxy.example.com:notaport"),
        ("HTTPS_PROXY", "http://u:hu/sh@proxy.example.com:3128"),
    ] {
        for command in ["serve", "check"] {
            let settings = [
                &complete_settings(&app.database.url, PROVIDER)[..],
                &[(variable, value)],
            ]
            .concat();
            let output = run(&settings, &[command]).await;
            let told = text(&output);
            assert_eq!(
                output.status.code(),
                Some(1),
                "{variable} {command}: {told}"
            );
            let last = told.lines().last().unwrap();
            assert!(
                last.contains(&format!("`{variable}`"))
                    && last.contains("http://proxy.example.com:3128"),
                "{told}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxy_is_in_the_log_from_the_start() {
    use crate::support::process::{Process, free_port};
    let app = App::start().await;
    let proxy = [
        (
            "HTTPS_PROXY",
            "http://operator:hush@proxy.example.invalid:3128",
        ),
        ("NO_PROXY", "example.com"),
    ];
    let service = Process::start(free_port(), &app.database.url, PROVIDER, &proxy);
    let line = eventually("it names the proxy", async || {
        service
            .log()
            .lines()
            .find(|line| line.contains("proxy.example.invalid:3128"))
            .map(str::to_owned)
    });
    let line = line.await;
    assert!(
        line.contains("HTTPS_PROXY") && line.contains("example.com") && !line.contains("hush"),
        "{line}"
    );
    assert!(!service.log().contains("hush"), "{}", service.log());
}
