//! Imports users from a file: one thread reads, and several connections write at the same time.

mod batch;
pub mod command;
mod csv;
mod dealer;
mod jsonl;
pub mod row;
pub mod write;

use std::io::{self, BufRead, BufReader, Cursor, Read};

use sqlx::PgPool;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use uuid::Uuid;

use self::batch::{Done, Import};
use self::csv::Csv;
use self::dealer::{BATCH, Dealer, Job};
use self::jsonl::Json;
use self::row::{Person, Refused, Rules};
use crate::app::{self, database};
use crate::clock;
use crate::config::Maintenance;
use crate::store;

/// The number of connections that write. A row's e-mail address selects its writer, so that rows with the same
/// address are written in their order.
const WRITERS: usize = 2;
/// The number of batches that are read ahead for each writer.
const AHEAD: usize = 2;
/// The longest row, in bytes.
const LONGEST: usize = 1 << 20;
/// The size of the read buffer, in bytes.
const BLOCK: usize = 1 << 18;
/// The actor in the audit log.
const ACTOR: &str = "the command line";

/// The reason why an import stops. The rows reported before stay imported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("the file cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The list of refused rows cannot be written.
    #[error("the refused rows cannot be written down: {0}")]
    Tell(#[source] io::Error),
    /// The header is missing or invalid.
    #[error("the first line has to name the columns: {0}; see `vestibule import --help`")]
    Header(String),
    /// The database cannot be used.
    #[error(transparent)]
    Database(#[from] app::Error),
    /// The database failed during the import.
    #[error("{0}; what was imported until now stays, and the same command goes on from there")]
    Store(#[from] store::Error),
    /// A task panicked, which is a bug.
    #[error("a part of the import stopped; what was imported until now stays")]
    Stopped,
}

impl Error {
    fn header(why: &str) -> Self {
        Self::Header(why.to_owned())
    }
}

/// The format of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// RFC 4180, with a header.
    Csv,
    /// One JSON object per line.
    JsonLines,
}

/// A report during the import.
#[derive(Debug)]
pub enum News {
    /// Columns or members that are unknown and ignored.
    Ignored(Vec<String>),
    /// A row that was not imported.
    Refused {
        /// The line on which the row begins, counted from 1.
        line: u64,
        /// The reason.
        why: Refused,
    },
    /// Rows that were written or already existed.
    Done {
        /// The number of rows.
        rows: u64,
        /// The number of bytes of the file up to there.
        position: u64,
    },
}

/// The result of an import.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Rows that were read.
    pub read: u64,
    /// Rows that were imported.
    pub imported: u64,
    /// Users that were created.
    pub users: u64,
    /// Identities that were created.
    pub identities: u64,
    /// Rows that were already imported.
    pub already: u64,
    /// Rows that were refused.
    pub refused: u64,
}

/// A row of a file.
struct Row {
    line: u64,
    person: Result<Person, Refused>,
    /// The number of bytes up to its end.
    position: u64,
}

/// The rows of a file in their order.
trait Rows {
    fn next(&mut self) -> io::Result<Option<Row>>;

    /// Returns the unknown columns or members, each once.
    fn ignored(&mut self) -> Vec<String>;
}

/// A message from the reader or a writer.
enum Heard {
    Ignored(Vec<String>),
    Refused(u64, Refused),
    Done(Done, u64),
}

/// Imports a file.
///
/// # Errors
/// See [`Error`]. A refused row is not an error.
pub async fn import(
    settings: &Maintenance,
    input: impl Read + Send + 'static,
    format: Format,
    mut tell: impl FnMut(News) -> io::Result<()>,
) -> Result<Summary, Error> {
    app::migrate(&settings.figment).await?;
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
        && let Err(error) = write::analyze(&pool).await
    {
        // All rows are imported all the same, and autovacuum will analyze the tables later.
        tracing::warn!(%error, "the planner does not know of the new users yet; run ANALYZE users, identities");
    }
    pool.close().await;
    Ok(summary)
}

impl Summary {
    /// Adds a message to the totals and returns the reports for the caller.
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

/// Reads to the end of the file, or until the writers have stopped. Returns the number of rows.
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

/// Removes the byte order mark that some programs write at the beginning.
fn without_mark(mut input: impl Read) -> io::Result<impl BufRead> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    let mut first = Vec::new();
    input.by_ref().take(MARK.len() as u64).read_to_end(&mut first)?;
    if first == MARK {
        first.clear();
    }
    Ok(BufReader::with_capacity(BLOCK, Cursor::new(first).chain(input)))
}

/// Reads all rows and passes them to the writers. Returns the number of rows.
fn deal(rows: &mut impl Rows, queues: &[Sender<Job>], heard: &Sender<Heard>) -> Result<u64, Error> {
    let mut dealer = Dealer::new(queues);
    let mut read = 0;
    loop {
        let row = rows.next()?;
        let ignored = rows.ignored();
        // If the receiver is gone, the import has failed elsewhere and reports that error.
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

/// Writes batches until the queue is closed.
async fn write(
    pool: PgPool,
    event: Uuid,
    mut jobs: Receiver<Job>,
    heard: Sender<Heard>,
) -> Result<(), store::Error> {
    let mut import = Import::new(&pool, event, ACTOR);
    let mut reached = 0;
    while let Some(job) = jobs.recv().await {
        // At most one batch of deferred rows may stay for the next one. `Finish` leaves none.
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
        // The receiver may be gone, which does not matter here.
        let _ = say.map(|say| say.send(()));
    }
    Ok(())
}
