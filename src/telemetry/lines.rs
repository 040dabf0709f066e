//! The lines of the log on their way to standard error. A separate thread writes them, all waiting
//! lines in one piece, so that a reader who stalls delays no request.
//!
//! `tracing-appender` has such a thread, too. But its queue is bounded in lines of any length, it
//! writes each line separately, and a process that ends while the reader stalls would complain of
//! that on standard error, and hang there.

use std::cell::Cell;
use std::io::{self, Write};
use std::mem;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;

use crate::background;

/// The most bytes that wait: some 5,000 lines. As many may be in the thread's hands.
const MOST: usize = 1 << 20;
/// The memory in bytes that is kept for the next lines.
const USUAL: usize = 64 << 10;
/// The pause after each write, in which lines gather. The first line after it is written at once.
const PAUSE: Duration = Duration::from_millis(10);
/// The longest time for which the end of the process waits for the reader.
const PATIENCE: Duration = Duration::from_secs(2);

static LINES: Lines = Lines {
    state: Mutex::new(State::new()),
    wanted: Condvar::new(),
    written: Condvar::new(),
};
static DROPPED: LazyLock<Counter> = LazyLock::new(Counter::default);

thread_local! {
    /// True in the thread that writes. It always has room, to report the lines that were dropped.
    static WRITES: Cell<bool> = const { Cell::new(false) };
}

struct Lines {
    state: Mutex<State>,
    /// Wakes the thread.
    wanted: Condvar,
    /// Wakes the callers that wait for the thread.
    written: Condvar,
}

struct State {
    waiting: Vec<u8>,
    /// The number of lines that wait.
    count: u64,
    /// The number of lines that were dropped and not yet reported in the log.
    untold: u64,
    /// True while the thread waits for a line.
    idle: bool,
    /// True while the thread has lines in its hands.
    busy: bool,
    ending: bool,
}

impl State {
    const fn new() -> Self {
        Self {
            waiting: Vec::new(),
            count: 0,
            untold: 0,
            idle: false,
            busy: false,
            ending: false,
        }
    }
}

impl Lines {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &[u8]) {
        let mut state = self.lock();
        if state.waiting.len() + line.len() > MOST && !WRITES.get() {
            state.untold += 1;
            DROPPED.inc();
            return;
        }
        state.waiting.extend_from_slice(line);
        state.count += 1;
        if mem::take(&mut state.idle) {
            self.wanted.notify_one();
        }
    }

    fn keep_writing(&self) {
        WRITES.set(true);
        let mut batch = Vec::new();
        loop {
            let mut state = self.lock();
            while state.waiting.is_empty() {
                state.idle = true;
                state = self
                    .wanted
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            (state.idle, state.busy) = (false, true);
            mem::swap(&mut batch, &mut state.waiting);
            let count = mem::take(&mut state.count);
            drop(state);

            let written = io::stderr().write_all(&batch);
            batch.clear();
            batch.shrink_to(USUAL);
            let lines = mem::take(&mut self.lock().untold);
            match written {
                Ok(()) if lines > 0 => {
                    tracing::warn!(
                        lines,
                        "{lines} lines were not written: whoever reads the log is too slow"
                    );
                }
                Ok(()) => {}
                // The reader is gone or the disk is full: a line about it would fail, too.
                Err(_) => drop(DROPPED.inc_by(count)),
            }

            let mut state = self.lock();
            state.busy = false;
            self.written.notify_all();
            drop(
                self.wanted
                    .wait_timeout_while(state, PAUSE, |state| !state.ending),
            );
        }
    }

    fn finish(&self) {
        let mut state = self.lock();
        state.ending = true;
        self.wanted.notify_one();
        let left = |state: &mut State| state.busy || !state.waiting.is_empty();
        drop(self.written.wait_timeout_while(state, PATIENCE, left));
    }
}

/// Returns the number of lines that were dropped, since the reader of standard error stalled or has
/// gone.
pub fn dropped() -> Counter {
    DROPPED.clone()
}

/// Takes whole lines, and never blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Writer;

impl Write for Writer {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        LINES.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// When it is dropped, it waits until the lines are written, for a limited time.
#[derive(Debug)]
#[must_use = "the process ends after it"]
pub struct Pending(());

impl Drop for Pending {
    fn drop(&mut self) {
        LINES.finish();
    }
}

pub(super) fn start() -> io::Result<Pending> {
    background::spawn_thread("log", || LINES.keep_writing())?;
    Ok(Pending(()))
}
