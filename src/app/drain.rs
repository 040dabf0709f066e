//! Graceful shutdown. At SIGTERM, Rocket would close the port at once, while a proxy still sends
//! requests to it. So `/readyz` first reports that this instance is stopping, requests are served
//! for some seconds, and only then does Rocket's own shutdown begin.

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use figment::Figment;
use figment::providers::Serialized;
use rocket::config::Sig;
use rocket::fairing::{AdHoc, Fairing};
use rocket::{Orbit, Rocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use crate::web::http::stage::Stage;

const SIGNALS: &str = "shutdown.signals";

/// Receives the signals that request a shutdown, from the moment it is created. A signal before the
/// first wait is kept: once a handler is registered, it no longer ends the process.
#[derive(Debug)]
pub struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for a shutdown request. Before the service serves, it can stop at once.
    pub async fn told(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Removes SIGTERM from Rocket's signals. Its other signals, and an interrupt from a terminal,
/// still stop it at once.
pub(super) fn take_over(figment: Figment) -> Figment {
    let mut signals: HashSet<Sig> = figment.extract_inner(SIGNALS).unwrap_or_default();
    signals.remove(&Sig::Term);
    figment.merge(Serialized::global(SIGNALS, signals))
}

/// Waits for SIGTERM, serves for the time that [`Stage`] has for the drain, and stops. A second
/// signal skips the drain.
pub(super) fn fairing(stop: Stop) -> impl Fairing {
    AdHoc::on_liftoff("drain", move |rocket| {
        Box::pin(async move { wait(rocket, stop) })
    })
}

fn wait(rocket: &Rocket<Orbit>, stop: Stop) {
    let shutdown = rocket.shutdown();
    let mut terminate = stop.terminate;
    let stage = rocket.state::<Stage>().cloned().unwrap_or_default();
    tokio::spawn(async move {
        terminate.recv().await;
        let seconds = stage.drain;
        tracing::info!(
            seconds,
            "shutdown requested; `/readyz` returns 503, and pending requests are completed"
        );
        stage.begin_drain();
        // Either the time has passed, or a second signal came.
        let _ = timeout(Duration::from_secs(seconds.into()), terminate.recv()).await;
        shutdown.notify();
    });
}
