//! Imports point down and form no large circle, and each foreign crate is named only in its room. A
//! room is a top-level module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::docs::files;

/// Rooms of the crate, and the rooms that each may use.
const MAY_USE: [(&str, &str); 25] = [
    ("background", ""),
    ("causes", ""),
    ("clock", ""),
    ("check_result", ""),
    ("out", ""),
    ("secret", ""),
    ("domain", "secret"),
    ("config", "domain secret"),
    ("database", "background clock config domain"),
    ("events", "background database domain"),
    ("provider", "causes clock config domain check_result secret"),
    ("queue", "background clock database"),
    ("telemetry", "background config"),
    ("import", "clock database domain telemetry"),
    (
        "keys",
        "background clock config database domain events secret",
    ),
    (
        "webhooks",
        "causes clock config database domain events queue secret",
    ),
    ("accounts", "config database domain events keys secret"),
    (
        "provider_tokens",
        "clock config database domain keys provider queue secret",
    ),
    (
        "provider_events",
        "accounts database domain events provider",
    ),
    ("prune", "database events provider_tokens webhooks"),
    (
        "web",
        "accounts background causes clock config database domain events keys provider \
         provider_events provider_tokens prune secret telemetry webhooks",
    ),
    (
        "admin",
        "accounts clock config database domain events provider provider_tokens secret web webhooks",
    ),
    (
        "app",
        "accounts admin background clock config database events check_result keys provider \
         provider_tokens prune telemetry web webhooks",
    ),
    ("dev", "accounts admin app clock domain secret web"),
    (
        "cli",
        "admin app background causes config database dev domain check_result import keys out telemetry \
         webhooks",
    ),
];

/// Crates on which only these rooms, or files, may depend.
const NAMED_IN: [(&str, &str); 6] = [
    ("rocket", "admin app config dev web"),
    ("rocket_dyn_templates", "web"),
    ("jiff", "admin web"),
    ("tera", "web"),
    (
        "sqlx",
        "accounts admin app database events import/write.rs keys/store.rs provider_events prune \
         provider_tokens/store.rs telemetry web webhooks/store.rs",
    ),
    ("reqwest", "cli provider webhooks"),
];

/// Lines of code of every source file, by the file's room.
fn rooms() -> BTreeMap<String, Vec<(PathBuf, String)>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut rooms: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for file in files(&source, "rs") {
        let below = file.strip_prefix(&source).unwrap();
        let room = below
            .iter()
            .next()
            .unwrap()
            .to_str()
            .unwrap()
            .trim_end_matches(".rs")
            .to_owned();
        let code = fs::read_to_string(&file).unwrap();
        let lines = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .map(str::to_owned);
        rooms
            .entry(room)
            .or_default()
            .extend(lines.map(|line| (below.to_owned(), line)));
    }
    rooms.remove("main");
    rooms.remove("lib");
    rooms
}

/// Returns `true` if a line names a path that begins with these segments.
fn names(line: &str, path: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + path.len()..].chars().next();
        !before.is_some_and(|c| word(c) || c == ':')
            && (path.ends_with(':') || !after.is_some_and(word))
    })
}

/// Returns `true` if a line names another room, alone or in a list.
fn names_room(line: &str, room: &str) -> bool {
    let listed = line
        .split_once("crate::{")
        .is_some_and(|(_, list)| names(list, room));
    listed || names(line, &format!("crate::{room}"))
}

#[test]
fn imports_point_down() {
    let rooms = rooms();
    let known = MAY_USE.map(|(room, _)| room);
    let mut sorted = known;
    sorted.sort_unstable();
    assert!(
        rooms.keys().eq(&sorted),
        "every room has its row: {:?}",
        rooms.keys()
    );
    for (number, (room, allowed)) in MAY_USE.into_iter().enumerate() {
        let allowed: Vec<_> = allowed.split_whitespace().collect();
        assert!(
            allowed.iter().all(|other| known[..number].contains(other)),
            "{room} is in a circle"
        );
        for other in &allowed {
            let used = rooms[room].iter().any(|(_, line)| names_room(line, other));
            assert!(used, "{room} does not name `{other}`: take it from its row");
        }
        for (file, line) in &rooms[room] {
            for other in known
                .iter()
                .filter(|other| **other != room && !allowed.contains(other))
            {
                assert!(
                    !names_room(line, other),
                    "{} names `{other}`: {line}",
                    file.display()
                );
            }
        }
    }
}

#[test]
fn admin_changes_lists_and_staff_use_neither_pages_nor_api() {
    for (file, line) in &rooms()["admin"] {
        let part = file.iter().nth(1).unwrap().to_str().unwrap();
        let above = ["api", "pages"]
            .iter()
            .filter(|_| ["changes", "lists", "staff"].contains(&part));
        for above in above {
            assert!(
                !names(line, &format!("crate::admin::{above}")),
                "{}: {line}",
                file.display()
            );
        }
    }
}

