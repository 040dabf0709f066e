//! Reports of providers about their accounts: an account was hijacked, disabled or deleted, or its
//! owner no longer uses this app. A message is judged, applied once, and only then acknowledged.
//!
//! Each kind of sender has a file that reads its messages into a [`Report`]. One statement applies
//! it, and `domain::report::Effect` decides what an event does.

pub mod data_deletion;
mod security_event;
mod store;

use crate::database::Database;
use crate::domain::presets::facebook::{self, SignedRequest};
use crate::domain::presets::{Sender, apple};
use crate::domain::report::Report;
pub use crate::provider::EventError as Error;
use crate::provider::Provider;

/// The longest message, in bytes.
pub const MAX_LENGTH: usize = 256 << 10;

/// Judges a message of a provider, and returns its report. `media_type` is the media type of the
/// request, in lower case and without parameters.
pub async fn read(
    provider: &Provider,
    media_type: &str,
    body: Vec<u8>,
    now: i64,
) -> Result<Report, Error> {
    match provider.settings.preset.sender {
        Sender::SecurityEvents => security_event::read(provider, media_type, body, now).await,
        Sender::Apple => {
            let token = apple::payload(&body)?;
            drop(body);
            let claims = provider.verify_event(&token, now).await?;
            Ok(apple::report(&claims, now)?)
        }
        Sender::Facebook => Ok(signed_request(provider, media_type, &body, now)?.deauthorization()),
    }
}

/// Verifies a request of Facebook. `media_type` is the media type of the request, in lower case and
/// without parameters.
pub fn signed_request(
    provider: &Provider,
    media_type: &str,
    body: &[u8],
    now: i64,
) -> Result<SignedRequest, Error> {
    let request = facebook::in_form(media_type, body)?;
    Ok(SignedRequest::read(&request, &provider.app_secret()?, now)?)
}

/// Applies a report of a provider, if it has not been applied before, to its accounts and to the
/// same accounts at `others`, the other names of its issuer. After an error, names may be left: the
/// message must not be acknowledged, and reaches them when it is sent again.
pub async fn apply(
    database: &Database,
    provider: &str,
    others: &[&str],
    report: &Report,
    request_id: &str,
) -> Result<(), crate::database::Error> {
    database
        .run(|_| store::apply(database, provider, report, request_id))
        .await?;
    let about_accounts = report.about_accounts();
    for other in others.iter().filter(|_| !about_accounts.events.is_empty()) {
        database
            .run(|_| store::apply(database, other, &about_accounts, request_id))
            .await?;
    }
    Ok(())
}
