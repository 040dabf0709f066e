//! `vestibule migrate`

use super::Result;
use crate::app;
use crate::config::{self, Maintenance};

pub(super) fn run() -> Result {
    let settings = Maintenance::read(config::figment())?;
    super::block_on(1, async move { Ok(app::migrate(&settings.figment).await?) })
}
