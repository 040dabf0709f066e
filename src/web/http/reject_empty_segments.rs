//! Refuses requests whose path, host or type a gateway in front of the service could read
//! differently.

use rocket::data::Data;
use rocket::fairing::{self, Fairing, Info};
use rocket::request::Request;
use rocket::uri;

use crate::web::Problem;

/// The headers that a request may have only once.
const SINGLE: [&str; 2] = ["Host", "Content-Type"];

/// Refuses requests that Rocket would route differently than a gateway's rules expect.
///
/// Rocket skips empty segments and decodes the others when it looks for a route, so `//api/v1` and
/// `/%61pi/v1` would bypass a gateway's rule for `/api/v1`. Such a path is answered with 404. A
/// request with two `Host` headers (RFC 9112 §3.2) or two types of its body is refused: each reader
/// may choose another.
#[derive(Debug)]
pub struct ExactPath;

#[rocket::async_trait]
impl Fairing for ExactPath {
    fn info(&self) -> Info {
        Info {
            name: "exact path",
            kind: fairing::Kind::Request,
        }
    }

    async fn on_request(&self, request: &mut Request<'_>, _: &mut Data<'_>) {
        let repeated = SINGLE
            .into_iter()
            .find(|name| request.headers().get(name).nth(1).is_some());
        if let Some(name) = repeated {
            let detail = format!("there must be exactly one `{name}` header");
            Problem::malformed(detail).keep(request);
        } else if is_canonical(request.uri().path().as_str()) {
            return;
        }
        // No route has this path.
        request.set_uri(uri!("/:"));
    }
}

/// Returns `true` if no segment but the last is empty, and percent-encoding is in upper case and
/// only used if needed (RFC 3986 §6.2.2).
fn is_canonical(path: &str) -> bool {
    let needed = |rest: &str| {
        let octet = rest
            .get(..2)
            .filter(|hex| !hex.contains(|c: char| c.is_ascii_lowercase()));
        let octet = octet.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        octet.is_some_and(|octet| !octet.is_ascii_alphanumeric() && !b"-._~".contains(&octet))
    };
    !path.contains("//") && path.split('%').skip(1).all(needed)
}
