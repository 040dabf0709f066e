//! `vestibule serve`

use super::Result;
use crate::config::{self, Config, LogFormat};
use crate::service::drain::Stop;
use crate::{service, telemetry};

pub(super) fn run() -> Result {
    let figment = config::figment();
    telemetry::start(LogFormat::of(&figment));
    #[cfg(all(feature = "dev", debug_assertions))]
    let (figment, mut development) = crate::dev::prepare(figment)?;
    let config = Config::read(figment)?;
    super::block_on(config.workers, async {
        let mut stop = Stop::listen()?;
        let rocket = async {
            if !service::waiting::for_database(&config).await? {
                return Result::Ok(None);
            }
            service::migrate(&config).await?;
            #[cfg(all(feature = "dev", debug_assertions))]
            development.appoint(&config).await?;
            Ok(Some(service::build(config).await?))
        };
        let rocket = tokio::select! {
            rocket = rocket => rocket?,
            () = stop.told() => None,
        };
        let Some(rocket) = rocket else { return Ok(()) };
        #[cfg(all(feature = "dev", debug_assertions))]
        let (rocket, welcome) = (development.mount(rocket), development.welcome());
        service::launch(rocket, stop, move |rocket| {
            let config = rocket.config();
            tracing::info!(address = %config.address, port = config.port, profile = %config.profile, "listening");
            #[cfg(all(feature = "dev", debug_assertions))]
            println!("{welcome}");
        })
        .await?;
        Ok(())
    })
}
