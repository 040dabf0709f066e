//! `vestibule prune`

use super::Result;
use crate::app;

pub(super) fn run() -> Result {
    super::on_database(async |pool, settings| {
        let pruned = app::prune(&pool, &settings).await?;
        say!(
            "{} expired sessions, {} staff sessions and {} old events deleted",
            pruned.sessions,
            pruned.staff_sessions,
            pruned.events
        );
        say!("{} sessions above session.max_per_identity deleted", pruned.surplus_sessions);
        say!("{} webhook messages deleted", pruned.webhook_messages);
        say!("{} ids of providers' messages deleted", pruned.provider_events);
        say!("{} hashes of deleted identities deleted", pruned.deleted_identities);
        say!("{} provider tokens deleted", pruned.provider_tokens);
        say!("{} events cleared of the data of deleted users", pruned.forgotten);
        Ok(())
    })
}
