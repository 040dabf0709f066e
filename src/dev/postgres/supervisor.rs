//! The thread that owns the server process: it spawns it, waits for it, and
//! spawns it again when it dies, until told to stop. One thread for all of
//! that, because on Linux the server ends with the thread that spawned it.

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

/// A server that is silent for so long while starting is given up.
const SILENCE: Duration = Duration::from_mins(1);
/// For so long, a server that finds the directory still in use is tried again.
const STILL_IN_USE: Duration = Duration::from_secs(15);
/// Between two looks at a starting server, and between two of those tries.
const POLL: Duration = Duration::from_millis(10);
const RETRY: Duration = Duration::from_millis(100);
/// Between two failed restarts: the first pause and, doubled each time, the
/// longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long a server may take for a fast shutdown, then for an immediate one.
const FAST: Duration = Duration::from_secs(10);
const IMMEDIATE: Duration = Duration::from_secs(5);

/// The thread, and how to talk to it. Dropping it stops the server.
#[derive(Debug)]
pub(super) struct Supervisor {
    shared: Arc<Shared>,
    /// Reports the first start; closed when the thread ends, however it ends.
    thread_ended: Mutex<Receiver<Result<(), Error>>>,
    thread: Option<JoinHandle<()>>,
}

impl Supervisor {
    /// Starts the thread and the server; returns when the latter is ready.
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
                    // Made anew at the next start; not worth an error.
                    let _ = fs::remove_dir(&server.socket_dir);
                }
            })
            .map_err(Error::io("start a thread for", &program))?;
        let started = reports.recv();
        let supervisor = Self { shared, thread_ended: Mutex::new(reports), thread: Some(thread) };
        match started {
            Ok(Ok(())) => Ok(supervisor),
            Ok(Err(error)) => Err(error),
            // Only a panic in the thread, i.e. in the caller's progress
            // function.
            Err(_) => Err(Error::io("supervise", &program)(std::io::Error::other(
                "the supervising thread has panicked",
            ))),
        }
    }

    /// The server's process id while there is one.
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
        // Nobody is left to hear it, unless both were of no use.
        self.shared.signal(Signal::KILL);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What both threads know.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Set while the process exists: it is reaped under the same lock, so a
    /// signal never reaches a stranger that was given the number since.
    pid: Option<Pid>,
    stopping: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.lock().pid {
            // It can only fail for a process that has ended already.
            let _ = kill_process(pid, signal);
        }
    }

    fn stopping(&self) -> bool {
        self.lock().stopping
    }

    /// Spawns, unless told to stop: under the lock, so that whoever says
    /// "stop" afterwards finds the process id.
    fn spawn(&self, server: &Server) -> Result<Option<Child>, Error> {
        let mut state = self.lock();
        if state.stopping {
            return Ok(None);
        }
        let child = server.spawn()?;
        state.pid = Some(Pid::from_child(&child));
        Ok(Some(child))
    }

    /// How the child ended, if it has.
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
            // Waits without reaping, hence without the lock.
            let flags = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let waited = waitid(WaitId::Pid(Pid::from_child(child)), flags);
            if let Some(status) = self.try_reap(child) {
                return status;
            }
            if !matches!(waited, Ok(_) | Err(Errno::INTR)) {
                // Somebody else has reaped it; how it ended is lost.
                self.lock().pid = None;
                return ExitStatus::from_raw(0);
            }
        }
    }

    /// Lets time pass, but returns at once when told to stop.
    fn pause(&self, time: Duration) {
        let state = self.lock();
        let _ = self.changed.wait_timeout_while(state, time, |state| !state.stopping);
    }
}

/// The thread's whole life.
fn supervise(server: &Server, shared: &Shared, report: &Sender<Result<(), Error>>) {
    let mut starts = 0_u32;
    let mut pause = FIRST_PAUSE;
    loop {
        match bring_up(server, shared) {
            Ok(Some(mut child)) => {
                starts = starts.saturating_add(1);
                pause = FIRST_PAUSE;
                if starts == 1 {
                    // A receiver that is gone will have asked to stop.
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

/// A server that accepts connections, or `None` when told to stop.
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
        // Again each time: cleaners of /tmp remove what looks unused.
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

/// `None` when the child is ready, or how it ended before.
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

/// What a server says that meets a predecessor, or the processes of one, not
/// yet gone.
fn still_in_use(log: &str) -> bool {
    ["already exists", "still in use"].iter().any(|words| log.contains(words))
}
