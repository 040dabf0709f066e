//! Every request gets a response, directly and through a proxy, and costs no other client a
//! response.

use std::net::SocketAddr;
use std::time::Duration;

use fastrand::Rng;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::deploy::phone::PhoneUsers;
use crate::deploy::site::{HOST, Site};
use crate::deploy::vestibule::Deployment;
use crate::support::race::rounds;

/// Longest wait for a response: longer than any limit of the service and of the proxies.
const TIMEOUT: Duration = Duration::from_secs(20);
/// A proxy's statuses if the service did not respond.
const FAILED: [u16; 3] = [502, 503, 504];

const METHODS: [&str; 12] = [
    "POST", "POST", "POST", "POST", "GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE",
    "BREW",
];
const PATHS: [&str; 26] = [
    "/api/v1/auth/oauth/idp",
    "/api/v1/auth/oauth/none",
    "/api/v1/auth/refresh",
    "/api/v1/auth/logout?scope=global",
    "/api/v1/auth/logout?scope=%ff",
    "/api/v1/auth/token",
    "/api/v1/auth/revoke",
    "/api/v1/auth/providers",
    "/api/v1/me",
    "/api/v1/me/merge",
    "/api/v1/me/identities/idp",
    "/api/v1/me/sessions/x",
    "/api/v1/providers/idp/events",
    "/api/v1/providers/none/events",
    "/api/v1/openapi.json",
    "/api/v1/admin/users",
    "/admin/sign-in/callback?state=x",
    "/admin/sign-out",
    "/admin/users?q=%00",
    "/.well-known/jwks.json",
    "/problems/invalid_token",
    "/livez",
    "/",
    "/%61pi//v1/me",
    "/nothing?a=\"<b>",
    "/api/v1/me?\u{e9}",
];
const TYPES: [&[u8]; 9] = [
    b"",
    b"Content-Type: application/x-www-form-urlencoded\r\n",
    b"Content-Type: application/x-www-form-urlencoded\r\n",
    b"Content-Type: application/json\r\n",
    b"Content-Type: application/json;\r\n",
    b"Content-Type: application/secevent+jwt\r\n",
    b"Content-Type: text/plain\r\n",
    b"Content-Type: multipart/form-data; boundary=a\r\n",
    b"Content-Type: \xff\r\n",
];
const HEADERS: [&[u8]; 16] = [
    b"",
    b"Expect: 100-continue\r\n",
    b"Expect: something\r\n",
    b"Authorization: Bearer x\r\n",
    b"Authorization: \xff\r\nAuthorization: Bearer x\r\n",
    b"DPoP: x\r\n",
    b"Cookie: name=Jos\xe9; __Host-vestibule-staff=x\r\n",
    b"X-Forwarded-For: \xff, 203.0.113.9\r\nForwarded: for=\"\r\n",
    b"X-Request-Id: \xff\r\n",
    b"Origin: null\r\nAccess-Control-Request-Method: POST\r\n",
    b"Content-Encoding: gzip\r\n",
    b"Accept: \x01\r\n",
    b"X-A: \x7f\r\n",
    b"Connection: close\r\n",
    b"Connection: Upgrade\r\nUpgrade: websocket\r\n",
    b"Referer: http://[\r\nTE: trailers\r\n",
];
const LENGTHS: [usize; 14] = [
    0, 1, 13, 14, 600, 16_000, 32_769, 65_000, 65_000, 65_536, 65_537, 200_000, 262_145, 300_000,
];
const BODIES: [&str; 12] = [
    "_method=HEAD",
    "_method=HEAD&",
    "_method=head&x=",
    "_method=DELETE&",
    "_method=GET&",
    "_method=OPTIONS&",
    "&_method=HEAD&",
    "grant_type=refresh_token&refresh_token=",
    "{\"id_token\":\"",
    "{\"refresh_token\":\"",
    "{",
    "",
];

/// A request: its method, and its bytes.
struct Request {
    method: &'static str,
    bytes: Vec<u8>,
}

