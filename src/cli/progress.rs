//! How far a long command is: a bar on a terminal, now and then a line elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Between lines where there is no terminal.
const PAUSE: Duration = Duration::from_secs(5);

/// So much of so much.
pub(super) struct Progress {
    bar: ProgressBar,
    what: &'static str,
    done: u64,
    began: Instant,
    told: Instant,
}

impl Progress {
    /// Nothing yet of what is called that. `all` is how far it goes, if that is known, in whatever unit.
    pub fn new(what: &'static str, all: Option<u64>) -> Self {
        let template =
            if all.is_some() { "{wide_bar} {percent} %, {msg}, {eta} left" } else { "{spinner} {msg}" };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = all.map_or_else(ProgressBar::new_spinner, ProgressBar::new).with_style(style);
        let now = Instant::now();
        Self { bar, what, done: 0, began: now, told: now }
    }

    /// So many more are done, which is so much of the way.
    pub fn add(&mut self, count: u64, way: u64) {
        self.done += count;
        self.bar.inc(way);
        self.bar.set_message(format!("{} {}", self.done, self.what));
        if self.bar.is_hidden() && self.told.elapsed() >= PAUSE {
            let way = self.bar.length().map(|all| format!(", {} %", self.bar.position() * 100 / all.max(1)));
            eprintln!("{} {}{}", self.done, self.what, way.unwrap_or_default());
            self.told = Instant::now();
        }
    }

    /// A line that is no progress, and does not get into its way.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    /// All; answers how long it took.
    pub fn finish(self) -> Duration {
        self.bar.finish_and_clear();
        self.began.elapsed()
    }
}
