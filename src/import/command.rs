//! `vestibule import`

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, ValueEnum};

use tokio::sync::mpsc::channel;

use super::batch::{Error, Summary};
use super::row::{RowError, Rules};
use super::{Format, Writer, read};
use crate::clock;
use crate::telemetry::progress::Progress;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const AHEAD: usize = 2;
/// The exit code if rows were refused.
const REFUSED: u8 = 3;

pub const ABOUT: &str = "Import users of another system from CSV or JSON lines

The columns of the CSV header, or the members of each JSON object. A row needs an `email` or an identity (`provider`
and `subject`). All others may be missing or empty:

  email           an e-mail address without a name
  email_verified  true or false (default)
  name, picture   for display; a picture is an https URL
  created_at      such as 2024-05-31T12:00:00Z, 2024-05-31 12:00:00+00 (UTC without a zone), Fri, 31 May 2024 12:00:00
                  GMT, or milliseconds or seconds since 1970; now by default
  id              the user's UUID in other services; a new one by default
  disabled        true or false (default)
  phone           not kept: a user with a phone number alone is counted and left out
  provider        the name of a configured provider
  subject         the user's `sub` at the provider
  new_subject     the `sub` that an identity of an existing user has now; with `provider` and `subject` alone
  identities      JSON lines only: [{\"provider\": …, \"subject\": …, \"email\": …}, …]

Case, blanks, hyphens, underscores and commas in these names do not count. A CSV file with an unknown column is refused,
and so is a JSON object with an unknown member, unless `--ignore` names it. CSV is UTF-8, separated by commas,
semicolons or tabs, or by what a first line such as `sep=|` names. `\\N` and `NULL` in it are empty values.

An identity of a provider that is not configured is left out and counted by the provider's name. Its user is imported
if there is an address or another identity, and otherwise left out and counted. Once the provider is configured, the
same file adds the identity to users who have not signed in yet, by their `id` or verified address.

In CSV, a user with several identities has several rows with the same `id` or the same verified address. A user has at
most 20 identities. Only set `email_verified` if the old system verified the address: the owner of a verified address
is linked to the imported user at the first sign-in. An unverified address belongs to whoever proves it: a user without
an identity is linked to them, and one with an identity loses only the address.

Existing users are not changed. A user who has signed in gets further identities only from a row without an `id` whose
e-mail address both sides have verified, or by `new_subject`: each is an event and a webhook message. The same file can
be imported again, for example after an interruption: existing rows are skipped, and rows of users who were deleted
here are refused, by `id` as long as the event of the deletion is kept, by identity for 25 hours. A row is imported
completely or not at all.

Invalid rows are written to FILE.refused.csv, in order and with line number and reason; all other rows are imported.
Blank lines are skipped. The schema is migrated first. The command reads the settings of the service, which may be
running.";

pub const HELP: &str = "Examples:
  vestibule import users.csv
  vestibule import users.csv --ignore shoe_size,newsletter
  zcat users.jsonl.gz | vestibule import - --format jsonl --refused refused.csv

Exit codes: 0 all rows were imported or left out as described, 1 failed (one line states the reason; imported rows
stay), 2 wrong arguments, 3 some rows were refused and all others imported.";

#[derive(Args)]
pub struct Import {
    /// The file, or `-` for standard input
    file: PathBuf,
    /// Format of the file; by default from its extension (`.csv`, `.jsonl`, `.ndjson`)
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// File for the list of refused rows; by default FILE.refused.csv, or standard error for
    /// standard input
    #[arg(long, value_name = "PATH")]
    refused: Option<PathBuf>,
    /// Columns or members to ignore
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    ignore: Vec<String>,
}

pub struct OpenImport {
    input: Box<dyn Read + Send>,
    length: Option<u64>,
    format: Format,
    refused: RefusedRows,
    ignore: Vec<String>,
}

impl Import {
    pub fn open(self) -> Result<OpenImport> {
        let Self {
            file,
            format,
            refused,
            ignore,
        } = self;
        let Some(format) =
            format.or_else(|| Format::from_str(file.extension()?.to_str()?, true).ok())
        else {
            let unclear = "the format is not clear from the file name; add `--format csv` or `--format jsonl`\n";
            clap::Error::raw(ErrorKind::MissingRequiredArgument, unclear).exit();
        };
        if file.as_os_str() == "-" {
            let refused = RefusedRows::new(refused)?;
            return Ok(OpenImport {
                input: Box::new(io::stdin()),
                length: None,
                format,
                refused,
                ignore,
            });
        }
        let input = File::open(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let about = input.metadata()?;
        let length = about.is_file().then_some(about.len());
        let refused = RefusedRows::new(Some(refused.unwrap_or_else(|| beside(&file))))?;
        Ok(OpenImport {
            input: Box::new(input),
            length,
            format,
            refused,
            ignore,
        })
    }
}

impl OpenImport {
    /// Imports the file for sign-ins at these providers, and prints the result.
    pub async fn run(self, writer: Writer, providers: Vec<String>) -> Result<ExitCode> {
        let Self {
            input,
            length,
            format,
            mut refused,
            ignore,
        } = self;
        let rules = Rules::new(providers, &ignore, clock::now());
        let (sender, mut batches) = channel(AHEAD);
        let reader = tokio::task::spawn_blocking(move || read(input, format, rules, &sender));
        let mut progress = Progress::new("rows", length);
        let mut summary = Summary::default();
        let mut reached = 0;
        while let Some(batch) = batches.recv().await {
            let rows = batch.len() as u64;
            summary.left_out.add(&batch.left_out);
            let mut errors = batch.refused;
            errors.extend(
                writer
                    .write(batch.rows, &mut summary)
                    .await
                    .map_err(Error::Store)?,
            );
            errors.sort_unstable_by_key(|(line, _)| *line);
            for (line, error) in &errors {
                refused
                    .add(*line, error, &progress)
                    .map_err(Error::Report)?;
            }
            summary.read += rows;
            summary.refused += errors.len() as u64;
            progress.add(rows, batch.position - reached);
            reached = batch.position;
        }
        reader.await.map_err(|_| Error::Stopped)??;
        writer.finish(&summary).await;
        let took = progress.finish();
        print(&summary, took.as_secs_f64(), refused.finish()?.as_deref());
        Ok(if summary.refused > 0 {
            ExitCode::from(REFUSED)
        } else {
            ExitCode::SUCCESS
        })
    }
}

/// Returns `users.csv.refused.csv` for `users.csv`.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".refused.csv");
    name.into()
}

fn print(summary: &Summary, seconds: f64, listed: Option<&Path>) {
    let Summary {
        read,
        users,
        identities,
        linked,
        already,
        refused,
        left_out,
    } = summary;
    #[expect(clippy::cast_precision_loss, reason = "no file has that many rows")]
    let rate = *read as f64 / seconds.max(0.001);
    say!("{read} rows read in {seconds:.1} s: {rate:.0} rows/s");
    say!(
        "{} imported: {users} users, {identities} identities",
        users + linked
    );
    say!("{already} already existed");
    if left_out.users > 0 {
        say!(
            "{} users left out: a phone number alone, or identities of providers that are not configured",
            left_out.users
        );
    }
    if !left_out.identities.is_empty() {
        let count: u64 = left_out.identities.values().sum();
        let names: Vec<_> = left_out
            .identities
            .iter()
            .map(|(name, count)| format!("`{name}` ({count})"))
            .collect();
        say!(
            "{count} identities left out: {} (no such provider is configured)",
            names.join(", ")
        );
    }
    match listed {
        Some(listed) => say!("{refused} refused: {}", listed.display()),
        None => say!("{refused} refused"),
    }
}

/// The list of refused rows. The file is created with the first row; the list of an earlier import
/// is deleted.
struct RefusedRows {
    path: Option<PathBuf>,
    file: Option<csv::Writer<File>>,
}

impl RefusedRows {
    fn new(path: Option<PathBuf>) -> io::Result<Self> {
        if let Some(path) = &path
            && path.symlink_metadata().is_ok_and(|it| it.is_file())
        {
            fs::remove_file(path)?;
        }
        Ok(Self { path, file: None })
    }

    fn add(&mut self, line: u64, error: &RowError, progress: &Progress) -> io::Result<()> {
        if let (Some(path), None) = (&self.path, &self.file) {
            let mut file = csv::Writer::from_path(path)?;
            file.write_record(["line", "reason"])?;
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_record([line.to_string(), error.to_string()])?,
            None => progress.say(&format!("line {line}: {error}")),
        }
        Ok(())
    }

    /// Returns the path of the list, if there are refused rows.
    fn finish(self) -> io::Result<Option<PathBuf>> {
        let Some(mut file) = self.file else {
            return Ok(None);
        };
        file.flush()?;
        Ok(self.path)
    }
}
