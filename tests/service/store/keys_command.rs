//! `vestibule keys …`, as an operator runs it beside a service.

use std::process::Output;

use crate::support::app::App;
use crate::support::cluster::Database;
use crate::support::keys::{kid, pass};
use crate::support::process::{SECRET_KEY, complete_settings, run};
use crate::support::token::claims;

/// Runs the program in the release profile, with the settings of the tests.
async fn keys(database: &Database, secret_key: &str, arguments: &[&str]) -> Output {
    let complete = complete_settings(&database.url, "http://127.0.0.1:1/");
    let settings = [&complete[..], &[("ROCKET_SECRET_KEY", secret_key)]].concat();
    run(&settings, &[&["keys"], arguments].concat()).await
}

/// Returns the first two words of each printed row: the id and the state.
async fn states(database: &Database, arguments: &[&str]) -> Vec<(String, String)> {
    let output = keys(database, SECRET_KEY, arguments).await;
    let out = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && err.is_empty(),
        "{arguments:?}: {err}"
    );
    let mut lines = out.lines();
    assert_eq!(
        lines
            .next()
            .unwrap()
            .split("  ")
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>(),
        [
            "KID",
            "STATE",
            "CREATED",
            "SIGNS FROM",
            "PUBLISHED UNTIL",
            "SECRET KEY"
        ]
    );
    let rows = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.map(|row| {
        assert_eq!(row.len(), 6, "{row:?}");
        assert!(row[2].ends_with('Z') && row[3].ends_with('Z'), "{row:?}");
        assert_eq!(row[5], "current", "{row:?}");
        (row[0].to_owned(), row[1].to_owned())
    })
    .collect()
}

fn names(states: &[(String, String)]) -> Vec<&str> {
    states.iter().map(|(_, state)| state.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_lists_announces_and_replaces_keys() {
    let app = App::start().await;
    let token = app
        .sign_in(&claims("subject", "ada@example.com"))
        .await
        .json()["access_token"]
        .to_string();
    let listed = states(&app.database, &["list"]).await;
    assert_eq!(listed, [(kid(token.trim_matches('"')), "signing".into())]);

    assert_eq!(
        names(&states(&app.database, &["rotate"]).await),
        ["signing", "next"]
    );
    let again = keys(&app.database, SECRET_KEY, &["rotate"]).await;
    let said = String::from_utf8(again.stderr).unwrap();
    assert_eq!(
        (again.status.code(), said.lines().count()),
        (Some(1), 1),
        "{said}"
    );
    assert!(said.contains("already published"), "{said}");

    pass(&app.database, 600).await;
    assert_eq!(
        names(&states(&app.database, &["list"]).await),
        ["verifying", "signing"]
    );
    let replaced = states(&app.database, &["rotate", "--now"]).await;
    assert_eq!(names(&replaced), ["retired", "retired", "signing"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_secret_key_fails_and_a_new_one_needs_confirmation() {
    const OTHER: &str = "another key, of more than 32 characters";
    let app = App::start().await;
    for arguments in [&["rotate"][..], &["rotate", "--now"]] {
        let output = keys(&app.database, OTHER, arguments).await;
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), said.lines().count()),
            (Some(1), 1),
            "{said}"
        );
        assert!(
            said.contains("`secret_key`") && !said.contains("another key,"),
            "{said}"
        );
    }
    let output = keys(
        &app.database,
        OTHER,
        &["rotate", "--now", "--new-secret-key"],
    )
    .await;
    assert!(output.status.success());
    let opened_by = async |secret_keys: &str| {
        let output = keys(&app.database, secret_keys, &["list"]).await;
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success() && !out.contains("another key,"),
            "{out}"
        );
        let rows = out.lines().skip(1).map(|row| {
            row.split_whitespace()
                .skip(1)
                .step_by(4)
                .collect::<Vec<_>>()
        });
        rows.flatten().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        opened_by(SECRET_KEY).await,
        ["retired", "current", "signing", "another"]
    );
    assert_eq!(
        opened_by(OTHER).await,
        ["retired", "another", "signing", "current"]
    );
    let both = format!("[\"{OTHER}\", \"{SECRET_KEY}\"]");
    assert_eq!(
        opened_by(&both).await,
        ["retired", "previous", "signing", "current"]
    );
    let unmeant = keys(&app.database, OTHER, &["rotate", "--new-secret-key"]).await;
    assert_eq!(unmeant.status.code(), Some(2), "it takes --now");
}
