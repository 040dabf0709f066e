//! A configuration mistake: the key, the place where it was set and the remedy. The value is never
//! shown.

use figment::error::Kind;
use figment::{self, Figment, Metadata, Source};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("configuration: {subject} {problem}; {remedy}")]
pub struct Error {
    subject: String,
    problem: String,
    remedy: String,
}

impl Error {
    pub(super) fn at(
        figment: &Figment,
        key: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let subject = subject(key, figment.find_metadata(key));
        Self {
            subject,
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    /// Reports a table of the file that belongs to no profile.
    pub(super) fn of_table(metadata: Option<&Metadata>, table: &str, remedy: String) -> Self {
        let place = metadata.map(|metadata| format!(" (set in {})", place(table, metadata)));
        let place = place.unwrap_or_default();
        Self {
            subject: format!("`[{table}]`{place}"),
            problem: "is a table of an unknown profile, in which nothing is read".into(),
            remedy,
        }
    }

    /// Converts a deserialization error, without the value that caused it.
    pub(super) fn from_figment(error: &figment::Error) -> Self {
        let path = error.path.join(".");
        let below = |field: &str| {
            if path.is_empty() {
                field.to_owned()
            } else {
                format!("{path}.{field}")
            }
        };
        let (key, problem) = match &error.kind {
            // The path already ends with the field's name.
            Kind::UnknownField(name, known) => {
                let section = path.strip_suffix(name.as_str()).unwrap_or_default();
                let remedy = match nearest(name, known) {
                    Some(meant) => format!(
                        "; write {}, or remove it",
                        names(&format!("{section}{meant}"))
                    ),
                    // The top level has too many to list them.
                    None if section.is_empty() => "; correct its spelling or remove it".into(),
                    None => format!(" (known: {})", known.join(", ")),
                };
                (path, format!("is not a known key{remedy}"))
            }
            Kind::MissingField(field) => (below(field), "is missing".into()),
            Kind::InvalidType(_, expected) => {
                (path, format!("has the wrong type, expected {expected}"))
            }
            Kind::InvalidValue(_, expected) => {
                (path, format!("has an invalid value, expected {expected}"))
            }
            Kind::UnknownVariant(_, known) => {
                (path, format!("must be one of: {}", known.join(", ")))
            }
            // Our own deserializers never repeat the value. The first line of a parser's message
            // names the place; the lines after it quote the text.
            Kind::Message(message) => (
                path,
                message.lines().next().unwrap_or("cannot be read").into(),
            ),
            _ => (path, "cannot be read".into()),
        };
        // A message that knows the remedy has it after a semicolon.
        let (problem, remedy) = problem
            .split_once("; ")
            .unwrap_or((&problem, "fix or remove it"));
        let problem = problem.to_owned();
        let remedy = remedy.to_owned();
        Self {
            subject: subject(&key, error.metadata.as_ref()),
            problem,
            remedy,
        }
    }
}

/// Returns the known name that a misspelt one probably means.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |known: &&&str| strsim::damerau_levenshtein(known, name);
    known
        .iter()
        .min_by_key(distance)
        .filter(|known| distance(known) <= 2)
        .copied()
}

/// Describes a key by the names that an operator uses, and the place where it was set.
fn subject(key: &str, metadata: Option<&Metadata>) -> String {
    match (key, metadata.map(|metadata| place(key, metadata))) {
        ("", place) => place.unwrap_or_default(),
        (key, Some(place)) => format!("{} (set in {place})", names(key)),
        (key, None) => names(key),
    }
}

fn place(key: &str, metadata: &Metadata) -> String {
    match (&metadata.source, key.strip_prefix("idp.")) {
        // Its own text is relative to the working directory: in `/`, a path would lose its slash.
        (Some(Source::File(path)), _) => path.display().to_string(),
        (Some(source), _) => source.to_string(),
        // All `IDP_*` variables are one source in figment.
        (None, Some(field)) => metadata
            .name
            .replace("IDP_*", &format!("IDP_{}", field.to_ascii_uppercase())),
        (None, None) => metadata.name.to_string(),
    }
}

/// Returns the key in the file, with its environment variable if there is one.
pub(super) fn names(key: &str) -> String {
    match key.strip_prefix("idp.") {
        Some(rest) => format!("`IDP_{}` / `{key}`", rest.to_ascii_uppercase()),
        None if key == "databases.vestibule.url" => format!("`DATABASE_URL` / `{key}`"),
        None if key.contains('.') => format!("`{key}`"),
        None => format!("`ROCKET_{}` / `{key}`", key.to_ascii_uppercase()),
    }
}
