//! The thread that owns the server process: it spawns it, waits for it, and spawns it again when it dies, until it
//! has to stop. One thread does all of that, because on Linux the server ends with the thread that spawned it.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::account::Account;
use super::error::Error;
use super::leftover;
use super::place;
use super::server::Server;
use super::socket;

/// The time without a log line after which a starting server is given up.
const SILENCE: Duration = Duration::from_mins(1);
/// The time for which a server is retried that finds the directory still in use.
const STILL_IN_USE: Duration = Duration::from_secs(15);
/// The interval between two checks of a starting server, and between two of those retries.
const POLL: Duration = Duration::from_millis(10);
const RETRY: Duration = Duration::from_millis(100);
/// The pause between two failed restarts: the first, and the longest after doubling.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The time for a fast shutdown, and then for an immediate one.
const FAST: Duration = Duration::from_secs(10);
const IMMEDIATE: Duration = Duration::from_secs(5);

/// The handle of the thread. Dropping it stops the server.
#[derive(Debug)]
pub(super) struct Supervisor {
    shared: Arc<Shared>,
    /// Reports the result of the first start; closed when the thread ends for any reason.
    thread_ended: Mutex<Receiver<Result<(), Error>>>,
    thread: Option<JoinHandle<()>>,
}

impl Supervisor {
    /// Starts the thread and the server; returns once the server is ready.
    pub(super) fn start(server: Arc<Server>) -> Result<Self, Error> {
        let shared = Arc::new(Shared::default());
        let (report, reports) = mpsc::channel();
        let program = server.bin_dir.join("postgres");
        let thread = thread::Builder::new()
            .name("postgres".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || {
                    supervise(&server, &shared, &report);
                    // The next start creates it again, so an error does not matter.
                    let _ = fs::remove_dir(&server.socket_dir);
                }
            })
            .map_err(Error::io("start a thread for", &program))?;
        let started = reports.recv();
        let supervisor = Self { shared, thread_ended: Mutex::new(reports), thread: Some(thread) };
        match started {
            Ok(Ok(())) => Ok(supervisor),
            Ok(Err(error)) => Err(error),
            // Only a panic in the thread, i.e. in the caller's progress function, leads here.
            Err(_) => Err(Error::io("supervise", &program)(std::io::Error::other(
                "the supervising thread has panicked",
            ))),
        }
    }

    /// Returns the server's process id while there is one.
    pub(super) fn pid(&self) -> Option<u32> {
        let pid = self.shared.lock().pid?;
        u32::try_from(pid.as_raw_nonzero().get()).ok()
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.changed.notify_all();
        let ended = self.thread_ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (signal, patience) in [(Signal::INT, FAST), (Signal::QUIT, IMMEDIATE)] {
            self.shared.signal(signal);
            match ended.recv_timeout(patience) {
                Err(RecvTimeoutError::Timeout) => (),
                _ => break,
            }
        }
        // The process has usually ended; otherwise both signals had no effect.
        self.shared.signal(Signal::KILL);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state that both threads share.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Set while the process exists. The process is reaped under the same lock, so a signal never reaches another
    /// process that has since been given the number.
    pid: Option<Pid>,
    stopping: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.lock().pid {
            // The call only fails for a process that has already ended.
            let _ = kill_process(pid, signal);
        }
    }

    fn stopping(&self) -> bool {
        self.lock().stopping
    }

    /// Spawns the server unless a stop was requested. It holds the lock, so that a later request finds the process
    /// id.
    fn spawn(&self, server: &Server) -> Result<Option<Child>, Error> {
        let mut state = self.lock();
        if state.stopping {
            return Ok(None);
        }
        let child = server.spawn()?;
        state.pid = Some(Pid::from_child(&child));
        Ok(Some(child))
    }

    /// Returns the child's exit status if it has ended.
    fn try_reap(&self, child: &mut Child) -> Option<ExitStatus> {
        let mut state = self.lock();
        let status = child.try_wait().ok().flatten();
        if status.is_some() {
            state.pid = None;
        }
        status
    }

    /// Waits until the child has ended.
    fn reap(&self, child: &mut Child) -> ExitStatus {
        loop {
            // This waits without reaping, hence without the lock.
            let flags = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let waited = waitid(WaitId::Pid(Pid::from_child(child)), flags);
            if let Some(status) = self.try_reap(child) {
                return status;
            }
            if !matches!(waited, Ok(_) | Err(Errno::INTR)) {
                // Another part of the program has reaped it, so the exit status is lost.
                self.lock().pid = None;
                return ExitStatus::from_raw(0);
            }
        }
    }

    /// Waits for this time, but returns at once if a stop is requested.
    fn pause(&self, time: Duration) {
        let state = self.lock();
        let _ = self.changed.wait_timeout_while(state, time, |state| !state.stopping);
    }
}

