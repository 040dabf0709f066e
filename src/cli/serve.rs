//! `vestibule serve`

use std::error::Error;
#[cfg(debug_assertions)]
use std::io::{self, Write};
use std::process::ExitCode;

use figment::Figment;

use super::{Result, ended};
use crate::app::drain::Stop;
use crate::app::reload::{self, Hangup};
use crate::config::{self, Config, LogFormat, LogLevel};
use crate::{app, background, telemetry};

pub(super) fn run() -> ExitCode {
    let figment = config::figment();
    let format = LogFormat::of(&figment);
    let log = match telemetry::start_serving(format, LogLevel::of(&figment)) {
        Ok(log) => log,
        Err(error) => return ended(Err(error.into())),
    };
    match serve(figment) {
        // A program that reads the log reads its last line, too.
        Err(error) if format == LogFormat::Json && tracing::enabled!(tracing::Level::ERROR) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
        done => {
            // The reason for a failure is the last line.
            drop(log);
            ended(done.map(|()| ExitCode::SUCCESS))
        }
    }
}

fn serve(figment: Figment) -> Result {
    #[cfg(debug_assertions)]
    let (figment, mut development) = crate::dev::prepare(figment)?;
    let used = figment.clone();
    let config = Config::read(figment)?;
    super::block_on(config.workers, async {
        #[cfg(debug_assertions)]
        let settings = config.figment.clone();
        let place = app::place(&config.figment)?;
        let providers = config
            .providers
            .keys()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", ");
        let mut stop = Stop::listen()?;
        let hangup = Hangup::listen()?;
        let (rocket, start) = app::build(config).await?;
        let rocket = rocket.attach(reload::fairing(hangup, &used, settings_now)?);
        app::open_files::limit();
        background::spawn("open files", app::open_files::watch);
        #[cfg(debug_assertions)]
        let rocket = development.mount(rocket);
        #[cfg(debug_assertions)]
        let welcome = development.welcome();
        let prepared = async {
            if !app::standby::database_is_there(&start).await? {
                return Ok(Some(start));
            }
            start.finish().await?;
            #[cfg(debug_assertions)]
            development.appoint(&settings).await?;
            Result::Ok(None)
        };
        let waiting = tokio::select! {
            prepared = prepared => prepared?,
            () = stop.told() => return Ok(()),
        };
        app::standby::launch(rocket, waiting, stop, move |rocket| {
            let config = rocket.config();
            tracing::info!(
                address = %config.address,
                port = config.port,
                profile = %config.profile,
                version = env!("CARGO_PKG_VERSION"),
                commit = env!("VESTIBULE_COMMIT"),
                database = place.database,
                database_hosts = place.hosts(),
                providers,
                "listening"
            );
            #[cfg(debug_assertions)]
            // The server does not end with the reader of its output.
            drop(writeln!(io::stdout(), "{welcome}"));
        })
        .await?;
        Ok(())
    })
}

/// Reads the settings as they are now, in development beside its database.
fn settings_now() -> std::result::Result<Figment, Box<dyn Error + Send + Sync>> {
    let figment = config::figment();
    #[cfg(debug_assertions)]
    let (figment, _development) = crate::dev::prepare_if_development(figment)?;
    Ok(figment)
}
