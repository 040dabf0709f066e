//! Imports users from a file of another system. One task reads and checks the rows, and another
//! writes them, batch by batch.
//!
//! Existing users are not changed, with three exceptions:
//!
//! - A user whom an import created, and who has not signed in since, gets further identities from
//!   further rows.
//! - A user who has proved the e-mail address that a row marks as verified gets them, too, as at a
//!   sign-in with it. So a row opens an account to an identity only if the file vouches for the
//!   e-mail address; an unverified address opens no account.
//! - A row with `new_subject` says that an identity of a user has another subject now.
//!
//! All but the first are events, with webhooks.

mod batch;
pub(crate) mod command;
mod csv;
mod jsonl;
mod row;
mod write;

use std::io::{self, BufReader, Read};
use std::mem;

use tokio::sync::mpsc::Sender;

use self::batch::{Batch, Error};
use self::csv::Csv;
use self::jsonl::JsonLines;
use self::row::Rules;
pub(crate) use self::write::Writer;

/// The number of rows in one transaction. A sign-in of one of these users waits for its end, a
/// fraction of a second.
const BATCH: usize = 10_000;
/// The largest batch in bytes of the file, for long rows.
const BATCH_BYTES: u64 = 16 << 20;
/// The size of the read buffer, in bytes.
const BLOCK: usize = 1 << 18;

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    Csv,
    #[value(name = "jsonl", alias = "ndjson")]
    JsonLines,
}

fn read(
    input: impl Read,
    format: Format,
    rules: Rules,
    batches: &Sender<Batch>,
) -> Result<(), Error> {
    let input = BufReader::with_capacity(BLOCK, input);
    match format {
        Format::Csv => {
            let mut csv = Csv::open(input, rules)?;
            send(batches, |batch| csv.read(batch))?;
        }
        Format::JsonLines => {
            let mut lines = JsonLines::new(input, rules);
            send(batches, |batch| lines.read(batch))?;
        }
    }
    Ok(())
}

/// Sends all rows in batches. `read` adds the next row to a batch, and returns false at the end.
fn send(
    batches: &Sender<Batch>,
    mut read: impl FnMut(&mut Batch) -> io::Result<bool>,
) -> io::Result<()> {
    let mut batch = Batch::default();
    let mut sent = 0;
    loop {
        let more = read(&mut batch)?;
        if !more || batch.len() >= BATCH || batch.position - sent >= BATCH_BYTES {
            sent = batch.position;
            let next = Batch {
                position: sent,
                ..Batch::default()
            };
            // Without a receiver, the import has failed elsewhere and reports that error.
            if batches
                .blocking_send(mem::replace(&mut batch, next))
                .is_err()
                || !more
            {
                return Ok(());
            }
        }
    }
}
