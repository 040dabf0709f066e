//! Users who existed elsewhere, from a file: read on one thread, written by some connections at once.

mod csv;
mod json;

use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, Cursor, Read};

use sqlx::PgPool;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use uuid::Uuid;

use self::csv::Csv;
use self::json::Json;
use super::database;
use crate::clock;
use crate::config::Config;
use crate::domain::email::Email;
use crate::domain::import::{Person, Refused, Rules};
use crate::session::import::{Done, Import};
use crate::store;

/// Rows of a transaction. Whoever signs in as one of them meanwhile waits for it: a fraction of a second.
const BATCH: usize = 10_000;
/// The same in bytes of the file, for rows that are long.
const BATCH_BYTES: u64 = 16 << 20;
/// Connections that write. Which of them a row goes to is decided by whom it is about, so that rows with one address
/// are written in their order.
const WRITERS: usize = 2;
/// Batches that are read ahead for each of them.
const AHEAD: usize = 2;
/// Longest row, in bytes.
const LONGEST: usize = 1 << 20;
/// Bytes that are read at a time.
const BLOCK: usize = 1 << 18;
/// What the audit names.
const ACTOR: &str = "the command line";

/// Why an import stops. What it has reported stays.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading it fails.
    #[error("the file cannot be read: {0}")]
    Read(#[from] io::Error),
    /// Whoever is told cannot take it.
    #[error("the refused rows cannot be written down: {0}")]
    Tell(#[source] io::Error),
    /// It says nothing of its columns.
    #[error("the first line has to name the columns: {0}; see `vestibule import --help`")]
    Header(String),
    /// The database cannot be used.
    #[error(transparent)]
    Database(#[from] super::Error),
    /// The database failed in the middle.
    #[error("{0}; what was imported until now stays, and the same command goes on from there")]
    Store(#[from] store::Error),
    /// A bug.
    #[error("a part of the import stopped; what was imported until now stays")]
    Stopped,
}

impl Error {
    fn header(why: &str) -> Self {
        Self::Header(why.to_owned())
    }
}

/// How people are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// RFC 4180, with a header.
    Csv,
    /// An object a line.
    JsonLines,
}

/// What there is to tell while it goes on.
#[derive(Debug)]
pub enum News {
    /// Columns or members that have no meaning here.
    Ignored(Vec<String>),
    /// A row that is not imported.
    Refused {
        /// The line it begins on, the first being 1.
        line: u64,
        /// Why.
        why: Refused,
    },
    /// Rows that are written, or were found there.
    Done {
        /// How many.
        rows: u64,
        /// Bytes of the file up to there.
        position: u64,
    },
}

/// What became of a file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Rows that were read.
    pub read: u64,
    /// Rows that were imported.
    pub imported: u64,
    /// Users that were created by them.
    pub users: u64,
    /// Identities that were created by them.
    pub identities: u64,
    /// Rows of which everything was there already.
    pub already: u64,
    /// Rows that were refused.
    pub refused: u64,
}

/// A row of a file.
struct Row {
    line: u64,
    person: Result<Person, Refused>,
    /// Bytes up to its end.
    position: u64,
}

/// Rows, one after the other.
trait Rows {
    fn next(&mut self) -> io::Result<Option<Row>>;

    /// Columns and members without a meaning, each once.
    fn ignored(&mut self) -> Vec<String>;
}

/// Rows on their way into the database, by their lines.
struct Batch {
    rows: Vec<(u64, Person)>,
    /// What they take in the file.
    bytes: u64,
    /// Bytes of the file up to the last of them.
    position: u64,
}

impl Batch {
    fn new() -> Self {
        Self { rows: Vec::with_capacity(BATCH), bytes: 0, position: 0 }
    }

    fn add(&mut self, line: u64, person: Person, bytes: u64, position: u64) {
        self.rows.push((line, person));
        (self.bytes, self.position) = (self.bytes + bytes, position);
    }

    const fn is_full(&self) -> bool {
        self.rows.len() >= BATCH || self.bytes >= BATCH_BYTES
    }
}

/// What a writer is asked for.
enum Job {
    Write(Batch),
    /// To leave no row waiting, and to say so.
    Finish(oneshot::Sender<()>),
}

/// What the parts tell the whole.
enum Heard {
    Ignored(Vec<String>),
    Refused(u64, Refused),
    Done(Done, u64),
}

/// Imports a file.
///
/// # Errors
/// See [`Error`]. A row that is refused is none.
pub async fn import(
    config: &Config,
    input: impl Read + Send + 'static,
    format: Format,
    mut tell: impl FnMut(News) -> io::Result<()>,
) -> Result<Summary, Error> {
    super::migrate(config).await?;
    let pool = database(config).await?;
    let rules = Rules { providers: config.providers.keys().cloned().collect(), now: clock::now() };
    let event = Uuid::now_v7();
    let (heard, mut hear) = channel(1024);
    let mut writers = JoinSet::new();
    let mut queues = Vec::new();
    for _ in 0..WRITERS {
        let (queue, jobs) = channel(AHEAD);
        queues.push(queue);
        writers.spawn(write(pool.clone(), event, jobs, heard.clone()));
    }
    let reader = tokio::task::spawn_blocking(move || read(input, format, rules, &queues, &heard));
    let mut summary = Summary::default();
    while let Some(heard) = hear.recv().await {
        for news in summary.hear(heard) {
            tell(news).map_err(Error::Tell)?;
        }
    }
    while let Some(written) = writers.join_next().await {
        written.map_err(|_| Error::Stopped)??;
    }
    summary.read = reader.await.map_err(|_| Error::Stopped)??;
    if summary.imported > 0
        && let Err(error) = store::import::analyze(&pool).await
    {
        // Everybody is there all the same, and PostgreSQL will come round to it by itself.
        tracing::warn!(%error, "the planner does not know of the new users yet; run ANALYZE users, identities");
    }
    pool.close().await;
    Ok(summary)
}

impl Summary {
    /// Adds up, and passes on.
    fn hear(&mut self, heard: Heard) -> Vec<News> {
        match heard {
            Heard::Ignored(names) => vec![News::Ignored(names)],
            Heard::Refused(line, why) => {
                self.refused += 1;
                vec![News::Refused { line, why }]
            }
            Heard::Done(done, position) => {
                self.imported += done.imported;
                self.users += done.users;
                self.identities += done.identities;
                self.already += done.already;
                self.refused += done.refused.len() as u64;
                let rows = done.imported + done.already + done.refused.len() as u64;
                let refused = done.refused.into_iter().map(|(line, why)| News::Refused { line, why });
                refused.chain([News::Done { rows, position }]).collect()
            }
        }
    }
}

/// Reads to the end, or until nobody writes any more; answers how many rows there were.
fn read(
    input: impl Read,
    format: Format,
    rules: Rules,
    queues: &[Sender<Job>],
    heard: &Sender<Heard>,
) -> Result<u64, Error> {
    let input = without_mark(input)?;
    match format {
        Format::Csv => deal(&mut Csv::open(input, rules)?, queues, heard),
        Format::JsonLines => deal(&mut Json::new(input, rules), queues, heard),
    }
}

/// A text without the mark that some programs put before it (Unicode, "byte order mark").
fn without_mark(mut input: impl Read) -> io::Result<impl BufRead> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    let mut first = Vec::new();
    input.by_ref().take(MARK.len() as u64).read_to_end(&mut first)?;
    if first == MARK {
        first.clear();
    }
    Ok(BufReader::with_capacity(BLOCK, Cursor::new(first).chain(input)))
}

