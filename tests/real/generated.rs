//! Clients that generators make from the API's description compile, and work for apps and backends.
//! The apps' programs in `tests/real/generated` sign in, refresh, read their user, and try an
//! invalid token. The backends' programs create a user, search, try a change, and ask for a user
//! who does not exist.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::deploy::tools::folder;
use crate::real::clients::Signed;
use crate::real::installed::{
    command, go, java_project, node, openapi_generator, printed, project,
};
use crate::support::process::free_port;

/// The output of each app's program.
const DONE: &str = "created ada@example.com invalid_refresh_token\n";

/// The output of a backend's program.
const ADMINISTERED: &str = "grace@example.com false user_not_found";

/// Writes the API's description into a file of the folder.
async fn description(signed: &Signed, folder: &Path) {
    let answer = reqwest::get(format!("{}/api/v1/openapi.json", signed.instance.url()))
        .await
        .unwrap();
    fs::write(folder.join("openapi.json"), answer.text().await.unwrap()).unwrap();
}

/// Copies one of our programs into the folder, under that name.
fn program(folder: &Path, file: &str, name: &str) {
    fs::copy(
        project("tests/real/generated").join(file),
        folder.join(name),
    )
    .unwrap();
}

/// Compiles a program of ours, strictly, and runs it.
async fn typescript(signed: &Signed, node: &Path, file: &str) -> String {
    program(&signed.folder, file, "app.mts");
    program(&signed.folder, "tsconfig.json", "tsconfig.json");
    let mut compiled = command(node);
    compiled
        .current_dir(&*signed.folder)
        .args(["node_modules/typescript/bin/tsc", "-p", "."]);
    printed(compiled).await;
    let mut run = command(node);
    run.arg(signed.folder.join("out/app.mjs"))
        .args([signed.instance.url(), signed.id_token()]);
    printed(run).await
}

fn modules(folder: &Path) {
    symlink(
        project("tests/real/node_modules"),
        folder.join("node_modules"),
    )
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_by_openapi_typescript_compiles_signs_in_and_refreshes() {
    let Some(node) = node() else { return };
    let signed = Signed::start("real-openapi-fetch").await;
    modules(&signed.folder);
    description(&signed, &signed.folder).await;
    let mut generate = command(&node);
    generate
        .current_dir(&*signed.folder)
        .arg("node_modules/openapi-typescript/bin/cli.js");
    generate.args(["openapi.json", "-o", "schema.d.ts"]);
    printed(generate).await;
    assert_eq!(typescript(&signed, &node, "openapi_fetch.mts").await, DONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typescript_client_by_openapi_generator_compiles_signs_in_and_refreshes() {
    let (Some(node), Some((java, archive))) = (node(), openapi_generator()) else {
        return;
    };
    let signed = Signed::start("real-typescript-fetch").await;
    modules(&signed.folder);
    description(&signed, &signed.folder).await;
    let mut generate = command(&java);
    generate
        .current_dir(&*signed.folder)
        .args(["-XX:TieredStopAtLevel=1", "-jar"])
        .arg(archive);
    generate.args([
        "generate",
        "-i",
        "openapi.json",
        "-g",
        "typescript-fetch",
        "-o",
        "client",
    ]);
    // Without webhooks: for them the generator imports types without names, with any kind of
    // schema.
    generate.args(["--global-property", "apis,models,supportingFiles"]);
    // Node needs the extension in imports.
    generate.args(["--additional-properties", "importFileExtension=.js"]);
    printed(generate).await;
    assert_eq!(
        typescript(&signed, &node, "typescript_fetch.mts").await,
        DONE
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_by_oapi_codegen_compiles_signs_in_and_refreshes() {
    let folder = folder("real-oapi-codegen-module");
    let Some(go) = go(&folder) else { return };
    let signed = Signed::start("real-oapi-codegen").await;
    program(&folder, "app.go", "main.go");
    let run = [signed.instance.url(), signed.id_token()];
    assert_eq!(
        generated_by_oapi_codegen(&signed, &folder, go, &run).await,
        DONE
    );
}

/// Generates the client, and compiles and runs the program.
async fn generated_by_oapi_codegen(
    signed: &Signed,
    folder: &Path,
    go: impl Fn() -> Command,
    arguments: &[String],
) -> String {
    description(signed, folder).await;
    fs::create_dir(folder.join("api")).unwrap();
    let generate =
        "tool oapi-codegen -generate types,client -package api -o api/client.gen.go openapi.json";
    for step in [generate, "vet ./..."] {
        let mut command = go();
        command.args(step.split(' '));
        printed(command).await;
    }
    let mut run = go();
    run.args(["run", "."]).args(arguments);
    printed(run).await
}

/// An API key that may do everything.
fn api_key(signed: &Signed) -> String {
    signed
        .instance
        .prints(&["api-key", "add", "backend", "--role", "admin"])
        .trim()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_in_go_administers_users_and_verifies_a_webhook() {
    let folder = folder("real-backend-go-module");
    let Some(go) = go(&folder) else { return };
    let receiver = format!("127.0.0.1:{}", free_port());
    let secret = "whsec_YSBzZWNyZXQgdGhhdCBvbmx5IHRoZSB0ZXN0cyB1c2U=";
    let webhooks = format!("{{backend={{url=\"http://{receiver}/\",secret=\"{secret}\"}}}}");
    let signed = Signed::start_with("real-backend-go", &[("ROCKET_WEBHOOKS", &webhooks)]).await;
    program(&folder, "backend.go", "main.go");
    let run = [
        signed.instance.url(),
        api_key(&signed),
        receiver,
        secret.to_owned(),
    ];
    let said = generated_by_oapi_codegen(&signed, &folder, go, &run).await;
    assert_eq!(said, format!("{ADMINISTERED} user.created\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_in_java_administers_users() {
    let signed = Signed::start("real-backend-java").await;
    let Some(mut maven) = java_project(&signed.folder) else {
        return;
    };
    description(&signed, &signed.folder).await;
    maven.args(["compile", "exec:java"]);
    maven.arg(format!(
        "-Dexec.args={} {}",
        signed.instance.url(),
        api_key(&signed)
    ));
    let said = printed(maven).await;
    assert!(said.lines().any(|line| line == ADMINISTERED), "{said}");
}
