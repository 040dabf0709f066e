//! The progress of a long command: a bar on a terminal, otherwise a line every few seconds.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// The interval between lines if there is no terminal.
const PAUSE: Duration = Duration::from_secs(5);

pub(crate) struct Progress {
    bar: ProgressBar,
    what: &'static str,
    done: u64,
    began: Instant,
    told: Instant,
}

impl Progress {
    /// Starts at zero. `what` names the counted items; `all` is the total in any unit, if it is
    /// known.
    pub fn new(what: &'static str, all: Option<u64>) -> Self {
        let template = if all.is_some() {
            "{wide_bar} {percent} %, {msg}, {eta} left"
        } else {
            "{spinner} {msg}"
        };
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = all
            .map_or_else(ProgressBar::new_spinner, ProgressBar::new)
            .with_style(style);
        let now = Instant::now();
        Self {
            bar,
            what,
            done: 0,
            began: now,
            told: now,
        }
    }

    /// Adds `count` items and `way` units of the total.
    pub fn add(&mut self, count: u64, way: u64) {
        self.done += count;
        self.bar.inc(way);
        self.bar.set_message(format!("{} {}", self.done, self.what));
        if self.bar.is_hidden() && self.told.elapsed() >= PAUSE {
            let way = self
                .bar
                .length()
                .map(|all| format!(", {} %", self.bar.position() * 100 / all.max(1)));
            tell(&format!(
                "{} {}{}",
                self.done,
                self.what,
                way.unwrap_or_default()
            ));
            self.told = Instant::now();
        }
    }

    pub fn say(&self, line: &str) {
        self.bar.suspend(|| tell(line));
    }

    /// Removes the bar. Returns the duration.
    pub fn finish(self) -> Duration {
        self.bar.finish_and_clear();
        self.began.elapsed()
    }
}

/// Prints a line. An error is ignored: the work goes on without a reader.
fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
