//! `vestibule migrate`

use super::Result;
use crate::config::{self, Config};
use crate::service;

pub(super) fn run() -> Result {
    let config = Config::read(config::figment())?;
    super::block_on(1, async move { Ok(service::migrate(&config).await?) })
}
