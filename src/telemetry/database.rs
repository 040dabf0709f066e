//! Waits for database connections, and durations of statements. The driver emits both as events,
//! which are measured here and never logged. If a trace of the request is sent, they are also
//! noted, as steps of that request.

use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::metrics::histogram::Histogram;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// Upper bounds of the histograms, in seconds.
const BOUNDS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
];
/// Upper bounds of the histogram of batch sizes.
const SIZES: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
/// Target of the events of batches (`database::batch`).
const BATCH: &str = "vestibule::batch";
/// Targets of the driver's events.
const STATEMENT: &str = "sqlx::query";
const ACQUIRED: &str = "sqlx::pool::acquire";

/// Histograms of this process since logging began; times are in seconds.
#[derive(Debug)]
pub struct Times {
    /// Wait for a connection.
    pub waits: Histogram,
    /// Time from sending a statement to its last row.
    pub statements: Histogram,
    /// Time from the arrival of a batch's first item to its statement.
    pub queue: Histogram,
    /// Number of items in a batch.
    pub batches: Histogram,
}

static TIMES: LazyLock<Times> = LazyLock::new(|| Times {
    waits: Histogram::new(BOUNDS),
    statements: Histogram::new(BOUNDS),
    queue: Histogram::new(BOUNDS),
    batches: Histogram::new(SIZES),
});

pub fn times() -> &'static Times {
    &TIMES
}

/// A wait of a request for the database.
#[derive(Debug)]
pub struct Step {
    /// The first line of a statement, without values, or the name of a batch or of another wait.
    pub name: String,
    pub until: Instant,
    pub took: Duration,
}

/// The steps of one request.
pub type Steps = Arc<Mutex<Vec<Step>>>;

tokio::task_local! {
    static STEPS: Steps;
}

/// Runs a request's work, and notes its steps.
pub async fn noting<T>(steps: Steps, work: impl Future<Output = T>) -> T {
    STEPS.scope(steps, work).await
}

/// Returns the layer that fills the histograms.
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
        event.record(&mut Measured::default());
    }
}

/// Records the measurements in an event's fields.
#[derive(Default)]
struct Measured {
    /// The name of the measured step, if steps are noted.
    name: String,
}

/// Notes a step that ends now, unless it is of background work or of a request without a trace.
fn note(name: &str, seconds: f64) {
    let _ = STEPS.try_with(|steps| {
        let took = Duration::from_secs_f64(seconds);
        let step = Step {
            name: name.to_owned(),
            until: Instant::now(),
            took,
        };
        steps
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(step);
    });
}

impl Visit for Measured {
    fn record_f64(&mut self, field: &Field, seconds: f64) {
        match field.name() {
            "elapsed_secs" => {
                TIMES.statements.observe(seconds);
                note(&self.name, seconds);
            }
            "answered_secs" => note(&self.name, seconds),
            "waited_secs" => TIMES.queue.observe(seconds),
            "acquired_after_secs" => {
                TIMES.waits.observe(seconds);
                note("wait for a connection", seconds);
            }
            _ => {}
        }
    }

    /// The driver emits the first words of a statement, and then the whole of it unless that is
    /// all.
    fn record_str(&mut self, field: &Field, text: &str) {
        let statement = matches!(field.name(), "summary" | "db.statement");
        if statement
            && let Some(line) = text.trim_start().lines().next()
            && STEPS.try_with(|_| ()).is_ok()
        {
            line.trim_start_matches("-- ").clone_into(&mut self.name);
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
