//! `vestibule migrate`

use super::Result;
use crate::config::{self, Maintenance};
use crate::service;

pub(super) fn run() -> Result {
    let settings = Maintenance::read(config::figment())?;
    super::block_on(1, async move { Ok(service::migrate(&settings.figment).await?) })
}
