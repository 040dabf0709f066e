//! Rebuilds when the schema changes, keeps the build away from any database, records the commit,
//! lists the templates, and unpacks the viewer of the API's description.

use std::error::Error;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Cursor};
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;
use zip::ZipArchive;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=.sqlx");
    println!("cargo:rerun-if-env-changed=SQLX_OFFLINE");
    // Queries are checked against the committed `.sqlx`, also where DATABASE_URL names the database
    // that the program, not the compiler, should use.
    if env::var_os("SQLX_OFFLINE").is_none() {
        println!("cargo:rustc-env=SQLX_OFFLINE=true");
    }
    println!("cargo:rerun-if-env-changed=VESTIBULE_COMMIT");
    println!("cargo:rustc-env=VESTIBULE_COMMIT={}", commit());
    embed_templates()?;
    unpack_viewer()
}

/// Writes the list of the templates, each with its name, for `src/web/http/templates.rs`. Those of
/// the development provider are not in a release.
fn embed_templates() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=templates");
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("templates");
    let mut names = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let below = path.strip_prefix(&root)?.to_string_lossy().into_owned();
            match below.strip_suffix(".html.tera") {
                _ if path.is_dir() => folders.push(path),
                Some(name) => names.push(name.to_owned()),
                // What editors and file managers leave is hidden.
                None if below.contains("/.") || below.starts_with('.') => {}
                None => {
                    return Err(
                        format!("templates/{below}: a template ends in `.html.tera`").into(),
                    );
                }
            }
        }
    }
    names.sort();
    let mut list = String::new();
    for name in names {
        let condition = if name.starts_with("dev/") {
            "#[cfg(debug_assertions)] "
        } else {
            ""
        };
        let text = format!(r#"concat!(env!("CARGO_MANIFEST_DIR"), "/templates/{name}.html.tera")"#);
        write!(list, r#"{condition}("{name}", include_str!({text})), "#)?;
    }
    Ok(fs::write(
        Path::new(&env::var("OUT_DIR")?).join("templates.rs"),
        format!("&[{list}]"),
    )?)
}

/// Writes the two files of Swagger UI that `src/web/openapi/page.rs` serves to `OUT_DIR`,
/// compressed. `utoipa-swagger-ui` would embed the other eleven, too, which are 0.7 MB.
fn unpack_viewer() -> Result<(), Box<dyn Error>> {
    let mut archive =
        ZipArchive::new(Cursor::new(utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED))?;
    let folder = archive.by_index(0)?.name()?.into_owned();
    let out = env::var("OUT_DIR")?;
    for name in ["swagger-ui.css", "swagger-ui-bundle.js"] {
        let to = File::create(Path::new(&out).join(format!("{name}.gz")))?;
        let mut compressed = GzEncoder::new(to, Compression::best());
        io::copy(
            &mut archive.by_name(&format!("{folder}dist/{name}"))?,
            &mut compressed,
        )?;
        compressed.finish()?;
    }
    Ok(())
}

/// Returns the commit that is built: `VESTIBULE_COMMIT`, or that of the repository, or `unknown` in
/// a source archive. A build for development does not ask the repository, because each commit would
/// compile everything anew.
fn commit() -> String {
    let given = env::var("VESTIBULE_COMMIT")
        .ok()
        .filter(|commit| !commit.is_empty());
    let release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    given
        .or_else(|| if release { of_repository() } else { None })
        .unwrap_or_else(|| "unknown".into())
}

fn of_repository() -> Option<String> {
    // An archive that was unpacked inside another repository is none of its commits.
    if !Path::new(&env::var_os("CARGO_MANIFEST_DIR")?)
        .join(".git")
        .exists()
    {
        return None;
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(arguments)
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    // Each commit, and each change of the branch, adds a line to it.
    println!(
        "cargo:rerun-if-changed={}",
        git(&["rev-parse", "--git-path", "logs/HEAD"])?
    );
    git(&["rev-parse", "HEAD"])
}
