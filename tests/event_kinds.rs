//! Holds the SQL of the service against the table of events in `src/events/kind.rs`.

use std::fs;
use std::path::Path;

use strum::VariantArray;
use vestibule::events::EventKind;

use crate::docs::files;

/// The text of each file that may have SQL, by its path.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = [("src", "rs"), ("src", "sql"), ("migrations", "sql")];
    let found = found
        .iter()
        .flat_map(|(folder, extension)| files(&root.join(folder), extension));
    found
        .map(|path| {
            (
                path.display().to_string(),
                fs::read_to_string(&path).unwrap(),
            )
        })
        .collect()
}

/// Returns the second argument of a call whose arguments begin the text.
fn second_argument(arguments: &str) -> &str {
    let mut depth = 0;
    let mut begin = None;
    for (at, letter) in arguments.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' | ',' if depth == 0 => {
                if let Some(begin) = begin {
                    return &arguments[begin..at];
                }
                begin = Some(at + 1);
            }
            ')' => depth -= 1,
            _ => {}
        }
    }
    ""
}

/// Returns the rests of the text after these words, which do not end a longer word.
fn rests_after<'a>(text: &'a str, words: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(words)
        .filter(|(at, _)| !text[..*at].ends_with(char::is_alphabetic))
        .map(move |(at, _)| &text[at + words.len()..])
}

/// Returns the literals that follow these words at once.
fn literals_after<'a>(text: &'a str, words: &'a str) -> impl Iterator<Item = &'a str> {
    rests_after(text, words).filter_map(|rest| rest.split('\'').next())
}

/// Returns the kinds that a text writes with `event_row`, or compares with the column `kind`.
fn kinds_in(text: &str) -> Vec<&str> {
    let mut kinds = Vec::new();
    for arguments in rests_after(text, "event_row(") {
        let kind = second_argument(arguments).trim();
        kinds.extend(
            kind.strip_prefix('\'')
                .and_then(|kind| kind.strip_suffix('\'')),
        );
        kinds.extend(literals_after(kind, "THEN '"));
        kinds.extend(literals_after(kind, "ELSE '"));
    }
    for comparison in ["kind = '", "kind <> '"] {
        kinds.extend(literals_after(text, comparison));
    }
    for list in ["kind IN (", "kind NOT IN ("] {
        for rest in rests_after(text, list) {
            let list = rest.split(')').next().unwrap_or_default();
            kinds.extend(list.split(',').map(|kind| kind.trim().trim_matches('\'')));
        }
    }
    kinds
}

#[test]
fn sql_names_only_kinds_of_events_that_the_table_has() {
    let mut checked = 0;
    for (file, text) in sources() {
        // A statement that is built has the place of a name.
        for kind in kinds_in(&text).into_iter().filter(|kind| *kind != "{}") {
            assert!(
                kind.parse::<EventKind>().is_ok(),
                "{file} names the kind {kind}"
            );
            checked += 1;
        }
    }
    assert!(checked > 60, "{checked} kinds are found");
}

#[test]
fn each_kind_of_event_is_written_somewhere() {
    let sources = sources();
    for kind in EventKind::VARIANTS {
        let literal = format!("'{}'", kind.name());
        let variant = format!("EventKind::{kind:?}");
        // The statement of a refresh puts the names of three kinds together.
        let together = "'refresh_token_' ||";
        let written = kind.name().starts_with("refresh_token_")
            && sources.iter().any(|(_, text)| text.contains(together));
        let written = written
            || sources.iter().any(|(file, text)| {
                !file.ends_with("events/kind.rs")
                    && (text.contains(&literal) || text.contains(&variant))
            });
        assert!(written, "{kind:?}");
    }
}
