//! `deploy/vestibule.example.toml` lists every setting of the configuration's page, with the code's
//! default.
//!
//!     UPDATE_EXAMPLE=1 cargo test --test quick docs::example  # rewrites it, and keeps its defaults

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::{env, fs};

use figment::Figment;
use figment::providers::{Format, Toml};
use vestibule::config::{self, Config, LogFormat, LogLevel};
use vestibule::database::Database;
use vestibule::database::pool::Settings;

use super::{read, root};

const EXAMPLE: &str = "deploy/vestibule.example.toml";
const HEAD: &str = "\
# Every setting of Vestibule in the format of Rocket.toml: name a copy of this file in ROCKET_CONFIG. Environment variables
# override it.
#
# A line such as `#port = 8000` is a setting with its default: remove the `#`, and change the value. A setting with `…` has
# no default, or depends on others. Secrets are better kept in the files that DATABASE_URL_FILE, ROCKET_SECRET_KEY_FILE and
# IDP_CLIENT_SECRET_FILE name.
";
/// Settings of Rocket that the page does not list.
const ROCKET: [(&str, &str); 8] = [
    (
        "workers",
        "threads that serve requests; one per core by default",
    ),
    (
        "max_blocking",
        "maximum number of threads for blocking work",
    ),
    (
        "keep_alive",
        "time after which an idle connection is closed, in seconds; 0 closes it after each response",
    ),
    (
        "shutdown.grace",
        "time after `drain` in which pending requests are completed, in seconds",
    ),
    (
        "shutdown.mercy",
        "time after that in which connections are closed, in seconds",
    ),
    ("limits.json", "maximum size of a body"),
    (
        "tls.certs",
        "file with the certificate and its chain, if the service terminates TLS itself",
    ),
    ("tls.key", "file with its key"),
];
/// Settings that are not for operators: one exists only in development builds, and the rest would
/// do nothing, or harm.
const LEFT_OUT: [&str; 8] = [
    "dev_dir",
    "ident",
    "ip_header",
    "cli_colors",
    "temp_dir",
    "template_dir",
    "profile",
    "proxy_proto_header",
];

/// Values for the settings that every deployment has to set.
fn required() -> Figment {
    config::defaults()
        .merge(("public_url", "https://id.example.com"))
        .merge(("secret_key", "8K2vXqJ5n0sRz7yTgWb1mHc4LdPe9aFu"))
        .merge(("databases.vestibule.url", "postgres://localhost/none"))
        .merge(("idp.client_id", "client.example"))
}

/// Every setting of the page, in the page's order, with its text and its environment variable.
fn rows() -> Vec<(String, String, String)> {
    let page = read("docs/configuration.md");
    let lines = page
        .lines()
        .skip_while(|line| *line != "|---|---|---|")
        .skip(1);
    let rows = lines.map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let rows = rows.map(|row| {
        let [variable, key, text] = row.splitn(3, '|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("{row}")
        };
        let plain = |cell: &str| cell.trim_matches('`').to_owned();
        (plain(key), text.to_owned(), plain(variable))
    });
    let rows: Vec<_> = rows
        .filter(|(key, ..)| !LEFT_OUT.contains(&key.as_str()))
        .collect();
    assert!(rows.len() > 50, "they are found");
    rows
}

/// The file's lines of settings with a default, with their table's header. A test below proves that
/// their values are the code's defaults: with these lines, nothing changes.
fn defaults(file: &str) -> BTreeSet<(&str, &str)> {
    let mut header = "";
    let lines = file.lines().filter_map(|line| {
        if line.trim_start_matches("# ").starts_with("[default") {
            header = line.trim_start_matches("# ");
        }
        Some((
            header,
            line.strip_prefix('#')
                .filter(|setting| !setting.starts_with(' '))?,
        ))
    });
    lines.collect()
}

/// The table of a key, and the key's name in it.
fn split(key: &str) -> (&str, &str) {
    // A client id in quotes is the last part of its key.
    let table = key.split('"').next().unwrap().rfind('.');
    table.map_or(("", key), |dot| (&key[..dot], &key[dot + 1..]))
}

/// Text as comments, without the targets of links.
fn comment(text: &str) -> String {
    let mut plain = text.to_owned();
    while let Some((text, rest)) = plain.split_once("](") {
        let (before, name) = text.rsplit_once('[').unwrap();
        plain = format!("{before}{name}{}", rest.split_once(')').unwrap().1);
    }
    let mut lines = String::new();
    let mut line = "#".to_owned();
    for word in plain.split(' ') {
        if line.chars().count() + word.chars().count() > 120 {
            writeln!(lines, "{line}").unwrap();
            "#".clone_into(&mut line);
        }
        write!(line, " {word}").unwrap();
    }
    writeln!(lines, "{line}").unwrap();
    lines
}