/// The paths of an import: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn paths(import: &str) -> Vec<String> {
    let Some((before, list)) = import.split_once('{') else {
        return vec![import.trim().to_owned()];
    };
    let list = list.rsplit_once('}').expect("the list ends").0;
    let mut depth = 0;
    let parts = list.split(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    parts
        .filter(|part| !part.trim().is_empty())
        .flat_map(paths)
        .map(|path| format!("{}{path}", before.trim()))
        .collect()
}

/// Returns the files that each file imports, by the segments of their modules.
fn imports() -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let mut code: BTreeMap<Vec<String>, String> = BTreeMap::new();
    for (file, line) in rooms().into_values().flatten() {
        let module = file.with_extension("");
        let module = module
            .iter()
            .map(|segment| segment.to_str().unwrap().to_owned());
        let text = code
            .entry(module.filter(|segment| segment != "mod").collect())
            .or_default();
        text.push_str(&line);
        text.push('\n');
    }
    let leads_to = |module: &Vec<String>, path: &str| {
        let mut target = module.clone();
        for segment in path
            .split("::")
            .map(|segment| segment.split(" as ").next().unwrap_or_default().trim())
        {
            match segment {
                "crate" => target.clear(),
                "self" => {}
                "super" => _ = target.pop(),
                name => target.push(name.to_owned()),
            }
        }
        while !target.is_empty() && !code.contains_key(&target) {
            target.pop();
        }
        (target != *module && !target.is_empty()).then_some(target)
    };
    let of = |(module, text): (&Vec<String>, &String)| {
        let text = text.split("mod tests {").next().unwrap_or_default();
        let uses = text
            .split("use ")
            .skip(1)
            .filter_map(|rest| rest.split(';').next());
        let uses = uses.filter(|import| {
            ["crate::", "super::", "self::"]
                .iter()
                .any(|root| import.starts_with(root))
        });
        (
            module.clone(),
            uses.flat_map(paths)
                .filter_map(|path| leads_to(module, &path))
                .collect(),
        )
    };
    code.iter().map(of).collect()
}

#[test]
fn no_circle_of_imports_has_more_than_three_files() {
    let imports = imports();
    let reached = |from: &Vec<String>| {
        let mut reached = BTreeSet::new();
        let mut next = vec![from];
        while let Some(file) = next.pop() {
            next.extend(
                imports[file]
                    .iter()
                    .filter(|file| reached.insert((*file).clone())),
            );
        }
        reached
    };
    let reached: BTreeMap<_, _> = imports.keys().map(|file| (file, reached(file))).collect();
    assert!(
        reached.values().any(|files| files.len() > 100),
        "imports are followed"
    );
    for (file, others) in &reached {
        let circle: Vec<_> = others
            .iter()
            .filter(|other| reached[other].contains(*file))
            .collect();
        assert!(circle.len() <= 3, "a circle: {circle:?}");
    }
}

#[test]
fn foreign_crates_are_named_only_in_their_rooms() {
    let rooms = rooms();
    for (name, allowed) in NAMED_IN {
        let allowed: Vec<_> = allowed.split(' ').collect();
        let mut unused = allowed.clone();
        for (room, lines) in &rooms {
            for (file, line) in lines
                .iter()
                .filter(|(_, line)| names(line, &format!("{name}::")))
            {
                let here = |place: &&str| place == room || file == Path::new(place);
                assert!(
                    allowed.iter().any(here),
                    "{} names {name}: {line}",
                    file.display()
                );
                unused.retain(|place| !here(place));
            }
        }
        assert!(
            unused.is_empty(),
            "{unused:?} do not name {name}: take them from its row"
        );
    }
}

#[test]
fn statements_are_in_accounts_events_lists_and_stores() {
    let store = |file: &Path| {
        ["accounts", "database", "events"]
            .iter()
            .any(|room| file.starts_with(room))
            || file
                .iter()
                .any(|part| part == "store" || part == "store.rs" || part == "lists")
            || file == Path::new("import/write.rs")
    };
    for (file, line) in rooms().into_values().flatten() {
        let begins = [
            "sqlx::query(",
            "sqlx::query!",
            "sqlx::query_",
            "QueryBuilder::new",
        ];
        let statement = begins.iter().any(|begin| line.contains(begin));
        assert!(
            !statement || store(&file),
            "{} has a statement: {line}",
            file.display()
        );
    }
}

#[test]
fn nothing_panics_because_nobody_reads_it() {
    for (file, line) in rooms().into_values().flatten() {
        let prints = ["println!", "print!", "eprintln!", "eprint!"]
            .iter()
            .any(|word| names(&line, word));
        assert!(
            !prints || file.starts_with("dev"),
            "{} prints: {line}",
            file.display()
        );
    }
}

