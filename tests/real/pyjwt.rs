//! PyJWT, a library that has nothing in common with ours, verifies our tokens by the published keys.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::real::installed::project;
use crate::support::app::App;
use crate::support::keys::{ISSUER, kid, pass};
use crate::support::missing::skip;
use crate::support::token::claims;

/// It gets the key from the published set, as its documentation says.
const PROGRAM: &str = r#"
import json, jwt, sys
url, issuer = sys.argv[1:]
token = sys.stdin.read()
key = jwt.PyJWKClient(url).get_signing_key_from_jwt(token)
required = {"require": ["iss", "sub", "aud", "exp", "iat", "jti"]}
claims = jwt.decode(token, key.key, algorithms=["ES256"], issuer=issuer, audience=issuer, options=required)
print(json.dumps({"header": jwt.get_unverified_header(token), "claims": claims}))
"#;

/// A Python that has PyJWT; Debian's package serves Debian's Python, which need not be the first.
fn python() -> Option<&'static str> {
    let found = ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        let run =
            Command::new(python).args(["-c", "import jwt, cryptography"]).stderr(Stdio::null()).status();
        run.is_ok_and(|status| status.success())
    });
    if found.is_none() {
        skip("python3-jwt and python3-cryptography are not installed: PyJWT has verified no token");
    }
    found
}

/// The token's header and claims, when PyJWT accepts it by the published keys; else what it says.
fn verify(python: &str, jwks_url: &str, token: &str) -> Result<Value, String> {
    let mut running = Command::new(python)
        .args(["-c", PROGRAM, jwks_url, ISSUER])
        .env("no_proxy", "*")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    running.stdin.take().unwrap().write_all(token.as_bytes()).unwrap();
    let output = running.wait_with_output().unwrap();
    if output.status.success() {
        Ok(serde_json::from_slice(&output.stdout).unwrap())
    } else {
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unrelated_library_verifies_tokens_from_the_set_alone_before_and_after_a_rotation() {
    let Some(python) = python() else { return };
    let app = App::start().await;
    let access_token = async || app.sign_in(&claims("subject", "ada@example.com")).await.access_token();
    let url = format!("{}/.well-known/jwks.json", app.url);
    let verify = async |token: &str| {
        let (url, token) = (url.clone(), token.to_owned());
        tokio::task::spawn_blocking(move || verify(python, &url, &token)).await.unwrap()
    };
    let before = access_token().await;
    let verified = verify(&before).await.unwrap();
    assert_eq!(verified["header"]["typ"], "at+jwt");
    assert_eq!(verified["header"]["alg"], "ES256");
    assert_eq!(verified["claims"]["iss"], ISSUER);

    app.keys.rotation().rotate().await.unwrap();
    pass(&app.database, 600).await;
    app.keys.reload().await.unwrap();
    let after = access_token().await;
    assert_ne!(kid(&after), kid(&before));
    assert_eq!(verify(&after).await.unwrap()["claims"]["sub"], verified["claims"]["sub"]);
    assert!(verify(&before).await.is_ok(), "the old token is valid until it expires");

    app.keys.rotation().replace_all(false).await.unwrap();
    app.keys.reload().await.unwrap();
    for token in [&before, &after] {
        let refused = verify(token).await.unwrap_err();
        assert!(refused.contains("Unable to find a signing key"), "{refused}");
    }
    let current = access_token().await;
    assert!(verify(&current).await.is_ok());
    let (message, signature) = current.rsplit_once('.').unwrap();
    let other = if signature.starts_with('A') { "B" } else { "A" };
    let altered = format!("{message}.{other}{}", &signature[1..]);
    let refused = verify(&altered).await.unwrap_err();
    assert!(refused.contains("Signature verification failed"), "{refused}");
}

/// Follows the program of docs/verify.md: issues tokens of our shape with a key of its own, and shows them to its `verify`.
const PAGE: &str = r#"
import http.server, json, threading, time
from cryptography.hazmat.primitives.asymmetric import ec
key = None
# Some releases of PyJWT write coordinates without their leading zeros (RFC 7518, section 6.2.1.2) and do not read them so.
while not key or min(point.x, point.y).bit_length() <= 248:
    key = ec.generate_private_key(ec.SECP256R1())
    point = key.public_key().public_numbers()
jwk = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key())) | {"kid": "one", "use": "sig", "alg": "ES256"}
class Keys(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/.well-known/jwks.json" else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"keys": [jwk]}).encode())
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Keys)
threading.Thread(target=server.serve_forever, daemon=True).start()
ISSUER = f"http://127.0.0.1:{server.server_port}"
KEYS = jwt.PyJWKClient(ISSUER + "/.well-known/jwks.json")
now = int(time.time())
def token(typ="at+jwt", kid="one", key=key, alg="ES256", **changes):
    claims = {"iss": ISSUER, "aud": ISSUER, "sub": "user", "iat": now, "exp": now + 900} | changes
    claims = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(claims, key, algorithm=alg, headers={"typ": typ, "kid": kid})
assert verify(token())["sub"] == "user"
head, claims, signature = token().split(".")
for name, bad in {
    "altered claims": ".".join([head, token(sub="root").split(".")[1], signature]),
    "an altered signature": ".".join([head, claims, ("B" if signature[0] == "A" else "A") + signature[1:]]),
    "another typ": token(typ="JWT"), "another issuer": token(iss="https://other.example"),
    "another audience": token(aud="https://other.example"), "expired": token(exp=now - 300), "no exp": token(exp=None),
    "another key": token(key=ec.generate_private_key(ec.SECP256R1())), "an unknown kid": token(kid="two"),
    "no signature": token(key=None, alg="none"), "a shared secret": token(key="secret", alg="HS256"),
}.items():
    try: verify(bad)
    except jwt.PyJWTError: continue
    raise SystemExit(f"accepted: {name}")
"#;

#[test]
fn the_python_that_verifies_tokens_accepts_ours_and_no_other() {
    let Some(python) = python() else { return };
    let page = fs::read_to_string(project("docs/verify.md")).unwrap();
    let (_, rest) = page.split_once("```python\n").expect("it is there");
    let program = format!("{}{PAGE}", rest.split("```").next().unwrap());
    let output = Command::new(python).args(["-c", &program]).env("no_proxy", "*").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
