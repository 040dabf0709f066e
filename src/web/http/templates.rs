//! The Tera templates. They are embedded, so a deployed binary needs no folder. Development reads them from the
//! project's folder and reloads them after each change.

pub mod breaks;
pub mod when;

use std::env;
use std::path::PathBuf;

use rocket::fairing::Fairing;
use rocket::http::ContentType;
use rocket_dyn_templates::Template;
use serde::Serialize;

/// Embeds templates by name, which is the path below `templates/` without `.html.tera`.
macro_rules! embed {
    ($($(#[$condition:meta])? $name:literal)*) => {
        &[$($(#[$condition])? ($name, include_str!(concat!("../../../templates/", $name, ".html.tera")))),*]
    };
}

const TEMPLATES: &[(&str, &str)] = embed! {
    "base" "data_deletion" "problems"
    "admin/audit" "admin/chart" "admin/chips" "admin/confirm" "admin/error" "admin/event" "admin/events" "admin/fields"
    "admin/find" "admin/gone" "admin/keys" "admin/layout" "admin/new_key" "admin/overview" "admin/person" "admin/receipt"
    "admin/sign_in" "admin/staff" "admin/time_zone" "admin/users" "admin/webhooks"
    #[cfg(debug_assertions)]
    "dev/authorize"
};

/// A page rendered from a template.
pub type Html = (ContentType, Template);

pub fn html(name: &'static str, context: impl Serialize) -> Html {
    (ContentType::HTML, Template::render(name, context))
}

/// Returns the path for Rocket's `template_dir`. Rocket insists on a path that exists, so it gets one that always
/// does and holds no templates: the program's own file.
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
    tera.register_filter("breaks", breaks::Breaks);
    tera.register_filter("when", when::When);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use tera::{Context, Tera};

    use super::*;

    fn collect(folder: &Path, below: &Path, files: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, below, files);
            } else {
                files.insert(path.strip_prefix(below).unwrap().to_str().unwrap().to_owned());
            }
        }
    }

    #[test]
    fn every_file_in_the_folder_is_an_embedded_template_that_escapes() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
        let mut files = BTreeSet::new();
        collect(&folder, &folder, &mut files);
        let embedded: BTreeSet<_> = TEMPLATES.iter().map(|(name, _)| format!("{name}.html.tera")).collect();
        assert_eq!(files, embedded);
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
        tera.add_raw_template("any/name", "<p>{{ name }}</p>").unwrap();
        let mut context = Context::new();
        context.insert("name", "<script>\"'&{{ 7*7 }}{% include \"x\" %}");
        let text = tera.render("any/name", &context).unwrap();
        assert_eq!(text, "<p>&lt;script&gt;&quot;&#x27;&amp;{{ 7*7 }}{% include &quot;x&quot; %}</p>");
    }
}
