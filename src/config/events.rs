//! `[default.events]`: retention of the event log.

use figment::Figment;
use serde::Deserialize;

use super::{Error, text};

/// Settings of the event log.
#[derive(Debug, Clone, Copy)]
pub struct Events {
    /// Days after which an event is deleted; 400 by default.
    pub retention_days: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    #[serde(default, deserialize_with = "text::parsed")]
    retention_days: Option<u32>,
}

pub(super) fn read(figment: &Figment, raw: &Raw) -> Result<Events, Error> {
    let retention_days = raw.retention_days.unwrap_or(400);
    let sound = (1..=4000).contains(&retention_days);
    sound.then_some(Events { retention_days }).ok_or_else(|| {
        Error::at(figment, "events.retention_days", "is out of range", "set it to 1 to 4000 days")
    })
}
