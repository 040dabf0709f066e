//! The Tera templates, embedded: a deployed binary needs no folder of them.

use std::env;
use std::path::PathBuf;

use rocket::fairing::Fairing;
use rocket_dyn_templates::Template;

/// Names end in `.html`, or Tera would not escape.
const TEMPLATES: &[(&str, &str)] = &[
    ("base.html", include_str!("../../templates/base.html.tera")),
    #[cfg(all(feature = "dev", debug_assertions))]
    ("dev/authorize.html", include_str!("../../templates/dev/authorize.html.tera")),
    ("admin/layout.html", include_str!("../../templates/admin/layout.html.tera")),
    ("admin/error.html", include_str!("../../templates/admin/error.html.tera")),
    ("admin/sign_in.html", include_str!("../../templates/admin/sign_in.html.tera")),
    ("admin/users.html", include_str!("../../templates/admin/users.html.tera")),
    ("admin/user.html", include_str!("../../templates/admin/user.html.tera")),
    ("admin/audit.html", include_str!("../../templates/admin/audit.html.tera")),
    ("admin/events.html", include_str!("../../templates/admin/events.html.tera")),
    ("problems.html", include_str!("../../templates/problems.html.tera")),
];

/// Where Rocket should look for templates. It insists on a place that exists, so it gets one that
/// always does and holds none: the program's own file.
#[must_use]
pub fn dir() -> PathBuf {
    env::current_exe().unwrap_or_else(|_| "/dev/null".into())
}

/// The fairing that loads them.
#[must_use]
pub fn fairing() -> impl Fairing {
    Template::try_custom(|engines| {
        engines.tera.add_raw_templates(TEMPLATES.iter().copied())?;
        Ok(())
    })
}
