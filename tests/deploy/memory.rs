//! The most memory that clients at one address, or at a few, can make the service use.

use std::fs;
use std::net::Ipv4Addr;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::deploy::tools::{alone, folder};
use crate::deploy::vestibule::Vestibule;
use crate::support::cluster::Database;
use crate::support::process::eventually;
use crate::support::provider::{Behaviour, Provider};
use crate::support::signer::base64;
use crate::support::token;

/// Allowed peak of resident memory for each row, in bytes.
const MOST: usize = 128 << 20;

const SIGN_IN: &str = "/api/v1/auth/oauth/idp";
const REFRESH: &str = "/api/v1/auth/refresh";
const JSON: &str = "application/json";

/// Requests of one kind, all of which are under way at once.
struct Row {
    name: &'static str,
    count: u16,
    /// The number of addresses that send them.
    addresses: u16,
    request: Request,
}

/// A request: its bytes, and whether it is complete.
enum Request {
    Whole(Vec<u8>),
    /// The client waits without sending the rest.
    Unfinished(Vec<u8>),
}

fn post(path: &str, media_type: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = "Host: id.example.com\r\nConnection: close";
    format!("POST {path} HTTP/1.1\r\n{head}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// A list of as many `{"":0}` as fit into a text of that length.
fn objects(length: usize) -> String {
    format!("[{}]", vec![r#"{"":0}"#; (length - 1) / 7].join(","))
}

fn sign_in(pad: &str) -> Request {
    let claims = token::claims("subject", "ada@example.com");
    let token = token::encode(r#"{"alg":"RS256"}"#, &claims.to_string());
    let body = format!(r#"{{"id_token":"{token}","pad":{pad}}}"#);
    Request::Whole(post(SIGN_IN, JSON, &body))
}

/// The costliest sign-in within all limits: the longest token, with the most values, in the longest
/// body.
fn costliest_sign_in() -> Request {
    let claims =
        json!({ "iss": token::ISSUER, "aud": token::CLIENT_ID, "exp": token::now() + 3600 })
            .to_string();
    let groups = objects(7 * 190);
    let pad = "x".repeat(12_200 - claims.len() - groups.len());
    let claims = format!(
        r#"{},"pad":"{pad}","groups":{groups}}}"#,
        claims.strip_suffix('}').unwrap()
    );
    let token = token::encode(r#"{"alg":"RS256"}"#, &claims);
    assert!((16_000..=16_384).contains(&token.len()), "{}", token.len());
    let values = objects(7 * 190);
    let length = 65_000 - token.len() - 7 * 190;
    let body = format!(
        r#"{{"id_token":"{token}","values":{values},"pad":"{}"}}"#,
        "x".repeat(length)
    );
    Request::Whole(post(SIGN_IN, JSON, &body))
}

/// An event for our client, with so many bytes of values, or of one long text.
fn event(pad: &str) -> Request {
    let claims =
        json!({ "iss": token::ISSUER, "aud": token::CLIENT_ID, "iat": token::now(), "jti": "1" })
            .to_string();
    let claims = format!(
        r#"{},"events":{{}},"pad":{pad}}}"#,
        claims.strip_suffix('}').unwrap()
    );
    let header = r#"{"alg":"RS256","typ":"secevent+jwt","kid":"1"}"#;
    let token = [header, &claims, "signature"].map(base64).join(".");
    assert!(token.len() <= 256 << 10, "{}", token.len());
    Request::Whole(post(
        "/api/v1/providers/second/events",
        "application/secevent+jwt",
        &token,
    ))
}

fn form() -> Request {
    // It has the form of a token.
    let mut form = format!("grant_type=refresh_token&refresh_token={}", "A".repeat(86));
    for number in 0_u16.. {
        let field = format!("&{number:x}=1");
        if form.len() + field.len() > 32 << 10 {
            break;
        }
        form += &field;
    }
    Request::Whole(post(
        "/api/v1/auth/token",
        "application/x-www-form-urlencoded",
        &form,
    ))
}

/// A request with a head of that length which lacks its end, or a part of its body.
fn unfinished(head: usize, body: Option<usize>) -> Request {
    let beginning = format!(
        "POST {REFRESH} HTTP/1.1\r\nHost: id.example.com\r\nContent-Type: {JSON}\r\nContent-Length: 65000\r\nX-Pad: "
    );
    let pad = "x".repeat(head - beginning.len());
    let end = body.map_or(String::new(), |sent| {
        format!("\r\n\r\n{{{}", " ".repeat(sent))
    });
    Request::Unfinished(format!("{beginning}{pad}{end}").into_bytes())
}

fn rows() -> Vec<Row> {
    let row = |name, count, addresses, request| Row {
        name,
        count,
        addresses,
        request,
    };
    vec![
        row(
            "60 sign-ins of 64 KiB of values",
            60,
            1,
            sign_in(&objects(64_900)),
        ),
        row(
            "240 sign-ins of 64 KiB of values, 4 addresses",
            240,
            4,
            sign_in(&objects(64_900)),
        ),
        row(
            "240 of the costliest sign-ins, 4 addresses",
            240,
            4,
            costliest_sign_in(),
        ),
        row(
            "60 events of 254 KB of values",
            60,
            1,
            event(&objects(194_000)),
        ),
        row(
            "60 events of 254 KB of text",
            60,
            1,
            event(&format!("\"{}\"", "x".repeat(190_000))),
        ),
        row("300 forms of 32 KiB of fields", 300, 1, form()),
        row(
            "400 unfinished heads of 390 KB",
            400,
            1,
            unfinished(390_000, None),
        ),
        row(
            "400 heads of 390 KB with unfinished bodies",
            400,
            1,
            unfinished(390_000, Some(60_000)),
        ),
        row(
            "400 unfinished heads of 32,000 bytes",
            400,
            1,
            unfinished(32_000, None),
        ),
        row(
            "400 heads of 32,000 bytes with unfinished bodies",
            400,
            1,
            unfinished(32_000, Some(60_000)),
        ),
    ]
}

/// Connects from one of this machine's addresses, and sends a request. The service may reject it
/// before it has read all of it.
async fn send(port: u16, from: u8, bytes: Vec<u8>) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket
        .bind((Ipv4Addr::new(127, 0, 0, from), 0).into())
        .unwrap();
    let mut stream = socket
        .connect((Ipv4Addr::LOCALHOST, port).into())
        .await
        .unwrap();
    let _ = stream.write_all(&bytes).await;
    stream
}

/// Number of bytes that were sent to a port and that its process has not read yet.
fn unread(port: u16) -> u64 {
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let ours = format!(":{port:04X}");
    let waiting = table.lines().filter_map(|line| {
        // The columns are number, local and remote address, state (1 is established), and the bytes
        // waiting to be sent and to be read.
        let columns: Vec<_> = line.split_whitespace().collect();
        let (to_send, to_read) = columns[4].split_once(':')?;
        let queue = match columns[3] {
            "01" if columns[1].ends_with(&ours) => to_read,
            "01" if columns[2].ends_with(&ours) => to_send,
            _ => return None,
        };
        u64::from_str_radix(queue, 16).ok()
    });
    waiting.sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_burst_of_requests_takes_more_than_128_mib_of_memory() {
    let _alone = alone().await;
    let folder = folder("memory");
    let provider = Provider::start().await;
    // The provider never responds, so that requests last as long as possible.
    provider.behave(Behaviour::NEVER_ANSWER);
    let second = format!(
        r#"{{second={{client_id="{}",issuers="{}",verify="jwks",jwks_url="{}/keys"}}}}"#,
        token::CLIENT_ID,
        token::ISSUER,
        provider.url()
    );
    let mut over = Vec::new();
    for Row {
        name,
        count,
        addresses,
        request,
    } in rows()
    {
        let database = Database::create().await;
        let instance = Vestibule::new(&folder, &database.url, &provider.tokeninfo_url());
        let instance = instance
            .with("ROCKET_PROVIDERS", &second)
            .with("ROCKET_RATE_LIMIT", "{enabled=true}");
        let instance = instance.started().await;
        let before = instance.peak();
        // The lock makes each refresh wait until its `lock_timeout`.
        let mut lock = database.pool.begin().await.unwrap();
        sqlx::query("LOCK TABLE sessions")
            .execute(&mut *lock)
            .await
            .unwrap();
        let (bytes, is_whole) = match request {
            Request::Whole(bytes) => (bytes, true),
            Request::Unfinished(bytes) => (bytes, false),
        };
        let mut sent = JoinSet::new();
        for number in 0..count {
            let bytes = bytes.clone();
            let port = instance.port;
            let from = 2 + u8::try_from(number % addresses).unwrap();
            sent.spawn(async move {
                let mut stream = send(port, from, bytes).await;
                if is_whole {
                    // The client may miss the response to a rejected request.
                    let _ = stream.read_to_end(&mut Vec::new()).await;
                }
                stream
            });
        }
        let connections = sent.join_all().await;
        eventually("all that was sent is read", async || {
            (unread(instance.port) == 0).then_some(())
        })
        .await;
        let peak = instance.peak();
        println!(
            "{name}: {} MiB before, {} MiB at most",
            before >> 20,
            peak >> 20
        );
        if peak > MOST {
            over.push((name, peak >> 20));
        }
        drop(connections);
        lock.rollback().await.unwrap();
    }
    assert!(over.is_empty(), "above 128 MiB: {over:?}");
}
