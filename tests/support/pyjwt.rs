//! PyJWT, a library that has nothing in common with ours, as a service that verifies our tokens.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::missing::skip;

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
    ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        let run =
            Command::new(python).args(["-c", "import jwt, cryptography"]).stderr(Stdio::null()).status();
        run.is_ok_and(|status| status.success())
    })
}

/// The token's header and claims, when PyJWT accepts it by the published keys; else what it says.
/// Nothing where it is not installed, which is an error where `CI` is set.
pub fn verify(jwks_url: &str, issuer: &str, token: &str) -> Option<Result<Value, String>> {
    let Some(python) = python() else {
        skip("python3-jwt and python3-cryptography are not installed: no other library has verified a token");
        return None;
    };
    let mut running = Command::new(python)
        .args(["-c", PROGRAM, jwks_url, issuer])
        .env("no_proxy", "*")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    running.stdin.take().unwrap().write_all(token.as_bytes()).unwrap();
    let output = running.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    Some(if output.status.success() {
        Ok(serde_json::from_slice(&output.stdout).unwrap())
    } else {
        Err(said)
    })
}
