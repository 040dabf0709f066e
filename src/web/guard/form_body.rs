//! The request's body as a form, as OAuth sends it (RFC 6749 §3.2 and Appendix B).

use std::collections::BTreeMap;

use rocket::data::{Data, FromData, Limits, Outcome};
use rocket::request::Request;
use url::form_urlencoded;

use super::json_body;
use crate::web::http::fields;
use crate::web::{ErrorCode, Problem, errors};

/// The most fields of a form. A client may send fields that this service ignores (RFC 6749 §3.2).
pub const MAX_FIELDS: usize = 128;

/// The fields of a form without duplicates. A blank field counts as absent.
///
/// - **Succeeds** when the body is such a form, up to Rocket's `limits.form` (32 KiB by default)
///   and [`MAX_FIELDS`].
/// - **Fails** otherwise; the handler answers with the error in its own format.
#[derive(Debug)]
pub struct FormBody(BTreeMap<String, String>);

impl FormBody {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns a field, and drops the rest: nothing else of the form waits for the database.
    pub fn take(mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }
}

// The errors that OAuth has no name for.
errors!(FormBody: [ErrorCode::PayloadTooLarge, ErrorCode::ServiceUnavailable]);

#[rocket::async_trait]
impl<'r> FromData<'r> for FormBody {
    type Error = Problem;

    async fn from_data(request: &'r Request<'_>, data: Data<'r>) -> Outcome<'r, Self> {
        match read(request, data).await {
            Ok(form) => Outcome::Success(form),
            Err(problem) => Outcome::Error((problem.status(), problem)),
        }
    }
}

async fn read(request: &Request<'_>, data: Data<'_>) -> Result<FormBody, Problem> {
    if !fields::is_form(request) {
        let detail = "`Content-Type` must be `application/x-www-form-urlencoded`";
        return Err(Problem::new(ErrorCode::UnsupportedMediaType, detail));
    }
    let limit = request.limits().get("form").unwrap_or(Limits::FORM);
    let body = json_body::whole(request, data, limit).await?;
    let mut fields = BTreeMap::new();
    for (name, value) in parse(&body)?.into_owned() {
        if !value.is_empty() && fields.insert(name, value).is_some() {
            return Err(Problem::malformed("a parameter is repeated"));
        }
    }
    Ok(FormBody(fields))
}

/// Parses a form of at most [`MAX_FIELDS`] fields.
pub fn parse(body: &[u8]) -> Result<form_urlencoded::Parse<'_>, Problem> {
    if body.split(|&byte| byte == b'&').nth(MAX_FIELDS).is_some() {
        return Err(Problem::malformed(format!(
            "the form has more than {MAX_FIELDS} fields"
        )));
    }
    Ok(form_urlencoded::parse(body))
}
