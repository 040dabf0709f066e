//! The effect of a provider's outage on other users: refreshes at a steady rate, first alone, then
//! while the provider takes four seconds for a response and hundreds of clients sign in, then while
//! it fails. Prints figures, and fails if the provider gets too many calls.
//!
//! `cargo bench --bench slow_provider -- --slow 10 --outage 20`; without `--bench`, which
//! `cargo bench` adds, it does nothing.

#[cfg(not(debug_assertions))]
compile_error!("it stands on the development parts: cargo bench --bench slow_provider");

#[allow(dead_code, unused_imports, reason = "the tests use the rest of it")]
#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::Parser;
use support::app::App;
use support::provider::Behaviour;
use support::token::claims;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, sleep};

/// The provider's answer takes this long.
const SLOW: Duration = Duration::from_secs(4);
/// Pause of clients whose response has no `Retry-After`: a second, plus the wait that other clients
/// had for a permit.
const PAUSE: Duration = Duration::from_millis(1_250);
/// Seconds for which clients go on after the provider's recovery.
const AFTERMATH: u64 = 10;

#[derive(Parser)]
struct Arguments {
    /// Clients that sign in
    #[arg(long, default_value_t = 500)]
    clients: usize,
    /// Refreshes a second
    #[arg(long, default_value_t = 40)]
    rate: u32,
    /// Sessions that are refreshed in turn
    #[arg(long, default_value_t = 200)]
    sessions: usize,
    /// Calls to the provider at once, `max_calls`
    #[arg(long, default_value_t = 64)]
    max_calls: usize,
    /// Seconds without clients that sign in
    #[arg(long, default_value_t = 5)]
    quiet: u64,
    /// Seconds of a slow provider
    #[arg(long, default_value_t = 30)]
    slow: u64,
    /// Seconds of an outage, the first half as 503, the second as connections that are reset
    #[arg(long, default_value_t = 60)]
    outage: u64,
    /// Most milliseconds that clients wait beyond `Retry-After`; with none, they return in step
    #[arg(long, default_value_t = 0)]
    jitter: u32,
    /// The flag that `cargo bench` passes
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    // `cargo test --benches` and `--all-targets` run this, too, without wanting a measurement.
    if std::env::args().any(|argument| argument == "--bench") {
        let arguments = Arguments::parse();
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(run(arguments));
    }
}

