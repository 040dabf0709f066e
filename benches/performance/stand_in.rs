//! Processes beside the service, each this same program with a hidden argument: an identity
//! provider that is as fast as possible, and a Rocket with a single route.

use std::process::Command;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rocket::serde::json::Json;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::setting::Running;
use super::support::token::{CLIENT_ID, ISSUER};

const KEY_ID: &str = "bench";
/// Tokens outlive every run.
const TTL: i64 = 20 * 3600;

/// Starts a process of this program.
pub fn start(name: &str, port: u16, jwks: &str) -> Running {
    let mut command = Command::new(std::env::current_exe().expect("this program is a file"));
    command
        .args(["--bench", "--stand-in", name, "--jwks", jwks, "--port"])
        .arg(port.to_string());
    Running::start(&mut command)
}

/// Runs as such a process, until it is killed.
pub async fn run(name: &str, port: u16, jwks: &str) {
    if name == "rocket" {
        let level = rocket::config::LogLevel::Off;
        let config = rocket::Config {
            port,
            log_level: level,
            ..rocket::Config::release_default()
        };
        rocket::custom(config)
            .mount("/", rocket::routes![trivial])
            .launch()
            .await
            .expect("it listens");
        return;
    }
    let listener = TcpListener::bind(("127.0.0.1", port))
        .await
        .expect("the port is free");
    loop {
        let (stream, _) = listener.accept().await.expect("there are files left");
        tokio::spawn(answer(stream, jwks.to_owned()));
    }
}

/// Reads a sign-in's body, and returns a minimal response.
#[rocket::post("/trivial", data = "<body>")]
fn trivial(body: Json<Value>) -> Json<Value> {
    let members = body.into_inner().as_object().map(Map::len);
    Json(json!({ "members": members }))
}

/// Responds to the requests of a connection one after the other: to `/tokeninfo` with the token's
/// own claims, to anything else with the key set.
async fn answer(mut stream: TcpStream, jwks: String) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut read = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        let size = stream
            .read(&mut buffer)
            .await
            .ok()
            .filter(|size| *size > 0)?;
        read.extend_from_slice(&buffer[..size]);
        if !read.ends_with(b"\r\n\r\n") {
            continue;
        }
        let request = std::str::from_utf8(&read).ok()?;
        let body = request
            .strip_prefix("GET /tokeninfo?id_token=")
            .and_then(information)
            .unwrap_or_else(|| jwks.clone());
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: max-age=3600\r\nContent-Length: ";
        stream
            .write_all(format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes())
            .await
            .ok()?;
        read.clear();
    }
}

/// The token's own claims, with every value as a string, as Google does it.
fn information(token: &str) -> Option<String> {
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Map<String, Value> = serde_json::from_slice(&payload).ok()?;
    let text = |value: Value| {
        if value.is_string() {
            value
        } else {
            value.to_string().into()
        }
    };
    serde_json::to_string(
        &claims
            .into_iter()
            .map(|(name, value)| (name, text(value)))
            .collect::<Map<_, _>>(),
    )
    .ok()
}

/// The provider's key, which signs with ES256.
pub struct Key(EcdsaKeyPair, SystemRandom);

impl Key {
    pub fn generate() -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key is made");
        Self(pair, SystemRandom::new())
    }

    /// The key set that the provider publishes.
    pub fn jwks(&self) -> String {
        // An uncompressed point (SEC 1 §2.3.3).
        let [x, y] = [1..33, 33..65]
            .map(|range| URL_SAFE_NO_PAD.encode(&self.0.public_key().as_ref()[range]));
        let key = json!({ "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": KEY_ID, "x": x, "y": y });
        json!({ "keys": [key] }).to_string()
    }

    pub fn sign(&self, message: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.0.sign(&self.1, message.as_bytes()).expect("it signs"))
    }

    /// The token of a user. `setting::Setting::seed` stores its claims.
    pub fn mint(&self, user: &str) -> String {
        let now = vestibule::clock::now();
        let claims = json!({
            "iss": ISSUER, "aud": CLIENT_ID, "azp": CLIENT_ID, "sub": user, "email": format!("{user}@example.test"),
            "email_verified": true, "name": format!("Person {user}"), "iat": now, "exp": now + TTL,
            "picture": format!("https://example.test/photo/{user}"),
        });
        let header = json!({ "alg": "ES256", "kid": KEY_ID, "typ": "JWT" });
        let [header, claims] =
            [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let message = format!("{header}.{claims}");
        format!("{message}.{}", self.sign(&message))
    }
}