fn example() -> String {
    let before = read(EXAMPLE);
    let defaults = defaults(&before);
    let mut rows = rows();
    rows.extend(ROCKET.map(|(key, text)| (key.into(), text.into(), String::new())));
    let mut tables: Vec<&str> = Vec::new();
    for (key, ..) in &rows {
        let table = split(key).0;
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    // In TOML, keys without a table come first.
    tables.sort_by_key(|table| !table.is_empty());
    let mut file = HEAD.to_owned();
    for table in tables {
        let header = if table.is_empty() {
            "[default]".into()
        } else {
            format!("[default.{table}]")
        };
        // Below a name that the operator chooses, nothing has a default. TLS is off without the
        // table.
        let chosen = table.contains('<') || table == "tls";
        write!(file, "\n{}{header}\n", if chosen { "# " } else { "" }).unwrap();
        for (key, text, variable) in rows.iter().filter(|(key, ..)| split(key).0 == table) {
            let name = split(key).1;
            file += "\n";
            file += &comment(&match variable.as_str() {
                "" => text.clone(),
                variable => format!("{variable}: {text}"),
            });
            let is_it = |line: &str| {
                line.strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with(" = "))
            };
            match defaults
                .iter()
                .find(|(of, line)| *of == header && is_it(line))
            {
                Some((_, line)) => writeln!(file, "#{line}").unwrap(),
                None => writeln!(file, "# {name} = …").unwrap(),
            }
        }
    }
    file
}

/// The file with every default uncommented.
fn uncommented(file: &str) -> Figment {
    let lines = file.lines().map(|line| match line.strip_prefix('#') {
        Some(setting) if !setting.is_empty() && !setting.starts_with(' ') => setting,
        _ => line,
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    required().merge(Toml::string(&text).nested())
}

#[tokio::test]
async fn the_example_has_every_setting_of_the_page() {
    let example = example();
    if env::var_os("UPDATE_EXAMPLE").is_some() {
        fs::write(root().join(EXAMPLE), &example).unwrap();
    }
    assert!(
        read(EXAMPLE) == example,
        "{EXAMPLE} is stale: UPDATE_EXAMPLE=1 cargo test --test quick docs::example"
    );
    let code = read("src/config/root.rs");
    let (_, fields) = code.split_once("struct Root {").expect("it is there");
    let fields = fields
        .split("\n}")
        .next()
        .unwrap()
        .lines()
        .filter_map(|line| line.split_once(": "));
    let fields = fields.map(|(name, _)| name.trim().trim_start_matches("pub "));
    let known: Vec<_> = fields.filter(|name| !name.contains(' ')).collect();
    assert!(known.len() > 25, "they are found");
    for key in known
        .into_iter()
        .filter(|key| !LEFT_OUT.contains(key) && *key != "providers")
    {
        let setting = example.lines().any(|line| {
            line.trim_start_matches(['#', ' '])
                .starts_with(&format!("{key} = "))
        });
        let table = example.contains(&format!("[default.{key}]"))
            || example.contains(&format!("[default.{key}."));
        assert!(setting || table, "{EXAMPLE} has no {key}");
    }
}

/// Everything that the service reads from its settings.
fn everything(figment: Figment) -> String {
    let log = (LogFormat::of(&figment), LogLevel::of(&figment));
    // The service takes this key from Rocket, which has other levels.
    let rocket: rocket::Config = figment
        .clone()
        .merge(("log_level", "off"))
        .extract()
        .unwrap();
    let rocket::Config {
        address,
        port,
        max_blocking,
        keep_alive,
        shutdown,
        limits,
        ..
    } = rocket;
    let rocket = (address, port, max_blocking, keep_alive, shutdown, limits);
    let Config {
        figment,
        workers: _,
        public_url,
        secret_key: _,
        drain,
        session,
        events,
        proxies,
        rate_limit,
        observers,
        keys,
        admin_provider,
        providers,
        webhooks,
        web,
    } = Config::read(figment).unwrap();
    let settings = Settings::read(&figment.focus("databases.vestibule")).unwrap();
    let database = Database::open(settings, None);
    let database = database.pool();
    let ours = (
        public_url,
        drain,
        session,
        events,
        proxies,
        rate_limit,
        observers,
        keys,
        admin_provider,
    );
    format!(
        "{log:?} {rocket:#?} {ours:#?} {providers:#?} {webhooks:?} {web:?} {:#?}",
        database.options()
    )
}

#[tokio::test]
async fn the_example_without_its_comment_signs_changes_nothing() {
    let released = |figment: Figment| figment.select("release").merge(("cli_colors", false));
    let without = everything(released(required().merge(("log_level", "info"))));
    let with = everything(released(uncommented(&read(EXAMPLE))));
    for (with, without) in with.lines().zip(without.lines()) {
        assert_eq!(with, without);
    }
    assert_eq!(with, without);
}
