//! `vestibule prune`

use super::Result;
use crate::config::{self, Config};
use crate::service;

pub(super) fn run() -> Result {
    let config = Config::read(config::figment())?;
    super::block_on(1, async move {
        let pruned = service::prune(&config).await?;
        println!("{} expired refresh tokens, {} old events deleted", pruned.refresh_tokens, pruned.events);
        println!("{} events no longer name somebody who was deleted", pruned.forgotten);
        Ok(())
    })
}
