//! schemathesis sends requests, valid and invalid, made from the API's description, and compares
//! the responses with it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use vestibule::domain::api_key::KeyRole;

use crate::programs::version;
use crate::support::app::App;
use crate::support::missing::skip;
use crate::support::token::claims;

/// Finds the program in the virtual environment that `.ci/run` makes, or in PATH.
fn program() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders = [target.join("schemathesis/bin")]
        .into_iter()
        .chain(env::split_paths(&path));
    folders.find_map(|folder| Some(folder.join("st")).filter(|program| version(program).is_some()))
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_made_from_the_description_is_answered_as_described() {
    let Some(program) = program() else {
        return skip(
            "schemathesis is not installed: nobody else has tried the API by its description",
        );
    };
    let app = App::start_with(|figment| figment.merge(("rate_limit.enabled", false))).await;
    // Enough tokens for every user who is deleted.
    let token = |number| {
        app.token(&claims(
            &format!("subject-{number}"),
            &format!("person-{number}@example.com"),
        ))
    };
    let tokens = (0..200).map(token).collect::<Vec<_>>().join(" ");
    let key = app.api_key("admin", KeyRole::Admin).await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis");
    let mut command = Command::new(program);
    command
        .arg("--config-file")
        .arg(folder.join("schemathesis.toml"))
        .args(["run", &format!("{}/api/v1/openapi.json", app.url)])
        // One worker: CPython's own parser fails while another thread uses it.
        .args([
            "--workers",
            "1",
            "--max-examples",
            "20",
            "--seed",
            "1",
            "--no-color",
            "--warnings",
            "off",
        ])
        .args(["--generation-database", "none"])
        .envs([
            ("SCHEMATHESIS_HOOKS", "hooks"),
            ("ID_TOKENS", &tokens),
            ("API_KEY", &key),
            ("no_proxy", "*"),
        ])
        .env("SIGN_IN", format!("{}/api/v1/auth/oauth/idp", app.url))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONPATH", &folder)
        // It leaves a folder of its own behind.
        .current_dir(env!("CARGO_TARGET_TMPDIR"));
    // The command is slow, and the service runs on this runtime.
    let output = tokio::task::spawn_blocking(move || command.output())
        .await
        .unwrap()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(said.contains("Stateful"), "{said}");
}
