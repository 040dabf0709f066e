//! What the files for containers and for systemd set is what the service knows, and is enough.

use std::fs;
use std::path::Path;

use crate::support::cluster::Database;
use crate::tools::{Folder, alone, folder, shipped};
use crate::vestibule::Vestibule;

/// What is left to the operator.
const OWN: [(&str, &str); 2] =
    [("PUBLIC_URL", "https://id.example.com"), ("IDP_CLIENT_ID", "client.example")];

/// Starts with these settings, and secrets in that folder.
async fn starts(folder: &Path, database: &Database, settings: &[(String, String)]) {
    for (file, content) in [
        ("database_url", database.url.as_str()),
        ("secret_key", "8K2vXqJ5n0sRz7yTgWb1mHc4LdPe9aFu"),
        ("client_secret", "hush"),
    ] {
        fs::write(folder.join(file), format!("{content}\n")).unwrap();
    }
    let instance =
        settings.iter().fold(Vestibule::bare(folder), |instance, (name, value)| instance.with(name, value));
    let mut instance = instance.started().await;
    assert!(instance.run(&["health"]).status.success());
    instance.tell_to_stop();
    assert_eq!(instance.ended().await, Some(0), "{}", instance.said());
}

/// A value of compose's, with `${NAME:?…}` and `${NAME:-…}` as the operator has set them.
fn substituted(value: &str) -> String {
    let Some(inner) = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) else {
        return value.to_owned();
    };
    let (name, otherwise) = inner.split_once(':').unwrap();
    let set = OWN.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
    set.unwrap_or_else(|| otherwise.strip_prefix('-').expect("it is set, or has a default").to_owned())
}

fn place(folder: &Folder) -> &str {
    folder.to_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_compose_sets_is_enough() {
    let _alone = alone().await;
    let (folder, database) = (folder("compose"), Database::create().await);
    let text = shipped("compose.yaml", &[("/run/secrets", place(&folder))]);
    let (_, environment) = text.split_once("    environment:\n").unwrap();
    let lines = environment.lines().map_while(|line| line.strip_prefix("      ")?.split_once(": "));
    let settings: Vec<_> = lines.map(|(name, value)| (name.to_owned(), substituted(value))).collect();
    assert!(settings.len() > 4, "{settings:?}");
    starts(&folder, &database, &settings).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_unit_sets_is_enough() {
    let _alone = alone().await;
    let (folder, database) = (folder("unit"), Database::create().await);
    let text = shipped("vestibule.service", &[("%d", place(&folder))]);
    let lines = text.lines().filter_map(|line| line.strip_prefix("Environment=")?.split_once('='));
    let mut settings: Vec<_> = lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    assert_eq!(settings.len(), 3, "{settings:?}");
    // From the file of settings that its first lines describe.
    settings.extend([("ROCKET_PUBLIC_URL", OWN[0].1), OWN[1]].map(|(n, v)| (n.to_owned(), v.to_owned())));
    starts(&folder, &database, &settings).await;
}
