//! `vestibule prune`

use super::Result;
use crate::config::{self, Maintenance};
use crate::service;

pub(super) fn run() -> Result {
    let settings = Maintenance::read(config::figment())?;
    super::block_on(1, async move {
        let pruned = service::prune(&settings).await?;
        println!(
            "{} expired refresh tokens, {} sessions of staff, {} old events deleted",
            pruned.refresh_tokens, pruned.staff_sessions, pruned.events
        );
        println!("{} events no longer name somebody who was deleted", pruned.forgotten);
        Ok(())
    })
}
