//! The guides match the program: their links have targets, the files and tests that they name
//! exist, and no error is missing.

mod english;
mod example;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use vestibule::domain::presets;
use vestibule::web::problem::ErrorCode;

/// The page about messages that end the start.
const RUNBOOK: &str = "docs/runbook.md";
/// The files with its text: the errors behind each variant of `app::Error`.
const START: [(&str, &[&str]); 10] = [
    ("", &["src/app.rs"]),
    ("config::Error", &["src/config/error.rs"]),
    ("pool::Error", &["src/database/pool.rs"]),
    ("migrations::Failure", &["src/database/migrations.rs"]),
    ("database::Error", &["src/database/error.rs"]),
    (
        "signing_key::Error",
        &["src/keys/signing_key.rs", "src/keys/seal.rs"],
    ),
    ("ClientError", &["src/provider/client.rs"]),
    ("webhooks::ClientError", &["src/webhooks/sender.rs"]),
    ("Box<rocket::Error>", &[]),
    ("otlp::Error", &["src/telemetry/otlp.rs"]),
];
/// Beginnings of the paths in the repository.
const FOLDERS: [&str; 10] = [
    "src/",
    "tests/",
    "docs/",
    "migrations/",
    "templates/",
    "static/",
    "benches/",
    "deploy/",
    "clients/",
    ".ci/",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|its| its == extension) {
            found.push(path);
        }
    }
    found
}

fn pages() -> Vec<PathBuf> {
    let mut pages = files(&root().join("docs"), "md");
    let clients = ["clients/typescript/README.md", "clients/kotlin/README.md"];
    let others = ["README.md", "CONTRIBUTING.md", "SECURITY.md"]
        .into_iter()
        .chain(clients);
    pages.extend(others.map(|page| root().join(page)));
    pages
}

/// A page without its blocks of code.
fn prose(page: &Path) -> String {
    let mut fenced = false;
    let text = read(page);
    let lines = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fence && !fenced && !line.starts_with("    ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Texts between single backticks.
fn spans(prose: &str) -> impl Iterator<Item = &str> {
    prose
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(page: &Path) -> BTreeSet<String> {
    let text = prose(page);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let slug = |heading: &str| {
        let text = heading
            .trim_start_matches('#')
            .trim()
            .to_lowercase()
            .replace(' ', "-");
        text.chars()
            .filter(|c| c.is_alphanumeric() || *c == '-' || *c == '_')
            .collect()
    };
    headings.map(slug).collect()
}

#[test]
fn links_lead_somewhere() {
    for page in pages() {
        let text = prose(&page);
        let targets = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://")) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() {
                page.clone()
            } else {
                page.parent().unwrap().join(file)
            };
            assert!(file.exists(), "{}: {target}", page.display());
            let known = anchor.is_empty() || anchors(&file).contains(anchor);
            assert!(known, "{}: {target} names no heading", page.display());
        }
    }
}

#[test]
fn files_that_are_named_exist() {
    for page in pages() {
        let text = prose(&page);
        let paths =
            spans(&text).filter(|span| FOLDERS.iter().any(|folder| span.starts_with(folder)));
        for path in paths.filter(|path| !path.contains(['*', '<', '…', ' '])) {
            assert!(
                root().join(path).exists(),
                "{} names {path}",
                page.display()
            );
        }
    }
}

#[test]
fn tests_that_the_threats_name_exist() {
    let mut code = files(&root().join("tests"), "rs");
    code.extend(files(&root().join("src"), "rs"));
    let code: String = code.iter().map(read).collect();
    let text = prose(&root().join("docs/threats.md"));
    let names: Vec<_> = spans(&text).filter(|span| is_sentence(span)).collect();
    assert!(names.len() > 30, "they are found");
    for name in names {
        assert!(
            code.contains(&format!("fn {name}(")),
            "there is no test {name}"
        );
    }
}

/// Returns `true` if a code span looks like the name of a test.
fn is_sentence(span: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    span.chars().all(plain) && span.matches('_').count() >= 4
}

#[test]
fn every_error_has_its_row_for_apps() {
    let text = prose(&root().join("docs/apps.md"));
    let rows: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .collect();
    let named: BTreeSet<_> = rows.iter().map(|(error, _)| *error).collect();
    let known: BTreeSet<_> = ErrorCode::all().map(|kind| kind.entry().error).collect();
    assert_eq!(named, known);
    assert_eq!(rows.len(), known.len(), "each has one row");
    for kind in ErrorCode::all() {
        let (_, row) = rows
            .iter()
            .find(|(error, _)| *error == kind.entry().error)
            .unwrap();
        assert!(
            row.starts_with(&format!(" {} |", kind.entry().status)),
            "{}",
            kind.entry().error
        );
    }
}

#[test]
fn every_preset_has_its_row() {
    let text = prose(&root().join("docs/configuration.md"));
    let (_, table) = text.split_once("### Presets").unwrap();
    let rows = table
        .lines()
        .skip_while(|line| !line.starts_with("| `"))
        .map_while(|line| line.strip_prefix("| `")?.split_once('`'));
    let named: Vec<_> = rows.map(|(name, _)| name).collect();
    assert_eq!(named, presets::NAMES);
}

/// The string literals in a source file, without comments and tests, with their line breaks undone.
fn literals(code: &str) -> Vec<String> {
    let code = code.split("#[cfg(test)]").next().unwrap();
    let code: String = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|l| [l, "\n"])
        .collect();
    let mut found = Vec::new();
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => drop((chars.next_if_eq(&'\\'), chars.next_if_eq(&'"'))),
            '"' => found.push(literal(&mut chars)),
            _ => {}
        }
    }
    found
}