/// Runs the thread.
fn supervise(server: &Server, shared: &Shared, report: &Sender<Result<(), Error>>) {
    let mut starts = 0_u32;
    let mut pause = FIRST_PAUSE;
    loop {
        match bring_up(server, shared) {
            Ok(Some(mut child)) => {
                starts = starts.saturating_add(1);
                pause = FIRST_PAUSE;
                if starts == 1 {
                    // If the receiver is gone, a stop has been requested.
                    let _ = report.send(Ok(()));
                } else {
                    server.progress("PostgreSQL is running again");
                }
                let status = shared.reap(&mut child);
                if shared.stopping() {
                    return;
                }
                server.progress(&format!("PostgreSQL ended unexpectedly ({status}); starting it again ..."));
            }
            Ok(None) => return,
            Err(error) if starts == 0 => {
                let _ = report.send(Err(error));
                return;
            }
            Err(error) => {
                server.progress(&format!("{error}; trying again ..."));
                shared.pause(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Starts a server that accepts connections. Returns `None` if a stop was requested.
fn bring_up(server: &Server, shared: &Shared) -> Result<Option<Child>, Error> {
    let began = Instant::now();
    loop {
        if shared.stopping() {
            return Ok(None);
        }
        leftover::clear(
            &server.data_dir,
            &socket::cluster_name(&server.socket_dir),
            server.progress.as_ref(),
        )?;
        // This is repeated each time, because cleaners of /tmp remove directories that look unused.
        place::private(&server.socket_dir, Account::server_uid(server.account.as_ref()), 0o700)?;
        socket::clear(&server.socket_dir)?;
        let log_from = server.log.len();
        let Some(mut child) = shared.spawn(server)? else {
            return Ok(None);
        };
        let Some(status) = await_ready(server, shared, &mut child, log_from)? else {
            return Ok(Some(child));
        };
        if shared.stopping() {
            return Ok(None);
        }
        if still_in_use(&server.log.since(log_from)) && began.elapsed() < STILL_IN_USE {
            shared.pause(RETRY);
            continue;
        }
        return Err(Error::Ended {
            status: status.to_string(),
            tail: server.log.tail_since(log_from),
            log: server.log.path().to_owned(),
        });
    }
}

/// Returns `None` once the child is ready, or its exit status if it ended before.
fn await_ready(
    server: &Server,
    shared: &Shared,
    child: &mut Child,
    log_from: u64,
) -> Result<Option<ExitStatus>, Error> {
    let mut last_sign = (Instant::now(), log_from);
    loop {
        if let Some(status) = shared.try_reap(child) {
            return Ok(Some(status));
        }
        if server.is_ready(child) {
            return Ok(None);
        }
        // A long recovery reports its progress in the log.
        let len = server.log.len();
        if len != last_sign.1 {
            last_sign = (Instant::now(), len);
        }
        if last_sign.0.elapsed() > SILENCE {
            shared.signal(Signal::KILL);
            shared.reap(child);
            return Err(Error::NotReady {
                seconds: SILENCE.as_secs(),
                tail: server.log.tail_since(log_from),
                log: server.log.path().to_owned(),
            });
        }
        thread::sleep(POLL);
    }
}

/// Recognises the messages of a server whose predecessor, or its processes, are not yet gone.
fn still_in_use(log: &str) -> bool {
    ["already exists", "still in use"].iter().any(|words| log.contains(words))
}