async fn run(arguments: Arguments) {
    let max_calls = arguments.max_calls;
    let app = App::start_with(|figment| figment.merge(("idp.max_calls", max_calls))).await;
    let app = Arc::new(app);
    let sessions = open_sessions(&app, arguments.sessions).await;
    println!(
        "{} sessions, {} refreshes a second",
        arguments.sessions, arguments.rate
    );

    let quiet = refresh_for(&app, &sessions, arguments.rate, arguments.quiet).await;
    println!("quiet    {quiet}");

    // The cost of the requests alone, on this machine and in this build: as many as are rejected
    // below, but none of them concerns the provider.
    let control = Clients::start(
        &app,
        arguments.clients.saturating_sub(max_calls),
        "nobody",
        arguments.jitter,
    );
    let busy = refresh_for(&app, &sessions, arguments.rate, arguments.quiet).await;
    println!("busy     {busy}");
    println!(
        "         p99 is {:.2} times that of the quiet phase",
        busy.ratio(&quiet)
    );
    println!("         requests {:?}", control.outcomes());
    control.stop().await;

    app.provider.behave(Behaviour::Usual.delayed(SLOW));
    let clients = Clients::start(&app, arguments.clients, "idp", arguments.jitter);
    let slow = refresh_for(&app, &sessions, arguments.rate, arguments.slow).await;
    println!("slow     {slow}");
    println!(
        "         p99 is {:.2} times that of the quiet phase, {:.2} times that of the busy one",
        slow.ratio(&quiet),
        slow.ratio(&busy)
    );
    println!("         sign-ins {:?}", clients.outcomes());
    println!(
        "         calls in flight at most {} of {max_calls}",
        app.provider.in_flight_max()
    );
    app.provider.behave(Behaviour::Usual);
    println!(
        "         first good sign-in {:.2} s after the recovery",
        first_good(&app).await.as_secs_f64()
    );
    clients.stop().await;

    let before = app.provider.counts();
    let clients = Clients::start(&app, arguments.clients, "idp", arguments.jitter);
    let half = arguments.outage.div_ceil(2);
    app.provider.behave(Behaviour::status(503));
    let first = refresh_for(&app, &sessions, arguments.rate, half).await;
    let amid = app.provider.counts();
    app.provider.behave(Behaviour::RESET);
    let second = refresh_for(&app, &sessions, arguments.rate, arguments.outage - half).await;
    let after = app.provider.counts();
    println!(
        "503      {first}; {:.2} times the quiet p99",
        first.ratio(&quiet)
    );
    println!("         calls {} in {half} s", amid.calls - before.calls);
    println!(
        "reset    {second}; {:.2} times the quiet p99",
        second.ratio(&quiet)
    );
    println!(
        "         calls {} in {} s",
        after.calls - amid.calls,
        arguments.outage - half
    );
    println!("         sign-ins {:?}", clients.outcomes());

    app.provider.behave(Behaviour::Usual);
    let recovered = tokio::spawn({
        let app = Arc::clone(&app);
        async move { first_good(&app).await }
    });
    let aftermath = refresh_for(&app, &sessions, arguments.rate, AFTERMATH).await;
    let calls = app.provider.calls() - after.calls;
    println!(
        "recovery {aftermath}; {:.2} times the quiet p99",
        aftermath.ratio(&quiet)
    );
    let good = recovered.await.unwrap();
    println!(
        "         first good sign-in {:.2} s after the recovery",
        good.as_secs_f64()
    );
    println!(
        "         calls {calls} in {AFTERMATH} s, sign-ins {:?}",
        clients.outcomes()
    );
    clients.stop().await;

    let most = app.provider.in_flight_max();
    println!("calls in flight at most {most} of {max_calls}, all the while");
    assert!(
        most <= max_calls,
        "the provider was asked more at once than `max_calls` allows"
    );
}

/// Refresh tokens, each of its own session.
struct Sessions {
    tokens: Mutex<VecDeque<String>>,
    free: Semaphore,
}

async fn open_sessions(app: &App, number: usize) -> Arc<Sessions> {
    let mut tokens = VecDeque::new();
    for session in 0..number {
        let name = format!("session-{session}");
        let answer = app
            .sign_in(&claims(&name, &format!("{name}@example.com")))
            .await;
        assert!(answer.status.is_success(), "{}", answer.text);
        tokens.push_back(answer.refresh_token());
    }
    Arc::new(Sessions {
        tokens: Mutex::new(tokens),
        free: Semaphore::new(number),
    })
}

/// Refreshes, their durations, and the program's use of the processor meanwhile.
struct Phase {
    took: Vec<Duration>,
    /// Failed refreshes by their error; `took` includes them. An overloaded machine fails some, in
    /// the busy phase, too.
    failed: BTreeMap<String, usize>,
    cores: Option<f64>,
}

impl Phase {
    fn percentile(&self, percent: usize) -> Duration {
        self.took[(self.took.len() * percent).div_ceil(100).max(1) - 1]
    }

    fn ratio(&self, other: &Self) -> f64 {
        self.percentile(99).as_secs_f64() / other.percentile(99).as_secs_f64()
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let milliseconds = |percent| self.percentile(percent).as_secs_f64() * 1_000.0;
        let p50 = milliseconds(50);
        let p99 = milliseconds(99);
        let max = milliseconds(100);
        let number = self.took.len();
        let failed = &self.failed;
        write!(
            f,
            "{number} refreshes, failed {failed:?}: p50 {p50:.1} ms, p99 {p99:.1} ms, max {max:.1} ms"
        )?;
        self.cores.map_or(Ok(()), |cores| {
            write!(
                f,
                "; {cores:.2} cores busy with service, clients and provider"
            )
        })
    }
}

