//! Every page is valid HTML according to the Nu Html Checker, which the W3C's validator uses.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::browser::tools::npm;
use crate::programs::program;
use crate::support::pages::{self, Content};
use crate::support::people::People;
use crate::support::staff_app::StaffApp;

/// An invalid page, which proves that the checker finds faults.
const WRONG: &str =
    "<!doctype html><html lang=en><title>x</title><svg viewBox='0 0 1 1'><rect widht=1 /></svg>";

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_valid_html() {
    let Some(checker) = npm("vnu-jar/build/dist/vnu.jar") else {
        return;
    };
    let Some(java) = program("java", (11, 0)) else {
        return;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("wrong.html"), WRONG).unwrap();

    let staff_app = StaffApp::open().await;
    let people = People::arrive(&staff_app).await;
    for page in pages::all(&staff_app, &people)
        .await
        .iter()
        .filter(|page| page.content == Content::Page)
    {
        let answer = page.open(&staff_app).await;
        fs::write(folder.join(format!("{}.html", page.name)), answer.text).unwrap();
    }

    let mut command = Command::new(java);
    command
        .arg("-Xss4m")
        .arg("-jar")
        .arg(checker)
        .args(["--format", "json", "--stdout"])
        .arg(&folder);
    let output = command.output().unwrap();
    let verdict: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let messages = verdict["messages"].as_array().unwrap();
    let of_wrong = |message: &&Value| {
        message["url"]
            .as_str()
            .is_some_and(|url| url.ends_with("/wrong.html"))
    };
    assert_eq!(messages.iter().filter(of_wrong).count(), 1, "{messages:#?}");
    let others: Vec<_> = messages
        .iter()
        .filter(|message| !of_wrong(message))
        .collect();
    assert!(others.is_empty(), "{others:#?}");
}
