//! The URL of the database, checked without connecting. No message contains the password, or what
//! may be a part of it.

use std::fs::File;

use url::Url;

use super::file::unreadable;
use crate::domain::database_url::{self, Mistake};

/// The parameters to suggest in place of a misspelt one (libpq, "Parameter Key Words").
const PARAMETERS: [&str; 15] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "channel_binding",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
    "connect_timeout",
    "target_session_attrs",
];
/// Values of `sslmode` (libpq, "Parameter Key Words").
const SSL_MODES: [&str; 6] = [
    "disable",
    "allow",
    "prefer",
    "require",
    "verify-ca",
    "verify-full",
];

pub(super) const EXAMPLE: &str =
    "set it to a URL such as postgres://vestibule:…@db.example.com/vestibule";
const ENCODE: &str = "percent-encode these characters in the password: `/` is %2F, `?` is %3F, `#` is %23, `@` is %40, `&` is %26, `%` is %25";

/// Checks the URL. The error is a problem and its remedy.
pub(super) fn check(text: &str) -> Result<(), (String, String)> {
    let fail = |problem: &str, remedy: &str| Err((problem.to_owned(), remedy.to_owned()));
    let Some(rest) = ["postgres://", "postgresql://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme))
    else {
        return Err(match text.split_once("://") {
            // As SQLAlchemy writes it.
            Some((scheme, _)) if scheme.starts_with("postgres") => (
                format!("begins with `{scheme}://`"),
                "write `postgres://` instead".to_owned(),
            ),
            _ => ("is not a PostgreSQL URL".to_owned(), EXAMPLE.to_owned()),
        });
    };
    let (authority, after) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let path = after.split('?').next().unwrap_or_default();
    // The text after `password=` may be a part of the password.
    let told = !after.contains("password=");
    // The user information ends at an `@`. An `@` after the authority shows that it was cut off
    // before.
    if path.contains('@') || (told && after.contains('@') && !authority.contains('@')) {
        return Err((cut_off(rest, told), ENCODE.to_owned()));
    }
    if after.contains('#') {
        return fail("contains a `#`, which ends a URL", ENCODE);
    }
    let url = match database_url::read(text) {
        Ok(url) => url,
        // An unencoded `?` of a password begins the query.
        Err(Mistake::Unknown(_)) if !told => {
            return fail(
                "has an unknown parameter, perhaps a part of the password",
                ENCODE,
            );
        }
        Err(Mistake::Unknown(_)) if after.contains('@') => {
            return Err((cut_off(rest, told), ENCODE.to_owned()));
        }
        Err(Mistake::Unknown(name)) => {
            return Err((
                format!("has the parameter `{name}`, which is not known here"),
                correct(&name),
            ));
        }
        Err(Mistake::Other(problem, remedy)) => {
            return Err((problem, format!("{remedy}; {ENCODE}")));
        }
    };
    if let Some(Err(error)) = url.root_certificate.as_deref().map(File::open) {
        let (problem, remedy) = unreadable(&error);
        return Err((
            format!("has the parameter `sslrootcert`, which {problem}"),
            remedy.into(),
        ));
    }
    if url
        .ssl_mode
        .is_some_and(|mode| !SSL_MODES.contains(&mode.to_ascii_lowercase().as_str()))
    {
        return fail(
            "has an unknown `sslmode`",
            &format!("set it to one of: {}", SSL_MODES.join(", ")),
        );
    }
    Ok(())
}

/// Returns the remedy for an unknown parameter. It names the known parameter that needs the fewest
/// changes.
fn correct(parameter: &str) -> String {
    let nearest = PARAMETERS
        .iter()
        .min_by_key(|known| strsim::damerau_levenshtein(known, parameter));
    format!(
        "correct it (the nearest known one is `{}`) or remove it",
        nearest.unwrap_or(&PARAMETERS[0])
    )
}

/// Describes a URL whose user information is cut off, by the text after its last `@` if that may be
/// shown.
fn cut_off(rest: &str, told: bool) -> String {
    let meant = rest.rsplit('@').next().unwrap_or_default();
    let place = Url::parse(&format!("postgres://{meant}"))
        .ok()
        .filter(|_| told)
        .map(|url| {
            let host = url.host_str().unwrap_or_default();
            let port = url.port().unwrap_or(5432);
            let database = url.path().trim_start_matches('/');
            format!(
                ", with which it names the host `{host}`, port {port} and the database `{database}`"
            )
        });
    let place = place.unwrap_or_default();
    format!("has a `/`, `?` or `#` before its last `@`{place}, so that the password is cut off")
}
