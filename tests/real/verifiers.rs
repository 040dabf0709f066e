//! The programs in `docs/verify.md` that verify our access tokens, as they stand there, with the libraries that
//! they name. `pyjwt.rs` runs the Python.

use std::fs;
use std::os::unix::fs::symlink;

use crate::deploy::tools::folder;
use crate::real::clients::Signed;
use crate::real::installed::{command, go, node, printed, project};

/// The first block of that language, for an issuer.
fn block(language: &str, issuer: &str) -> String {
    let page = fs::read_to_string(project("docs/verify.md")).unwrap();
    let (_, rest) = page.split_once(&format!("```{language}\n")).expect("it is there");
    rest.split("```").next().unwrap().replace("https://id.example.com", issuer)
}

/// A token, and three that are not ours any more.
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
    symlink(project("tests/real/node_modules"), signed.folder.join("node_modules")).unwrap();
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
    let imports =
        ["context", "os", "time", "github.com/MicahParks/keyfunc/v3", "github.com/golang-jwt/jwt/v5"];
    let imports = imports.map(|path| format!("import \"{path}\"\n")).concat();
    let program = format!("package main\n\n{imports}\n{}{GO}", block("go", &signed.instance.url()));
    fs::write(folder.join("main.go"), program).unwrap();
    let mut command = go();
    command.args(["run", "."]).args(tokens(&signed).await);
    printed(command).await;
}
