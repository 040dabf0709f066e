//! Recorded requests.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{HeaderMap, Request};
use url::form_urlencoded;

#[derive(Clone, Debug)]
pub struct Recorded {
    pub method: String,
    /// The path as it was sent, without the query.
    pub path: String,
    /// The query as it was sent, without the question mark.
    pub query: String,
    pub headers: HeaderMap,
    /// The body, without its framing.
    pub body: Vec<u8>,
}

impl Recorded {
    pub(super) async fn read(request: Request<Incoming>) -> hyper::Result<Self> {
        let (head, body) = request.into_parts();
        Ok(Self {
            method: head.method.to_string(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            headers: head.headers,
            body: body.collect().await?.to_bytes().into(),
        })
    }

    /// The first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The decoded parameters: of the query, or of the form that a POST carries.
    pub fn parameters(&self) -> Vec<(String, String)> {
        let text = if self.method != "POST" {
            self.query.as_bytes()
        } else if self.header("content-type") == Some("application/x-www-form-urlencoded") {
            self.body.as_slice()
        } else {
            b""
        };
        form_urlencoded::parse(text).into_owned().collect()
    }

    /// The token, when there is exactly one `id_token` parameter.
    pub fn token(&self) -> Option<String> {
        let mut tokens = self
            .parameters()
            .into_iter()
            .filter(|(name, _)| name == "id_token");
        let (_, token) = tokens.next()?;
        tokens.next().is_none().then_some(token)
    }
}
