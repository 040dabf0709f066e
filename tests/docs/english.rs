//! Comments in plain English: they name the actor, say what happens, then why.

use std::fs;

use super::{files, root};

/// Phrases that stand in place of an actor or of a noun.
const HABITS: [&str; 14] = [
    "is none",
    "are none",
    "none that",
    "none of which",
    "those of",
    "that of",
    "that one",
    "the one that",
    "one that",
    "whoever",
    "somebody",
    "nobody",
    "anybody",
    "none is",
];
/// Most comments that may have one of them, where the plain sentence would be worse.
const LIMIT: usize = 10;

/// Returns the text of a comment, if the line is one.
fn comment(line: &str) -> Option<&str> {
    ["//", "--", "{#"]
        .iter()
        .find_map(|begin| line.trim_start().strip_prefix(begin))
}

#[test]
fn comments_name_the_actor() {
    let mut found = Vec::new();
    for (folder, extension) in [
        ("src", "rs"),
        ("src", "sql"),
        ("tests", "rs"),
        ("migrations", "sql"),
        ("templates", "tera"),
    ] {
        for file in files(&root().join(folder), extension) {
            let text = fs::read_to_string(&file).unwrap();
            for (number, line) in text.lines().enumerate() {
                let words = comment(line).map(|text| {
                    let words = text.split(|c: char| !c.is_alphanumeric());
                    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
                    format!(" {} ", words.join(" ").to_lowercase())
                });
                let Some(words) = words else { continue };
                let has = |habit: &&&str| words.contains(&format!(" {habit} "));
                if let Some(habit) = HABITS.iter().find(has) {
                    found.push(format!("{}:{}: {habit}", file.display(), number + 1));
                }
            }
        }
    }
    assert!(found.len() <= LIMIT, "{} comments: {found:#?}", found.len());
}