/// Refreshes at a steady rate. A refresh's duration counts from the time when it was due.
async fn refresh_for(app: &Arc<App>, sessions: &Arc<Sessions>, rate: u32, seconds: u64) -> Phase {
    let started = Instant::now();
    let used = processor_time();
    let mut ticks = interval(Duration::from_secs(1) / rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut refreshes = JoinSet::new();
    for _ in 0..u64::from(rate) * seconds.max(1) {
        let due = ticks.tick().await.into_std();
        let app = Arc::clone(app);
        let sessions = Arc::clone(sessions);
        refreshes.spawn(async move {
            // A session has one refresh at a time, as with a real client.
            let _free = sessions.free.acquire().await.expect("it is never closed");
            let token = sessions
                .tokens
                .lock()
                .unwrap()
                .pop_front()
                .expect("one for each place");
            let answer = app.refresh(&token).await;
            let took = due.elapsed();
            let good = answer.status.is_success();
            let token = if good { answer.refresh_token() } else { token };
            sessions.tokens.lock().unwrap().push_back(token);
            (took, answer.error())
        });
    }
    let all = refreshes.join_all().await;
    let mut failed = BTreeMap::new();
    for (_, error) in all.iter().filter(|(_, error)| !error.is_empty()) {
        *failed.entry(error.clone()).or_default() += 1;
    }
    let mut took: Vec<_> = all.into_iter().map(|(took, _)| took).collect();
    took.sort_unstable();
    let cores = used
        .zip(processor_time())
        .map(|(before, after)| (after - before) / started.elapsed().as_secs_f64());
    Phase {
        took,
        failed,
        cores,
    }
}

/// Clients that sign in again and again, each time with a new token, and that obey `Retry-After`.
struct Clients {
    outcomes: Arc<Mutex<BTreeMap<String, usize>>>,
    leave: Arc<AtomicBool>,
    all: Vec<JoinHandle<()>>,
}

impl Clients {
    /// Starts the clients, spread over the time of a pause.
    fn start(app: &Arc<App>, number: usize, provider: &'static str, jitter: u32) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let outcomes = Arc::new(Mutex::new(BTreeMap::new()));
        let leave = Arc::new(AtomicBool::new(false));
        let client = |place: usize| {
            let app = Arc::clone(app);
            let outcomes = Arc::clone(&outcomes);
            let leave = Arc::clone(&leave);
            let name = format!("client-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
            let first = PAUSE.saturating_mul(u32::try_from(place).unwrap_or(0))
                / u32::try_from(number).unwrap_or(1);
            tokio::spawn(async move {
                sleep(first).await;
                while !leave.load(Ordering::Relaxed) {
                    let answer = app
                        .sign_in_at(provider, &claims(&name, &format!("{name}@example.com")))
                        .await;
                    let outcome = format!(
                        "{} {}{}",
                        answer.status.as_u16(),
                        answer.outcome(),
                        answer.error()
                    );
                    *outcomes.lock().unwrap().entry(outcome).or_default() += 1;
                    let later = answer
                        .header("retry-after")
                        .and_then(|seconds| seconds.parse().ok());
                    // The clock's low digits are random enough.
                    let jitter = vestibule::clock::subsecond_nanos() / 1_000
                        % jitter.saturating_mul(1_000).max(1);
                    sleep(
                        later.map_or(PAUSE, Duration::from_secs)
                            + Duration::from_micros(jitter.into()),
                    )
                    .await;
                }
            })
        };
        let all = (0..number).map(client).collect();
        Self {
            outcomes,
            leave,
            all,
        }
    }

    fn outcomes(&self) -> BTreeMap<String, usize> {
        self.outcomes.lock().unwrap().clone()
    }

    async fn stop(self) {
        self.leave.store(true, Ordering::Relaxed);
        for client in self.all {
            client.await.expect("no panic");
        }
    }
}

/// Signs a user in again and again until it succeeds, and returns the time that this took.
async fn first_good(app: &App) -> Duration {
    let started = Instant::now();
    while !app
        .sign_in(&claims("prober", "prober@example.com"))
        .await
        .status
        .is_success()
    {
        sleep(Duration::from_millis(50)).await;
    }
    started.elapsed()
}

/// Seconds of processor time that this process has used, where the system reports it (Linux:
/// proc(5)).
fn processor_time() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks: f64 = fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
}