/// Deals rows out to the writers, in batches of a writer's own rows.
///
/// Rows without an address may be about somebody whom another writer has: they wait until all rows before them are
/// written, and those behind them wait for them.
struct Dealer<'a> {
    queues: &'a [Sender<Job>],
    hasher: RandomState,
    with_address: Vec<Batch>,
    without: Vec<Batch>,
    position: u64,
}

/// The writers have stopped, and say why.
struct Gone;

impl<'a> Dealer<'a> {
    fn new(queues: &'a [Sender<Job>]) -> Self {
        let batches = || queues.iter().map(|_| Batch::new()).collect();
        Self { queues, hasher: RandomState::new(), with_address: batches(), without: batches(), position: 0 }
    }

    fn add(&mut self, line: u64, person: Person, position: u64) -> Result<(), Gone> {
        let bytes = position.saturating_sub(self.position);
        self.position = position;
        let whose = match (&person.email, person.id, person.identities.first()) {
            (Some(email), ..) => self.hasher.hash_one(Email::folded(email)),
            (None, Some(id), _) => self.hasher.hash_one(id),
            (None, None, identity) => self.hasher.hash_one(identity.map(|it| (&it.provider, &it.subject))),
        };
        let number = usize::try_from(whose % self.queues.len() as u64).unwrap_or_default();
        if person.email.is_none() {
            self.without[number].add(line, person, bytes, position);
            return if self.without[number].is_full() { self.flush() } else { Ok(()) };
        }
        let batch = &mut self.with_address[number];
        batch.add(line, person, bytes, position);
        if batch.is_full() {
            let batch = std::mem::replace(batch, Batch::new());
            self.queues[number].blocking_send(Job::Write(batch)).map_err(|_| Gone)?;
        }
        Ok(())
    }

