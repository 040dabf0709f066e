//! Slow clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::deploy::phone;
use crate::deploy::site::HOST;
use crate::deploy::tools::{alone, folder};
use crate::deploy::vestibule::{Deployment, Vestibule};
use crate::support::cluster::Database;
use crate::support::process::eventually;
use crate::support::provider::Provider;
use crate::support::token;

const SLOW: usize = 600;

/// The beginnings of slow requests, which continue with one byte in ten seconds.
const BEGINNINGS: [&str; 2] = [
    "POST /api/v1/auth/oauth/idp HTTP/1.1\r\nHost: id.example.com\r\nX-",
    "POST /api/v1/auth/oauth/idp HTTP/1.1\r\nHost: id.example.com\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{",
];

async fn dawdle(
    tls: TlsConnector,
    proxy: SocketAddr,
    beginning: &str,
    begun: Arc<AtomicUsize>,
) -> String {
    let stream = TcpStream::connect(proxy).await.unwrap();
    let mut stream = tls
        .connect(ServerName::try_from(HOST).unwrap(), stream)
        .await
        .unwrap();
    stream.write_all(beginning.as_bytes()).await.unwrap();
    begun.fetch_add(1, Ordering::Relaxed);
    let mut answer = Vec::new();
    loop {
        let pause = tokio::time::sleep(Duration::from_secs(10));
        tokio::select! {
            // The connection may end without TLS's `close_notify`.
            _ = stream.read_to_end(&mut answer) => return String::from_utf8_lossy(&answer).into_owned(),
            () = pause => drop(stream.write_all(b"x").await),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_are_given_up_by_haproxy_and_hinder_nobody() {
    let deployment = Deployment::start("slow").await;
    let Some(proxy) = deployment.haproxy(&[]).await else {
        return;
    };
    let site = &proxy.site;
    let tls = site.tls();

    let started = Instant::now();
    let begun = Arc::<AtomicUsize>::default();
    let mut slow = JoinSet::new();
    for number in 0..SLOW {
        let beginning = BEGINNINGS[number % BEGINNINGS.len()];
        slow.spawn(dawdle(tls.clone(), site.address, beginning, begun.clone()));
    }
    let all = || (begun.load(Ordering::Relaxed) == SLOW).then_some(());
    eventually("all are connected", async || all()).await;
    let connected = started.elapsed();
    let started = Instant::now();

    let client = site.client().build().unwrap();
    let token = deployment
        .provider
        .token(token::claims("subject", "ada@example.com"));
    let mut waits = Vec::new();
    let mut given_up = Vec::new();
    while given_up.len() < SLOW {
        let asked = Instant::now();
        phone::sign_in(&client, &site.url(), &token)
            .await
            .expect("a healthy client signs in");
        waits.push(asked.elapsed());
        while let Some(answer) = slow.try_join_next() {
            given_up.push(answer.unwrap());
        }
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{} of {SLOW} are given up",
            given_up.len()
        );
    }
    waits.sort_unstable();
    let p99 = waits[waits.len() * 99 / 100];
    println!(
        "{SLOW} slow clients connected within {connected:?}, and given up within {:?} from then on; meanwhile {} \
         sign-ins, 99 of 100 within {p99:?}",
        started.elapsed(),
        waits.len()
    );
    assert!(p99 < Duration::from_secs(1), "{p99:?}");
    for answer in given_up {
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    }
}

/// Bodies that stop ten bytes before their end. Each of two addresses sends as many as it may
/// refresh in a minute.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_stall_take_little_memory_and_hinder_nobody() {
    let _alone = alone().await;
    let folder = folder("stalled");
    let database = Database::create().await;
    let provider = Provider::start().await;
    let instance = Vestibule::new(&folder, &database.url, &provider.tokeninfo_url());
    let instance = instance
        .with("ROCKET_RATE_LIMIT", "{enabled=true}")
        .started()
        .await;
    let token = provider.token(token::claims("subject", "ada@example.com"));
    let client = reqwest::Client::new();
    let before = instance.peak();
    for (length, from) in [(1_048_010, 2), (65_510, 4)] {
        let mut stalled = Vec::new();
        for number in 0..1180_u16 {
            let socket = TcpSocket::new_v4().unwrap();
            let from = from + u8::from(number % 2 == 1);
            socket.bind(([127, 0, 0, from], 0).into()).unwrap();
            let mut stream = socket
                .connect(([127, 0, 0, 1], instance.port).into())
                .await
                .unwrap();
            let head = format!(
                "POST /api/v1/auth/refresh HTTP/1.1\r\nHost: id.example.com\r\nContent-Type: application/json\r\n\
                 Content-Length: {length}\r\n\r\n{{"
            );
            // The service rejects most before they have sent everything.
            let _ = stream
                .write_all((head + &" ".repeat(length - 11)).as_bytes())
                .await;
            stalled.push(stream);
        }
        phone::sign_in(&client, &instance.url(), &token)
            .await
            .expect("a healthy client signs in");
        let peak = instance.peak();
        println!(
            "{length}: {} MiB before, {} MiB at most",
            before >> 20,
            peak >> 20
        );
        // The kernel's figure is exact to some pages, so it may even fall.
        assert!(
            peak <= 128 << 20 && peak.saturating_sub(before) <= 64 << 20,
            "{before}, {peak}"
        );
    }
}