#[test]
fn statements_planned_each_time_run_in_a_transaction() {
    let lines: Vec<_> = rooms().into_values().flatten().collect();
    let nameless = lines
        .windows(2)
        .filter(|pair| pair[0].1.contains(".persistent(false)"));
    let mut checked = 0;
    for pair in nameless {
        let executed = format!("{}{}", pair[0].1, pair[1].1);
        let within = ["planned_each_time()", "(transaction)"]
            .iter()
            .any(|within| executed.contains(within));
        assert!(within, "{}: {executed}", pair[0].0.display());
        checked += 1;
    }
    assert!(checked > 5);
}

/// A cancelled `BEGIN` can leave a transaction open on a connection that goes back to the pool
/// (launchbadge/sqlx#4393). A `Checkout` that was not released is closed.
#[test]
fn transactions_begin_on_a_connection_that_closes_when_cancelled() {
    let begun: Vec<_> = rooms()
        .into_values()
        .flatten()
        .filter(|(_, line)| line.contains("pool().begin") || line.contains("pool.begin"))
        .collect();
    assert!(begun.is_empty(), "{begun:?}");
}

/// Files that start tasks that end before the program does: a caller awaits the task, or it does
/// one thing.
const BRIEF_TASKS: [&str; 3] = ["app/drain.rs", "keys/ring.rs", "provider/document.rs"];

#[test]
fn a_task_that_lasts_is_replaced_when_it_panics() {
    for (file, line) in rooms().into_values().flatten() {
        let file = file.to_str().unwrap();
        let starts = [
            "tokio::spawn(",
            "thread::spawn(",
            "thread::Builder",
            "task::spawn(",
        ];
        let starts = starts.iter().any(|start| line.contains(start));
        assert!(
            !starts || file == "background.rs" || BRIEF_TASKS.contains(&file),
            "{file} starts a task without `background`: {line}"
        );
    }
}

/// The flows of the architecture page, each with the number of files that its list must not exceed.
const FLOWS: [(&str, usize); 5] = [
    ("A sign-in", 20),
    ("A refresh", 10),
    ("Staff disable a user", 11),
    ("A webhook", 8),
    ("A setting, from `Rocket.toml` to its use", 4),
];

/// Returns the files that a section of the architecture page lists, in the order of reading.
fn flow(page: &str, title: &str) -> Vec<String> {
    let section = page
        .split("\n## ")
        .find(|section| section.lines().next() == Some(title));
    let lines = section.expect(title).lines();
    lines
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .filter_map(|line| line.split_once(". `")?.1.split('`').next())
        .map(str::to_owned)
        .collect()
}

/// Returns the tables and functions that a migration creates.
fn created(root: &Path, file: &str) -> Vec<String> {
    if !file.starts_with("migrations/") {
        return Vec::new();
    }
    let text = fs::read_to_string(root.join(file)).unwrap();
    let after = |begin| text.split(begin).skip(1);
    after("CREATE FUNCTION ")
        .chain(after("CREATE TABLE "))
        .filter_map(|rest| {
            rest.split(|c: char| c != '_' && !c.is_alphanumeric())
                .next()
        })
        .map(str::to_owned)
        .collect()
}

#[test]
fn each_file_of_a_flow_is_connected_with_one_before_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    let imports = imports();
    let module = |file: &str| {
        let path = Path::new(file.strip_prefix("src/")?).with_extension("");
        let segments = path.iter().map(|part| part.to_str().unwrap().to_owned());
        Some(segments.filter(|part| part != "mod").collect::<Vec<_>>())
    };
    let names_file = |from: &str, file: &str| {
        let text = fs::read_to_string(root.join(from)).unwrap();
        let stem = Path::new(file).file_stem().unwrap().to_str().unwrap();
        let imported = module(from).and_then(|from| imports.get(&from));
        // A folder's `mod.rs` re-exports items of its files.
        let targets = module(file).map(|target| [target[..target.len() - 1].to_vec(), target]);
        let reached = targets.zip(imported).is_some_and(|(targets, imported)| {
            targets.iter().any(|target| imported.contains(target))
        });
        let template = file
            .strip_prefix("templates/")
            .and_then(|file| file.strip_suffix(".html.tera"));
        let rendered = template.is_some_and(|name| text.contains(&format!("\"{name}\"")));
        reached
            || rendered
            || text.contains(file)
            || text.contains(&format!("mod {stem};"))
            || created(root, file).iter().any(|name| names(&text, name))
    };
    for (title, limit) in FLOWS {
        let files = flow(&page, title);
        assert!(
            (3..=limit).contains(&files.len()),
            "{title}: {}",
            files.len()
        );
        for (number, file) in files.iter().enumerate() {
            assert!(root.join(file).exists(), "{title}: {file}");
            let connected = files[..number]
                .iter()
                .any(|before| names_file(before, file) || names_file(file, before));
            assert!(
                number == 0 || connected,
                "{title}: {file} and the files before it do not name each other"
            );
        }
    }
}