    /// Has everything written, and waits for it.
    fn flush(&mut self) -> Result<(), Gone> {
        for batches in [&mut self.with_address, &mut self.without] {
            for (batch, queue) in batches.iter_mut().zip(self.queues) {
                let batch = std::mem::replace(batch, Batch::new());
                queue.blocking_send(Job::Write(batch)).map_err(|_| Gone)?;
            }
            let written = self.queues.iter().map(|queue| {
                let (say, hear) = oneshot::channel();
                queue.blocking_send(Job::Finish(say)).map(|()| hear)
            });
            for written in written.collect::<Vec<_>>() {
                written.map_err(|_| Gone)?.blocking_recv().map_err(|_| Gone)?;
            }
        }
        Ok(())
    }
}

/// Reads all rows; answers how many there were.
fn deal(rows: &mut impl Rows, queues: &[Sender<Job>], heard: &Sender<Heard>) -> Result<u64, Error> {
    let mut dealer = Dealer::new(queues);
    let mut read = 0;
    loop {
        let row = rows.next()?;
        let ignored = rows.ignored();
        // Who does not listen any more has failed, and says why.
        if !ignored.is_empty() && heard.blocking_send(Heard::Ignored(ignored)).is_err() {
            break;
        }
        let Some(Row { line, person, position }) = row else {
            let _ = dealer.flush();
            break;
        };
        read += 1;
        let gone = match person {
            Ok(person) => dealer.add(line, person, position).is_err(),
            Err(why) => heard.blocking_send(Heard::Refused(line, why)).is_err(),
        };
        if gone {
            break;
        }
    }
    Ok(read)
}

/// Writes what it is given, until there is no more.
async fn write(
    pool: PgPool,
    event: Uuid,
    mut jobs: Receiver<Job>,
    heard: Sender<Heard>,
) -> Result<(), store::Error> {
    let mut import = Import::new(&pool, event, ACTOR);
    let mut reached = 0;
    while let Some(job) = jobs.recv().await {
        // A few rows may wait for more, and no more than there is room for.
        let (rows, most, say) = match job {
            Job::Write(batch) => {
                reached = batch.position.max(reached);
                (batch.rows, BATCH, None)
            }
            Job::Finish(say) => (Vec::new(), 0, Some(say)),
        };
        if !rows.is_empty() {
            let _ = heard.send(Heard::Done(import.bring_in(rows).await?, reached)).await;
        }
        while import.waiting() > most {
            let _ = heard.send(Heard::Done(import.bring_in(Vec::new()).await?, reached)).await;
        }
        // Nobody waits for it who has gone.
        let _ = say.map(|say| say.send(()));
    }
    Ok(())
}
