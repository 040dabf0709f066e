//! A complete HTTP answer and its bytes.

use hyper::StatusCode;

/// One answer: status, headers and body.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// An answer with a body of the given type.
    pub(super) fn new(code: u16, content_type: &str, body: Vec<u8>) -> Self {
        Self {
            code,
            headers: Vec::new(),
            body,
        }
        .with("content-type", content_type)
    }

    /// The answer with one more header.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The status line and the headers, without the empty line that ends them.
    pub(super) fn head(&self) -> String {
        let reason = StatusCode::from_u16(self.code)
            .ok()
            .and_then(|code| code.canonical_reason());
        let mut head = format!(
            "HTTP/1.1 {} {}\r\n",
            self.code,
            reason.unwrap_or("Unlisted")
        );
        for (name, value) in &self.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        // A behaviour that lies about the length has written its own.
        let framed =
            |(name, _): &(String, _)| name == "content-length" || name == "transfer-encoding";
        if !matches!(self.code, ..200 | 204 | 304) && !self.headers.iter().any(framed) {
            head.extend(["content-length: ", &self.body.len().to_string(), "\r\n"]);
        }
        head
    }

    /// All bytes of the answer.
    pub(super) fn bytes(&self) -> Vec<u8> {
        [self.head().as_bytes(), b"\r\n", &self.body].concat()
    }
}
