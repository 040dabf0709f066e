//! Background tasks, which work for as long as the program runs. A task that panics is replaced.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;
use std::time::Duration;
use std::{io, thread};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tokio::task::{JoinHandle, JoinSet};

/// The pause before a replacement starts, so that a task that always panics does not fill the log.
const PAUSE: Duration = Duration::from_millis(50);

/// The panics by the task's name.
pub type Panics = Family<[(&'static str, &'static str); 1], Counter>;

static PANICS: LazyLock<Panics> = LazyLock::new(Panics::default);

/// Returns the counters of panics, for the metrics.
pub fn panics() -> Panics {
    PANICS.clone()
}

/// Starts a background task.
pub fn spawn<F: Future<Output = ()> + Send + 'static>(
    name: &'static str,
    task: impl Fn() -> F + Send + 'static,
) -> JoinHandle<()> {
    tokio::spawn(supervise(name, task))
}

/// Runs a background task until it returns. After each panic, `task` makes its replacement.
pub async fn supervise<F: Future<Output = ()> + Send + 'static>(
    name: &'static str,
    task: impl Fn() -> F,
) {
    begin(name);
    loop {
        // A set aborts its task when it is dropped.
        let mut running = JoinSet::new();
        running.spawn(task());
        match running.join_next().await {
            Some(Err(error)) if error.is_panic() => note(name),
            _ => return,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Starts a thread, whose work begins again after a panic.
pub fn spawn_thread(name: &'static str, work: fn()) -> io::Result<()> {
    begin(name);
    thread::Builder::new().name(name.into()).spawn(move || {
        while catch_unwind(AssertUnwindSafe(work)).is_err() {
            note(name);
            thread::sleep(PAUSE);
        }
    })?;
    Ok(())
}

/// Sets a task's counter to zero, so that Prometheus sees the first panic as an increase.
fn begin(name: &'static str) {
    drop(PANICS.get_or_create(&[("task", name)]));
}

fn note(name: &'static str) {
    PANICS.get_or_create(&[("task", name)]).inc();
    // The line of the panic itself names the place.
    tracing::error!(task = name, "a background task panicked and was replaced");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::oneshot;

    use super::*;

    fn panics_of(name: &'static str) -> u64 {
        PANICS.get_or_create(&[("task", name)]).get()
    }

    #[tokio::test]
    async fn a_task_that_panics_is_replaced_until_it_returns() {
        let begun = Arc::new(AtomicU32::new(0));
        let counted = begun.clone();
        let task = spawn("panics twice", move || {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            async move {
                tokio::task::yield_now().await;
                assert!(number >= 2, "a bug");
            }
        });
        task.await.unwrap();
        assert_eq!(
            (begun.load(Ordering::SeqCst), panics_of("panics twice")),
            (3, 2)
        );
    }

    #[tokio::test]
    async fn a_task_ends_with_its_supervisor() {
        struct Held(Option<oneshot::Sender<()>>);
        impl Drop for Held {
            fn drop(&mut self) {
                let _ = self.0.take().unwrap().send(());
            }
        }
        let (ended, end) = oneshot::channel();
        let held = std::sync::Mutex::new(Some(Held(Some(ended))));
        let (begins, begun) = oneshot::channel();
        let begins = std::sync::Mutex::new(Some(begins));
        let task = spawn("aborted", move || {
            let held = held.lock().unwrap().take();
            begins.lock().unwrap().take().unwrap().send(()).unwrap();
            async move {
                let _held = held;
                std::future::pending::<()>().await;
            }
        });
        begun.await.unwrap();
        task.abort();
        end.await.unwrap();
    }

    #[test]
    fn a_thread_that_panics_goes_on() {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        fn work() {
            assert!(RUNS.fetch_add(1, Ordering::SeqCst) >= 2, "a bug");
        }
        spawn_thread("panicking thread", work).unwrap();
        while RUNS.load(Ordering::SeqCst) < 3 {
            thread::yield_now();
        }
        assert_eq!(panics_of("panicking thread"), 2);
    }
}