/// The rest of a literal whose first quote is read.
fn literal(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut text = String::new();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => match chars.next() {
                Some('\n') => while chars.next_if(|c| c.is_whitespace()).is_some() {},
                Some(escaped) => text.push(escaped),
                None => break,
            },
            c => text.push(c),
        }
    }
    text
}

/// The texts of a message around its `{placeholders}` and, in the runbook, around each `…`.
fn pieces(message: &str) -> Vec<&str> {
    let outside = message
        .split('{')
        .map(|part| part.split_once('}').map_or(part, |(_, rest)| rest));
    outside
        .flat_map(|piece| piece.split('…'))
        .map(|piece| piece.trim_matches([' ', ':', '(', ')']))
        .collect()
}

#[test]
fn start_errors_state_a_remedy_or_are_in_the_runbook() {
    let runbook = read(RUNBOOK);
    let mut messages = Vec::new();
    for file in START.iter().flat_map(|(_, files)| *files) {
        let code = read(file);
        // The first literal of `#[error("…")]`.
        let attributes = code
            .split("#[error(")
            .skip(1)
            .filter(|rest| !rest.starts_with("transparent"));
        messages.extend(attributes.map(|rest| literals(rest).swap_remove(0)));
    }
    assert!(
        messages
            .iter()
            .any(|message| message == "configuration: {subject} {problem}; {remedy}")
    );
    let bare: Vec<_> = messages
        .iter()
        .filter(|message| !message.contains("; "))
        .collect();
    assert!(bare.len() > 5, "they are found");
    let missing: BTreeSet<_> = bare
        .iter()
        .flat_map(|message| pieces(message))
        .filter(|piece| !runbook.contains(piece))
        .collect();
    assert!(missing.is_empty(), "{RUNBOOK} lacks: {missing:#?}");
}

