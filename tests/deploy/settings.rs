//! The files for containers and for systemd set only known settings, and all that are necessary.

use std::fs;
use std::path::Path;
use std::process::Command;

use reqwest::Client;

use crate::deploy::tools::{Folder, alone, folder, shipped};
use crate::deploy::vestibule::Vestibule;
use crate::support::cluster::Database;

/// Settings that are left to the operator.
const OWN: [(&str, &str); 2] = [
    ("PUBLIC_URL", "https://id.example.com"),
    ("IDP_CLIENT_ID", "client.example"),
];

/// Writes the secrets into files in that folder.
fn write_secrets(folder: &Path, database: &Database) {
    for (file, content) in [
        ("database_url", database.url.as_str()),
        ("secret_key", "8K2vXqJ5n0sRz7yTgWb1mHc4LdPe9aFu"),
        ("client_secret", "hush"),
    ] {
        fs::write(folder.join(file), format!("{content}\n")).unwrap();
    }
}

/// Asserts that the service starts with these settings and the secrets in that folder, and knows
/// these providers.
async fn starts(
    folder: &Path,
    database: &Database,
    settings: &[(String, String)],
    providers: &[&str],
) {
    write_secrets(folder, database);
    let instance = settings
        .iter()
        .fold(Vestibule::bare(folder), |instance, (name, value)| {
            instance.with(name, value)
        });
    let mut instance = instance.started().await;
    instance.prints(&["health"]);
    let known = providers
        .iter()
        .map(|provider| (*provider, "unsupported_media_type"));
    for (provider, error) in known.chain([("no-such", "provider_not_found")]) {
        let url = format!("{}/api/v1/auth/oauth/{provider}", instance.url());
        let answer = Client::new()
            .post(url)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        assert!(answer.contains(error), "{provider}: {answer}");
    }
    instance.tell_to_stop();
    assert_eq!(instance.ended().await, Some(0), "{}", instance.said());
}

/// A value from the compose file, with the operator's settings for `${NAME:?…}` and `${NAME:-…}`.
fn substituted(value: &str) -> String {
    let Some(inner) = value
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
    else {
        return value.to_owned();
    };
    let (name, otherwise) = inner.split_once(':').unwrap();
    let set = OWN
        .iter()
        .find(|(own, _)| *own == name)
        .map(|(_, value)| (*value).to_owned());
    set.unwrap_or_else(|| {
        otherwise
            .strip_prefix('-')
            .expect("it is set, or has a default")
            .to_owned()
    })
}

fn place(folder: &Folder) -> &str {
    folder.to_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_compose_sets_is_enough() {
    let _alone = alone().await;
    let folder = folder("compose");
    let database = Database::create().await;
    let text = shipped("compose.yaml", &[("/run/secrets", place(&folder))]);
    let (_, environment) = text.split_once("    environment:\n").unwrap();
    let lines = environment
        .lines()
        .map_while(|line| line.strip_prefix("      ")?.split_once(": "));
    let settings: Vec<_> = lines
        .map(|(name, value)| (name.to_owned(), substituted(value)))
        .collect();
    assert!(settings.len() > 4, "{settings:?}");
    starts(&folder, &database, &settings, &["idp"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_kubernetes_manifest_sets_is_enough() {
    let _alone = alone().await;
    let folder = folder("kubernetes");
    let database = Database::create().await;
    let text = shipped(
        "kubernetes/vestibule.yaml",
        &[("/run/secrets/vestibule", place(&folder))],
    );
    let pairs = text.lines().filter_map(|line| {
        let (name, value) = line
            .trim()
            .strip_prefix("- { name: ")?
            .strip_suffix(" }")?
            .split_once(", value: ")?;
        Some((name.to_owned(), value.trim_matches('"').to_owned()))
    });
    // No proxy has to notice the stop.
    let quick = |(name, value)| {
        if name == "ROCKET_DRAIN" {
            (name, "0".into())
        } else {
            (name, value)
        }
    };
    let settings: Vec<_> = pairs.map(quick).collect();
    assert_eq!(settings.len(), 7, "{settings:?}");
    starts(&folder, &database, &settings, &["idp"]).await;
}

/// Asserts that the service starts with the unit's settings, some of them replaced.
async fn starts_as_unit(changes: &[(&str, &str)], count: usize, providers: &[&str]) {
    let _alone = alone().await;
    let folder = folder("unit");
    let database = Database::create().await;
    let etc = folder.join("etc");
    let places = [
        ("%d", place(&folder)),
        ("/run/vestibule", place(&folder)),
        ("/etc/vestibule", etc.to_str().unwrap()),
    ];
    let text = shipped("vestibule.service", &[changes, &places].concat());
    fs::create_dir(&etc).unwrap();
    fs::write(
        etc.join("rocket.toml"),
        "[default.providers.apple]\npreset = \"apple\"\nclient_id = \"app\"\n",
    )
    .unwrap();
    fs::write(folder.join("database_ca"), "").unwrap();
    let (_, copy) = text.split_once("ExecStartPre=+").unwrap();
    let copied = Command::new("sh")
        .args(["-c", copy.lines().next().unwrap()])
        .status()
        .unwrap();
    assert!(copied.success());
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("Environment=")?.split_once('='));
    let mut settings: Vec<_> = lines
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    assert_eq!(settings.len(), count, "{settings:?}");
    // The settings in the file that the unit's first lines describe.
    settings.extend(
        [("ROCKET_PUBLIC_URL", OWN[0].1), OWN[1]].map(|(n, v)| (n.to_owned(), v.to_owned())),
    );
    starts(&folder, &database, &settings, providers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_unit_sets_is_enough() {
    starts_as_unit(&[], 3, &["idp"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commented_settings_of_the_unit_work_once_enabled() {
    starts_as_unit(
        &[("\n# Environment=", "\nEnvironment=")],
        5,
        &["idp", "apple"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_the_unit_commands_are_given_their_settings_as_written() {
    let _alone = alone().await;
    let folder = folder("commands");
    let database = Database::create().await;
    write_secrets(&folder, &database);
    let own = OWN.map(|(name, value)| match name {
        "PUBLIC_URL" => format!("ROCKET_{name}={value}\n"),
        _ => format!("{name}={value}\n"),
    });
    // As the unit's first lines say.
    let quoted = "ROCKET_RATE_LIMIT='{sign_in_per_minute=61, refresh_per_minute=601}'\n";
    fs::write(folder.join("settings"), format!("{}{quoted}", own.concat())).unwrap();
    let page =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/production.md")).unwrap();
    let (_, section) = page
        .split_once("\n## Commands in a deployment\n")
        .expect("it is there");
    let block: Vec<_> = section
        .lines()
        .skip_while(|line| !line.starts_with("    "))
        .map_while(|line| line.strip_prefix("    "))
        .collect();
    let (check, lines) = block.split_last().unwrap();
    assert_eq!(*check, "vestibule check");
    let said = |command: &str| {
        let script = lines.join("\n").replace("/etc/vestibule", place(&folder));
        let program = Path::new(env!("CARGO_BIN_EXE_vestibule"))
            .parent()
            .unwrap()
            .display();
        let output = Command::new("sh")
            .args(["-euc", &format!("{script}\n{command}")])
            .env_clear()
            .env("PATH", format!("{program}:/usr/bin:/bin"))
            .env("ROCKET_PROFILE", "release")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{command}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    said("vestibule staff add ada@example.com --role admin");
    assert!(said("vestibule staff list").contains("ada@example.com"));
    assert_eq!(said("echo \"$DATABASE_URL\"").trim(), database.url);
    assert!(said("env").contains("refresh_per_minute=601}"));
}
