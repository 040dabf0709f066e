//! Stopping without losing a request. At SIGTERM, Rocket would close the port at once, while a proxy
//! still sends requests to it. So `/readyz` says first that this instance is about to go, all else
//! goes on for a while, and only then does Rocket's own shutdown begin.

use std::collections::HashSet;
use std::time::Duration;

use figment::Figment;
use figment::providers::Serialized;
use rocket::config::Sig;
use rocket::fairing::{AdHoc, Fairing};
use rocket::{Orbit, Rocket};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use crate::web::drain::Drain;

const SIGNALS: &str = "shutdown.signals";

/// Takes SIGTERM out of Rocket's hands. Its other signals, and an interrupt from a terminal, still
/// stop it at once.
pub(super) fn take_over(figment: Figment) -> Figment {
    let mut signals: HashSet<Sig> = figment.extract_inner(SIGNALS).unwrap_or_default();
    signals.remove(&Sig::Term);
    figment.merge(Serialized::global(SIGNALS, signals))
}

/// Waits for SIGTERM, goes on for so many seconds, and stops. Whoever tells twice does not want to
/// wait.
pub(super) fn fairing(drain: Drain, seconds: u32) -> impl Fairing {
    AdHoc::on_liftoff("drain", move |rocket| Box::pin(async move { wait(rocket, drain, seconds) }))
}

fn wait(rocket: &Rocket<Orbit>, drain: Drain, seconds: u32) {
    let shutdown = rocket.shutdown();
    let mut term = match signal(SignalKind::terminate()) {
        Ok(term) => term,
        Err(error) => return tracing::error!(%error, "SIGTERM cannot be heard; it ends the program at once"),
    };
    tokio::spawn(async move {
        term.recv().await;
        tracing::info!(seconds, "told to stop; `/readyz` says so, and requests are answered meanwhile");
        drain.begin();
        // Either way it is over: the time, or the patience.
        let _ = timeout(Duration::from_secs(seconds.into()), term.recv()).await;
        shutdown.notify();
    });
}
