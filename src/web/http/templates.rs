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

/// The templates by name, which is the path below `templates/` without `.html.tera`.
const TEMPLATES: &[(&str, &str)] = &[
    ("base", include_str!("../../../templates/base.html.tera")),
    #[cfg(debug_assertions)]
    ("dev/authorize", include_str!("../../../templates/dev/authorize.html.tera")),
    ("admin/layout", include_str!("../../../templates/admin/layout.html.tera")),
    ("admin/overview", include_str!("../../../templates/admin/overview.html.tera")),
    ("admin/chart", include_str!("../../../templates/admin/chart.html.tera")),
    ("admin/chips", include_str!("../../../templates/admin/chips.html.tera")),
    ("admin/error", include_str!("../../../templates/admin/error.html.tera")),
    ("admin/sign_in", include_str!("../../../templates/admin/sign_in.html.tera")),
    ("admin/users", include_str!("../../../templates/admin/users.html.tera")),
    ("admin/webhooks", include_str!("../../../templates/admin/webhooks.html.tera")),
    ("admin/find", include_str!("../../../templates/admin/find.html.tera")),
    ("admin/confirm", include_str!("../../../templates/admin/confirm.html.tera")),
    ("admin/gone", include_str!("../../../templates/admin/gone.html.tera")),
    ("admin/receipt", include_str!("../../../templates/admin/receipt.html.tera")),
    ("admin/person", include_str!("../../../templates/admin/person.html.tera")),
    ("admin/staff", include_str!("../../../templates/admin/staff.html.tera")),
    ("admin/fields", include_str!("../../../templates/admin/fields.html.tera")),
    ("admin/keys", include_str!("../../../templates/admin/keys.html.tera")),
    ("admin/time_zone", include_str!("../../../templates/admin/time_zone.html.tera")),
    ("admin/new_key", include_str!("../../../templates/admin/new_key.html.tera")),
    ("admin/audit", include_str!("../../../templates/admin/audit.html.tera")),
    ("admin/event", include_str!("../../../templates/admin/event.html.tera")),
    ("admin/events", include_str!("../../../templates/admin/events.html.tera")),
    ("data_deletion", include_str!("../../../templates/data_deletion.html.tera")),
    ("problems", include_str!("../../../templates/problems.html.tera")),
];

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
