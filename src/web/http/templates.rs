//! The Tera templates. They are embedded, so a deployed binary needs no folder. Development reads
//! them from the project's folder and reloads them after each change.

pub mod breaks;
pub mod when;

use std::env;
use std::path::PathBuf;

use rocket::fairing::Fairing;
use rocket::http::ContentType;
use rocket_dyn_templates::Template;
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::domain::text::plain;

/// The templates by name, which is the path below `templates/` without `.html.tera` (`build.rs`).
const TEMPLATES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/templates.rs"));

/// A page rendered from a template.
pub type Html = (ContentType, Template);

pub fn html(name: &'static str, context: impl Serialize) -> Html {
    (ContentType::HTML, Template::render(name, context))
}

/// Returns a time as RFC 3339 in UTC, to the second.
pub fn rfc3339(time: OffsetDateTime) -> String {
    time.replace_nanosecond(0)
        .unwrap_or(time)
        .format(&Rfc3339)
        .unwrap_or_default()
}

/// Returns the path for Rocket's `template_dir`. Rocket insists on a path that exists, so it gets
/// the program's own file, which always exists and holds no templates.
pub fn dir() -> PathBuf {
    env::current_exe().unwrap_or_else(|_| "/dev/null".into())
}

pub fn fairing() -> impl Fairing {
    Template::try_custom(|engines| Ok(prepare(&mut engines.tera)?))
}

/// Adds the embedded templates, unless templates were loaded from the folder.
fn prepare(tera: &mut tera::Tera) -> tera::Result<()> {
    if tera.get_template_names().next().is_none() {
        tera.add_raw_templates(TEMPLATES.iter().copied())?;
    }
    // Every name ends with the empty string, so every template escapes its values.
    tera.autoescape_on(vec![""]);
    tera.set_escape_fn(escape);
    tera.register_filter("breaks", breaks::Breaks);
    tera.register_filter("when", when::When);
    Ok(())
}

/// Escapes a value as text of a page: it cannot become markup, or change the direction of other
/// text.
fn escape(value: &str) -> String {
    tera::escape_html(&plain(value))
}

#[cfg(test)]
mod tests {
    use tera::{Context, Tera};

    use super::*;

    #[test]
    fn every_template_escapes() {
        for (name, text) in TEMPLATES {
            for hole in ["safe", "raw", "autoescape"] {
                let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
                assert!(!words.any(|word| word == hole), "{name} says `{hole}`");
            }
        }
    }

    #[test]
    fn what_a_template_is_given_stays_text() {
        let mut tera = Tera::default();
        prepare(&mut tera).unwrap();
        tera.add_raw_template("any/name", "<p>{{ name }}</p>")
            .unwrap();
        let mut context = Context::new();
        context.insert("name", "<script>\"'&{{ 7*7 }}{% include \"x\" %}");
        let text = tera.render("any/name", &context).unwrap();
        context.insert("name", "abc\u{202e}fdp.exe\u{2028}\ttwo\nlines");
        let turned = tera.render("any/name", &context).unwrap();
        assert_eq!(turned, "<p>abc fdp.exe \ttwo\nlines</p>");
        assert_eq!(
            text,
            "<p>&lt;script&gt;&quot;&#x27;&amp;{{ 7*7 }}{% include &quot;x&quot; %}</p>"
        );
    }
}
