//! How far a long command is: a bar on a terminal, now and then a line elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Lines where there is no terminal.
const LINES: u64 = 10;

/// So much of so much.
pub(super) struct Progress {
    bar: ProgressBar,
    what: &'static str,
    told: u64,
    began: Instant,
}

impl Progress {
    /// Nothing yet of `all`, which are called that.
    pub fn new(what: &'static str, all: u64) -> Self {
        let style = ProgressStyle::with_template("{wide_bar} {human_pos} of {human_len} {msg}, {eta} left");
        let bar = ProgressBar::new(all).with_message(what);
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, what, told: 0, began: Instant::now() }
    }

    /// So much more.
    pub fn add(&mut self, count: u64) {
        self.bar.inc(count);
        let (done, all) = (self.bar.position(), self.bar.length().unwrap_or_default());
        let line = done * LINES / all.max(1);
        if self.bar.is_hidden() && line > self.told {
            eprintln!("{done} of {all} {}", self.what);
            self.told = line;
        }
    }

    /// All; answers how long it took.
    pub fn finish(self) -> Duration {
        self.bar.finish_and_clear();
        self.began.elapsed()
    }
}
