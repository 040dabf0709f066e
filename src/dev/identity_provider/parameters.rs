//! The parameters of a request, `application/x-www-form-urlencoded` in its query or its body, with the two rules of
//! RFC 6749 §3.1: none may be repeated, and an empty one counts as absent.

use std::collections::BTreeMap;

use rocket::data::{self, Data, FromData, ToByteUnit};
use rocket::http::Status;
use rocket::outcome::Outcome;
use rocket::request::{self, FromRequest, Request};
use url::form_urlencoded;

/// The largest body read, in KiB; several tokens fit.
const MAX_BODY: u32 = 64;

/// Parameters by name.
///
/// - As a request guard, it reads the query; as a data guard, the body.
/// - **Fails** with [`Malformed`]; routes take it as [`Sent`] and answer that themselves.
#[derive(Debug, Default)]
pub(super) struct Parameters(BTreeMap<String, String>);

/// The parameters, or the reason why they cannot be read.
pub(super) type Sent = Result<Parameters, Malformed>;

/// The reason why parameters cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.why())]
pub(super) enum Malformed {
    Repeated,
    NoForm,
    Body,
}

impl Malformed {
    /// Returns the reason in words.
    pub const fn why(self) -> &'static str {
        match self {
            Self::Repeated => "a parameter is repeated",
            Self::NoForm => "the body must be application/x-www-form-urlencoded",
            Self::Body => "the body is too large or was cut short",
        }
    }
}

impl Parameters {
    fn parse(encoded: &[u8]) -> Sent {
        Self::default().with(form_urlencoded::parse(encoded).into_owned())
    }

    fn with(mut self, pairs: impl IntoIterator<Item = (String, String)>) -> Sent {
        for (name, value) in pairs {
            if self.0.insert(name, value).is_some() {
                return Err(Malformed::Repeated);
            }
        }
        self.0.retain(|_, value| !value.is_empty());
        Ok(self)
    }

    /// Merges the parameters of query and body.
    pub fn merge(self, others: Self) -> Sent {
        self.with(others.0)
    }

    /// Returns the value of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns a name that is not in `known`.
    pub fn unknown(&self, known: &[&str]) -> Option<&str> {
        self.0.keys().map(String::as_str).find(|name| !known.contains(name))
    }

    /// Encodes the parameters except those in `names`.
    pub fn encode_without(&self, names: &[&str]) -> String {
        let rest = self.0.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        form_urlencoded::Serializer::new(String::new()).extend_pairs(rest).finish()
    }
}

#[rocket::async_trait]
impl<'r> FromRequest<'r> for Parameters {
    type Error = Malformed;

    async fn from_request(request: &'r Request<'_>) -> request::Outcome<Self, Malformed> {
        let query = request.uri().query().map_or("", |query| query.as_str());
        Self::parse(query.as_bytes())
            .map_or_else(|e| Outcome::Error((Status::BadRequest, e)), Outcome::Success)
    }
}

#[rocket::async_trait]
impl<'r> FromData<'r> for Parameters {
    type Error = Malformed;

    async fn from_data(request: &'r Request<'_>, data: Data<'r>) -> data::Outcome<'r, Self> {
        match body(request, data).await {
            Ok(parameters) => Outcome::Success(parameters),
            Err(malformed) => Outcome::Error((Status::BadRequest, malformed)),
        }
    }
}

async fn body(request: &Request<'_>, data: Data<'_>) -> Sent {
    if !request.content_type().is_some_and(|content_type| content_type.is_form()) {
        return Err(Malformed::NoForm);
    }
    let body = data.open(MAX_BODY.kibibytes()).into_bytes().await.map_err(|_| Malformed::Body)?;
    if !body.is_complete() {
        return Err(Malformed::Body);
    }
    Parameters::parse(&body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_sent_once_or_refused() {
        for encoded in ["a=1&a=1", "a=1&a=", "a&a"] {
            assert_eq!(Parameters::parse(encoded.as_bytes()).unwrap_err(), Malformed::Repeated, "{encoded}");
        }
        let (query, body) = (Parameters::parse(b"a=1").unwrap(), Parameters::parse(b"a=2").unwrap());
        assert_eq!(query.merge(body).unwrap_err(), Malformed::Repeated);
    }

    #[test]
    fn an_empty_parameter_is_as_good_as_not_sent() {
        let parameters = Parameters::parse(b"a=&b=x%20y+z").unwrap();
        assert_eq!((parameters.get("a"), parameters.get("b")), (None, Some("x y z")));
    }
}
