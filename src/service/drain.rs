//! Stopping without losing a request. At SIGTERM, Rocket would close the port at once, while a proxy
//! still sends requests to it. So `/readyz` says first that this instance is about to go, all else
//! goes on for a while, and only then does Rocket's own shutdown begin.

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

use crate::web::drain::Drain;

const SIGNALS: &str = "shutdown.signals";

/// What tells the process to stop, heard from the moment on that this value is made. A signal that came
/// while nobody listened would be lost: the first that is listened for does not end a process any more.
#[derive(Debug)]
pub struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    /// Listens.
    ///
    /// # Errors
    /// The system does not let it.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Returns when the process was told to stop: before it serves, nobody has to be waited for.
    pub async fn told(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Takes SIGTERM out of Rocket's hands. Its other signals, and an interrupt from a terminal, still
/// stop it at once.
pub(super) fn take_over(figment: Figment) -> Figment {
    let mut signals: HashSet<Sig> = figment.extract_inner(SIGNALS).unwrap_or_default();
    signals.remove(&Sig::Term);
    figment.merge(Serialized::global(SIGNALS, signals))
}

/// Waits for SIGTERM, goes on for as long as [`Drain`] says, and stops. Whoever tells twice does not
/// want to wait.
pub(super) fn fairing(stop: Stop) -> impl Fairing {
    AdHoc::on_liftoff("drain", move |rocket| Box::pin(async move { wait(rocket, stop) }))
}

fn wait(rocket: &Rocket<Orbit>, stop: Stop) {
    let (shutdown, mut terminate) = (rocket.shutdown(), stop.terminate);
    let drain = rocket.state::<Drain>().cloned().unwrap_or_default();
    tokio::spawn(async move {
        terminate.recv().await;
        let seconds = drain.seconds();
        tracing::info!(seconds, "told to stop; `/readyz` says so, and requests are answered meanwhile");
        drain.begin();
        // Either way it is over: the time, or the patience.
        let _ = timeout(Duration::from_secs(seconds.into()), terminate.recv()).await;
        shutdown.notify();
    });
}
