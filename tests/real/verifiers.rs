//! The programs in `docs/verify.md` that verify our access tokens, unchanged, with the libraries
//! that they name.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::deploy::tools::folder;
use crate::real::clients::Signed;
use crate::real::installed::{command, go, node, printed, project};
use crate::support::missing::skip;

/// The first code block of that language, for an issuer.
fn block(language: &str, issuer: &str) -> String {
    let page = fs::read_to_string(project("docs/verify.md")).unwrap();
    let (_, rest) = page
        .split_once(&format!("```{language}\n"))
        .expect("it is there");
    rest.split("```")
        .next()
        .unwrap()
        .replace("https://id.example.com", issuer)
}

/// A valid token, and three invalid changes of it.
async fn tokens(signed: &Signed) -> [String; 4] {
    let credential = signed.credential().await;
    let token = credential["access_token"].as_str().unwrap();
    let [header, claims, signature] = token.split('.').collect::<Vec<_>>().try_into().unwrap();
    let other = |part: &str| {
        let (first, rest) = part.split_at(1);
        format!("{}{rest}", if first == "A" { "B" } else { "A" })
    };
    let unsigned = crate::support::token::encode(r#"{"alg":"none","typ":"at+jwt"}"#, "{}");
    let unsigned = unsigned.split('.').next().unwrap();
    [
        token.to_owned(),
        format!("{header}.{claims}.{}", other(signature)),
        format!("{header}.{}.{signature}", other(claims)),
        format!("{unsigned}.{claims}."),
    ]
}

const NODE: &str = r#"
const [good, ...bad] = process.argv.slice(2);
if (!(await verify(good)).sub) throw new Error("no subject");
for (const token of bad) {
  if (await verify(token).then(() => true, () => false)) throw new Error(`accepted: ${token}`);
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_that_verifies_tokens_accepts_ours_and_no_other() {
    let Some(node) = node() else { return };
    let signed = Signed::start("real-jose").await;
    let program = signed.folder.join("verify.mjs");
    fs::write(&program, block("js", &signed.instance.url()) + NODE).unwrap();
    symlink(
        project("tests/real/node_modules"),
        signed.folder.join("node_modules"),
    )
    .unwrap();
    let mut command = command(&node);
    command.arg(program).args(tokens(&signed).await);
    printed(command).await;
}

const GO: &str = r"
func main() {
	for number, text := range os.Args[1:] {
		if _, err := verify(text); (err == nil) != (number == 0) {
			panic(text)
		}
	}
}
";

#[tokio::test(flavor = "multi_thread")]
async fn the_go_that_verifies_tokens_accepts_ours_and_no_other() {
    let folder = folder("real-go-module");
    let Some(go) = go(&folder) else { return };
    let signed = Signed::start("real-go").await;
    let imports = [
        "context",
        "os",
        "time",
        "github.com/MicahParks/keyfunc/v3",
        "github.com/golang-jwt/jwt/v5",
    ];
    let imports = imports.map(|path| format!("import \"{path}\"\n")).concat();
    let program = format!(
        "package main\n\n{imports}\n{}{GO}",
        block("go", &signed.instance.url())
    );
    fs::write(folder.join("main.go"), program).unwrap();
    let mut command = go();
    command.args(["run", "."]).args(tokens(&signed).await);
    printed(command).await;
}

/// A Python with PyJWT. Debian's package serves Debian's Python, which need not be the first in
/// PATH.
fn python() -> Option<&'static str> {
    let found = ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        let run = Command::new(python)
            .args(["-c", "import jwt, cryptography"])
            .stderr(Stdio::null())
            .status();
        run.is_ok_and(|status| status.success())
    });
    if found.is_none() {
        skip("python3-jwt and python3-cryptography are not installed: PyJWT has verified no token");
    }
    found
}

const PYTHON: &str = r#"
import sys
good, *bad = sys.argv[1:]
assert verify(good)["sub"]
for token in bad:
    try: verify(token)
    except jwt.PyJWTError: continue
    raise SystemExit(f"accepted: {token}")
"#;

/// Issues tokens of our shape with a key of its own, each wrong in one way.
const PYTHON_WITH_A_KEY: &str = r#"
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

#[tokio::test(flavor = "multi_thread")]
async fn the_python_that_verifies_tokens_accepts_ours_and_no_other() {
    let Some(python) = python() else { return };
    let signed = Signed::start("real-pyjwt").await;
    let program = block("python", &signed.instance.url());
    for (rest, tokens) in [
        (PYTHON, tokens(&signed).await.to_vec()),
        (PYTHON_WITH_A_KEY, Vec::new()),
    ] {
        let mut command = command(Path::new(python));
        command.args(["-c", &(program.clone() + rest)]).args(tokens);
        printed(command).await;
    }
}
