//! `vestibule serve`

use super::Result;
use crate::config::{self, Config, LogFormat};
use crate::{service, telemetry};

pub(super) fn run() -> Result {
    let figment = config::figment();
    telemetry::start(LogFormat::of(&figment));
    #[cfg(all(feature = "dev", debug_assertions))]
    let (figment, mut development) = crate::dev::prepare(figment)?;
    let config = Config::read(figment)?;
    super::block_on(config.workers, async {
        if !service::waiting::for_database(&config).await? {
            return Ok(());
        }
        service::migrate(&config).await?;
        #[cfg(all(feature = "dev", debug_assertions))]
        development.appoint(&config).await?;
        let rocket = service::build(config).await?;
        #[cfg(all(feature = "dev", debug_assertions))]
        let (rocket, welcome) = (development.mount(rocket), development.welcome());
        service::launch(rocket, move |rocket| {
            let config = rocket.config();
            tracing::info!(address = %config.address, port = config.port, profile = %config.profile, "listening");
            #[cfg(all(feature = "dev", debug_assertions))]
            println!("{welcome}");
        })
        .await?;
        Ok(())
    })
}
