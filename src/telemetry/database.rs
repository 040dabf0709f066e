//! How long one waits for a connection to the database, and how long its statements take. The driver tells
//! both in events that are counted here; they never become lines of the log.

use std::fmt;
use std::sync::LazyLock;

use prometheus_client::metrics::histogram::Histogram;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// Upper bounds of the histograms, in seconds.
const BOUNDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5];
/// Upper bounds of the histogram of batches.
const SIZES: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
/// The target of the events of batches (`store::batch`).
const BATCH: &str = "vestibule::batch";
/// What the driver calls its events.
const STATEMENT: &str = "sqlx::query";
const ACQUIRED: &str = "sqlx::pool::acquire";

/// Seconds of this process, from the start of its logging on.
#[derive(Debug)]
pub struct Times {
    /// From the wish for a connection to having one.
    pub waits: Histogram,
    /// From sending a statement to its last row.
    pub statements: Histogram,
    /// From the arrival of a batch's first item to its statement.
    pub queue: Histogram,
    /// Items of a batch.
    pub batches: Histogram,
}

static TIMES: LazyLock<Times> = LazyLock::new(|| Times {
    waits: Histogram::new(BOUNDS),
    statements: Histogram::new(BOUNDS),
    queue: Histogram::new(BOUNDS),
    batches: Histogram::new(SIZES),
});

/// What was measured so far, and will be.
#[must_use]
pub fn times() -> &'static Times {
    &TIMES
}

/// The layer that measures.
pub(super) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    let events = Targets::new()
        .with_target(STATEMENT, LevelFilter::TRACE)
        .with_target(ACQUIRED, LevelFilter::TRACE)
        .with_target(BATCH, LevelFilter::TRACE);
    Observer.with_filter(events)
}

struct Observer;

impl<S: Subscriber> Layer<S> for Observer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        event.record(&mut Seconds);
    }
}

/// Picks the time out of an event.
struct Seconds;

impl Visit for Seconds {
    fn record_f64(&mut self, field: &Field, seconds: f64) {
        match field.name() {
            "elapsed_secs" => TIMES.statements.observe(seconds),
            "waited_secs" => TIMES.queue.observe(seconds),
            "acquired_after_secs" => TIMES.waits.observe(seconds),
            _ => {}
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "batches are small")]
    fn record_u64(&mut self, field: &Field, number: u64) {
        if field.name() == "batch_size" {
            TIMES.batches.observe(number as f64);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}
