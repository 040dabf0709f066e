//! Refuses requests whose path, method or host a gateway in front of the service could read differently.

use rocket::data::Data;
use rocket::fairing::{self, Fairing, Info};
use rocket::form::Form;
use rocket::request::Request;
use rocket::uri;

use crate::web::Problem;

/// The number of bytes in which Rocket looks for a form's `_method`.
const DISGUISE: usize = "_method=delete".len();
/// The headers of which there may be one.
const SINGLE: [&str; 2] = ["Host", "Content-Type"];

/// Refuses requests that Rocket would route differently than a gateway's rules expect.
///
/// Rocket skips empty segments and decodes the others when it looks for a route, so `//api/v1` and `/%61pi/v1` would
/// bypass a gateway's rule for `/api/v1`. Such a path is answered with 404. Rocket also takes the method from a form
/// that begins with `_method`. Such a form is refused, and so is a request with two `Host` headers (RFC 9112 §3.2) or two types
/// of its body, of which each reader may choose another.
#[derive(Debug)]
pub struct ExactPath;

#[rocket::async_trait]
impl Fairing for ExactPath {
    fn info(&self) -> Info {
        Info { name: "exact path", kind: fairing::Kind::Request }
    }

    async fn on_request(&self, request: &mut Request<'_>, data: &mut Data<'_>) {
        if is_disguised(request, data).await {
            let detail = "a form's field `_method` does not change the method of a request";
            Problem::malformed(detail).keep(request);
        } else if let Some(name) =
            SINGLE.into_iter().find(|name| request.headers().get(name).nth(1).is_some())
        {
            let detail = format!("there must be exactly one `{name}` header");
            Problem::malformed(detail).keep(request);
        } else if is_canonical(request.uri().path().as_str()) {
            return;
        }
        // No route has this path.
        request.set_uri(uri!("/:"));
    }
}

/// Returns `true` if the request is a form whose first field is `_method`, which may have changed its method.
async fn is_disguised(request: &Request<'_>, data: &mut Data<'_>) -> bool {
    if !request.content_type().is_some_and(|content_type| content_type.is_form()) {
        return false;
    }
    let start = std::str::from_utf8(data.peek(DISGUISE).await).unwrap_or_default();
    Form::values(start).next().is_some_and(|field| field.name == "_method")
}

/// Returns `true` if no segment but the last is empty, and percent-encoding is in upper case and only used if needed
/// (RFC 3986 §6.2.2).
fn is_canonical(path: &str) -> bool {
    let needed = |rest: &str| {
        let octet = rest.get(..2).filter(|hex| !hex.contains(|c: char| c.is_ascii_lowercase()));
        let octet = octet.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        octet.is_some_and(|octet| !octet.is_ascii_alphanumeric() && !b"-._~".contains(&octet))
    };
    !path.contains("//") && path.split('%').skip(1).all(needed)
}