impl Request {
    fn new(
        method: &'static str,
        target: &str,
        headers: &[&[u8]],
        body: &str,
        chunked: bool,
    ) -> Self {
        let mut bytes = format!("{method} {target} HTTP/1.1\r\nHost: {HOST}\r\n").into_bytes();
        bytes.extend(headers.concat());
        if chunked {
            bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            for chunk in body.as_bytes().chunks(20_000) {
                bytes.extend(
                    format!("{:x}\r\n", chunk.len())
                        .bytes()
                        .chain(chunk.iter().copied()),
                );
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\n");
        } else {
            bytes.extend(format!("Content-Length: {}\r\n\r\n{body}", body.len()).bytes());
        }
        Self { method, bytes }
    }

    fn random(rng: &mut Rng) -> Self {
        let body = BODIES[rng.usize(..BODIES.len())].to_owned();
        let body = body + &"x".repeat(LENGTHS[rng.usize(..LENGTHS.len())]);
        let mut headers = vec![TYPES[rng.usize(..TYPES.len())]];
        headers.extend((0..rng.usize(..4)).map(|_| HEADERS[rng.usize(..HEADERS.len())]));
        if rng.u8(..20) == 0 {
            headers.extend([&b"X-Many: x\r\n"[..]; 120]);
        }
        let method = METHODS[rng.usize(..METHODS.len())];
        let target = PATHS[rng.usize(..PATHS.len())];
        let mut request = Self::new(method, target, &headers, &body, rng.bool());
        if rng.u8(..8) == 0 {
            // A second request, sent before the response to the first.
            request
                .bytes
                .extend(Self::new("GET", "/livez", &[], "", false).bytes);
        }
        request
    }

    fn shown(&self) -> String {
        let head = self
            .bytes
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        let length = self.bytes.len() - head;
        format!(
            "{:?} with {length} bytes",
            String::from_utf8_lossy(&self.bytes[..(head + 24).min(self.bytes.len())])
        )
    }

    /// Forms with another method in their body, and bodies that no route reads.
    fn known() -> Vec<Self> {
        let form = &b"Content-Type: application/x-www-form-urlencoded\r\n"[..];
        let body = "x".repeat(65_000);
        let mut known = Vec::new();
        for target in ["/", "/livez", "/api/v1/me", "/api/v1/auth/token"] {
            for field in [
                "_method=HEAD",
                "_method=head&x=y",
                "_method=DELETE",
                "_method=TRACE",
            ] {
                known.push(Self::new("POST", target, &[form], field, false));
            }
            for method in ["POST", "GET", "BREW"] {
                known.push(Self::new(method, target, &[], &body, false));
                known.push(Self::new(method, target, &[b"X-A: \x01\r\n"], &body, false));
            }
        }
        known
    }
}

/// Sends a whole request before it reads anything, as many clients do, and returns the status of
/// the complete response.
async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &Request,
) -> Result<u16, String> {
    // The server may stop reading early, as long as its response arrives.
    let _ = timeout(TIMEOUT, stream.write_all(&request.bytes))
        .await
        .map_err(|_| "it is not read")?;
    let _ = stream.flush().await;
    let mut received = Vec::new();
    loop {
        if let Some(status) = whole(request, &received) {
            return Ok(status);
        }
        let read = timeout(TIMEOUT, stream.read_buf(&mut received))
            .await
            .map_err(|_| "no answer comes")?;
        match read {
            Ok(count) if count > 0 => {}
            end => {
                return Err(format!(
                    "{end:?} after {:?}",
                    String::from_utf8_lossy(&received)
                ));
            }
        }
    }
}

/// The status of the final response, once it is complete.
fn whole(request: &Request, received: &[u8]) -> Option<u16> {
    let at = received.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let (head, body) = received.split_at(at);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let status = head.split(' ').nth(1)?.get(..3)?.parse().ok()?;
    if status < 200 {
        return whole(request, body);
    }
    if request.method == "HEAD" || status == 204 {
        return Some(status);
    }
    let length: Option<usize> = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let is_whole = match length {
        Some(length) => body.len() >= length,
        None => {
            body.windows(5).any(|end| end == b"0\r\n\r\n") || head.contains("connection: close")
        }
    };
    is_whole.then_some(status)
}

/// Sends the known requests and random ones on one path, and asserts that each gets a response.
async fn all_are_answered<S: AsyncRead + AsyncWrite + Unpin>(
    way: &str,
    connect: impl AsyncFn() -> S,
) {
    let seed = fastrand::u64(..);
    let mut rng = Rng::with_seed(seed);
    let random = (0..4 * rounds()).map(|_| Request::random(&mut rng));
    let mut unanswered = Vec::new();
    for request in Request::known()
        .into_iter()
        .chain(random.collect::<Vec<_>>())
    {
        match answer(connect().await, &request).await {
            Ok(status) if !FAILED.contains(&status) => {}
            Ok(status) => unanswered.push(format!("{status}: {}", request.shown())),
            Err(why) => unanswered.push(format!("{why}: {}", request.shown())),
        }
    }
    let number = unanswered.len();
    unanswered.truncate(20);
    assert!(
        number == 0,
        "{way}, seed {seed}: {number} are not answered: {unanswered:#?}"
    );
}

async fn through(tls: &TlsConnector, proxy: SocketAddr) -> impl AsyncRead + AsyncWrite + Unpin {
    let stream = TcpStream::connect(proxy).await.unwrap();
    tls.connect(ServerName::try_from(HOST).unwrap(), stream)
        .await
        .unwrap()
}

/// Does the same through a proxy, while other clients sign in through it.
async fn beside_others(way: &str, site: &Site, deployment: &Deployment) {
    let clients = (0..2).map(|_| site.client().build().unwrap());
    let phone_users = PhoneUsers::start(clients.collect(), &site.url(), &deployment.provider);
    let tls = site.tls();
    all_are_answered(way, async || through(&tls, site.address).await).await;
    let answers = phone_users.stop().await;
    println!("{way}: meanwhile others got {answers} good answers");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_is_answered_directly_and_through_both_proxies() {
    let deployment = Deployment::start("every-request").await;
    let instance = SocketAddr::from(([127, 0, 0, 1], deployment.instances[0].port));
    all_are_answered("directly", async || {
        TcpStream::connect(instance).await.unwrap()
    })
    .await;
    if let Some(proxy) = deployment.haproxy(&[]).await {
        beside_others("through HAProxy", &proxy.site, &deployment).await;
    }
    if let Some(proxy) = deployment.nginx(&[]).await {
        beside_others("through nginx", &proxy.site, &deployment).await;
        let failures = [
            "upstream prematurely closed",
            "no live upstreams",
            "from upstream",
            "to upstream",
        ];
        let said = proxy.said();
        let failed: Vec<_> = said
            .lines()
            .filter(|line| failures.iter().any(|text| line.contains(text)))
            .collect();
        assert!(failed.is_empty(), "{failed:#?}");
    }
}
