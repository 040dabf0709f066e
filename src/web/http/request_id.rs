//! The id that connects a request's line in the log, the answer and the event.

use std::time::Instant;

use rocket::Request;
use uuid::Uuid;

use super::fields;
use crate::web::guard::client_address;

/// The longest id that is accepted from a proxy.
const MAX_ID: usize = 64;

/// The id of a request, as in `X-Request-Id`.
#[derive(Debug)]
pub struct RequestId {
    id: String,
    started: Instant,
}

impl RequestId {
    pub fn of<'r>(request: &'r Request<'_>) -> &'r Self {
        request.local_cache(|| {
            let id = given(request).map_or_else(fresh, str::to_owned);
            Self {
                id,
                started: Instant::now(),
            }
        })
    }

    pub const fn started(&self) -> Instant {
        self.started
    }

    /// Returns 16 hexadecimal digits, or up to 64 letters, digits, dots, underscores and hyphens
    /// from a trusted proxy.
    pub fn as_str(&self) -> &str {
        &self.id
    }
}

/// Creates an id for a request without one. It is short, since every event stores one.
fn fresh() -> String {
    format!("{:016x}", Uuid::new_v4().as_u64_pair().1)
}

/// Returns the id that a trusted proxy gave. Any other text is ignored, since the id goes into the
/// log, the answer and the events.
fn given<'r>(request: &'r Request<'_>) -> Option<&'r str> {
    client_address::trusted_proxies(request)?;
    let id = fields::only(request, "X-Request-Id")?;
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    ((1..=MAX_ID).contains(&id.len()) && id.bytes().all(plain)).then_some(id)
}
