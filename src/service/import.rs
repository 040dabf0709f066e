//! Users who existed elsewhere, from a file: read on one thread, written by some connections at once.

mod csv;
mod dealer;
mod json;

use std::io::{self, BufRead, BufReader, Cursor, Read};

use sqlx::PgPool;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use uuid::Uuid;

use self::csv::Csv;
use self::dealer::{BATCH, Dealer, Job};
use self::json::Json;
use super::database;
use crate::clock;
use crate::config::Maintenance;
use crate::domain::import::{Person, Refused, Rules};
use crate::session::import::{Done, Import};
use crate::store;

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
    settings: &Maintenance,
    input: impl Read + Send + 'static,
    format: Format,
    mut tell: impl FnMut(News) -> io::Result<()>,
) -> Result<Summary, Error> {
    super::migrate(&settings.figment).await?;
    let pool = database(&settings.figment).await?;
    let rules = Rules { providers: settings.providers.clone(), now: clock::now() };
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