#[test]
fn the_settings_in_the_runbook_have_the_words_of_the_program() {
    let code = files(&root().join("src/config"), "rs");
    let messages = code
        .iter()
        .flat_map(|file| literals(&read(file)))
        .collect::<Vec<_>>()
        .join("\n");
    let page = read(RUNBOOK);
    let (_, rest) = page.split_once("\n### Settings\n").expect("it is there");
    let rows = rest
        .split("\n### ")
        .next()
        .unwrap()
        .lines()
        .filter_map(|line| line.strip_prefix("| `"));
    let problems: Vec<_> = rows
        .filter_map(|row| row.split_once(" | "))
        .map(|(problem, _)| problem)
        .collect();
    assert!(problems.len() > 10, "they are found");
    // The words of a dependency.
    for problem in problems
        .into_iter()
        .filter(|problem| !problem.starts_with("TOML"))
    {
        for piece in pieces(problem.trim_matches(['`', ' '])) {
            assert!(
                messages.contains(piece),
                "{RUNBOOK} has another text: {piece}"
            );
        }
    }
}

#[test]
fn every_setting_is_documented() {
    let page = read("docs/configuration.md");
    let sections = [
        ("provider", "idp"),
        ("session", "session"),
        ("rate_limit", "rate_limit"),
        ("events", "events"),
        ("keys", "keys"),
        ("observers", "metrics"),
        ("root", "admin"),
        ("webhook", "webhooks.<name>"),
    ];
    for (file, section) in sections {
        let code = read(format!("src/config/{file}.rs"));
        let (_, fields) = code
            .split_once("#[serde(deny_unknown_fields")
            .expect("the settings as they are read");
        let (fields, _) = fields.split_once("\n}").unwrap();
        // A field that is skipped is derived from others.
        let mut fields = fields.split("#[serde(skip)]\n");
        let first = fields.next().unwrap().lines().skip(2);
        let lines = first.chain(fields.flat_map(|rest| rest.lines().skip(1)));
        let lines = lines.map(|line| line.trim().trim_start_matches("pub "));
        let names: Vec<_> = lines
            .filter(|line| !line.starts_with(['#', '/']))
            .filter_map(|line| line.split_once(": "))
            .collect();
        assert!(!names.is_empty(), "{file}");
        for (name, _) in names {
            let variable = format!("`{}_{}`", section.to_uppercase(), name.to_uppercase());
            let documented =
                page.contains(&format!("`{section}.{name}")) || page.contains(&variable);
            assert!(
                documented,
                "{section}.{name} is not in docs/configuration.md"
            );
        }
    }
}

#[test]
fn the_files_that_end_the_start_are_all_known() {
    let code = read("src/app.rs");
    let behind: BTreeSet<_> = code
        .split("(#[from] ")
        .skip(1)
        .map(|rest| rest.split("),").next().unwrap())
        .collect();
    let known: BTreeSet<_> = START
        .iter()
        .map(|(error, _)| *error)
        .filter(|error| !error.is_empty())
        .collect();
    assert_eq!(behind, known, "the table above is whole");
}

#[test]
fn every_alert_has_its_section_and_every_section_its_alert() {
    let rules = read("deploy/prometheus/alerts.yml");
    let behind = |word: &str| -> Vec<String> {
        rules
            .lines()
            .filter_map(|line| line.trim().strip_prefix(word))
            .map(str::to_owned)
            .collect()
    };
    let alerts = behind("- alert: ");
    assert!(alerts.len() > 10, "they are found");
    let links = alerts
        .iter()
        .map(|name| format!("{RUNBOOK}#{}", name.to_lowercase()));
    assert_eq!(
        behind("runbook_url: "),
        links.collect::<Vec<_>>(),
        "each links to its section"
    );
    let page = prose(&root().join(RUNBOOK));
    let (_, rest) = page.split_once("\n## Alerts\n").expect("it is there");
    let sections = rest.split("\n## ").next().unwrap().split("\n### ").skip(1);
    let sections: Vec<_> = sections
        .map(|section| section.split_once('\n').unwrap())
        .collect();
    let names: Vec<_> = sections.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, alerts, "in the same order");
    for (name, text) in sections {
        for part in ["Means:", "Users notice", "Look at", "Do:", "Worry"] {
            assert!(
                text.contains(&format!("\n**{part}**")),
                "{name} lacks: {part}"
            );
        }
    }
}
