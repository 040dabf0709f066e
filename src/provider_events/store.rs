//! The statement that applies a report, and the end of its record.

use time::OffsetDateTime;

use crate::database::{Database, Error};
use crate::domain::Email;
use crate::domain::report::{Effect, Event, Report, Subject};

/// Applies a report once; see `apply.sql`.
pub(super) async fn apply(
    database: &Database,
    provider: &str,
    report: &Report,
    request_id: &str,
) -> Result<(), Error> {
    let events = &report.events;
    let texts = |read: fn(&Event) -> Option<String>| events.iter().map(read).collect::<Vec<_>>();
    let effects: Vec<_> = events.iter().map(Effect::of).collect();
    let raced = sqlx::query_file_scalar!(
        "src/provider_events/apply.sql",
        provider,
        report.id,
        OffsetDateTime::from_unix_timestamp(report.at).unwrap_or(OffsetDateTime::UNIX_EPOCH),
        &events
            .iter()
            .map(|event| event.kind.into())
            .collect::<Vec<&str>>() as &[&str],
        &texts(|event| match &event.subject {
            Some(Subject::Subject(subject)) => Some(subject.clone()),
            _ => None,
        }) as &[Option<String>],
        &texts(|event| match &event.subject {
            Some(Subject::Email(email)) => folded(email),
            _ => None,
        }) as &[Option<String>],
        &texts(|event| event.reason.clone()) as &[Option<String>],
        &texts(|event| event.email.as_deref().and_then(folded)) as &[Option<String>],
        &effects
            .iter()
            .map(|effect| effect.ends_sessions)
            .collect::<Vec<_>>(),
        &effects
            .iter()
            .map(|effect| effect.suspends)
            .collect::<Vec<_>>() as &[Option<bool>],
        &effects
            .iter()
            .map(|effect| effect.recycles_address)
            .collect::<Vec<_>>(),
        request_id,
    );
    if raced.fetch_one(database).await? {
        Err(Error::Raced(None))
    } else {
        Ok(())
    }
}

fn folded(email: &str) -> Option<String> {
    Email::parse(email).map(|email| email.folded().to_owned())
}
