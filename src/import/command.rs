//! `vestibule import`

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, ValueEnum};

use super::{Format, News, Summary, import};
use crate::cli::progress::Progress;
use crate::cli::{Arguments, Result, block_on};
use crate::config::{self, Maintenance};

/// The exit code if rows were refused.
const REFUSED: u8 = 3;
/// The number of ignored columns that are shown, and of characters of each.
const SHOWN: usize = 100;

pub(crate) const ABOUT: &str = "Bring in users who existed elsewhere, from CSV or JSON lines

Columns of CSV, named by its first line, or members of each line's object. A row needs an `email` or an identity
(`provider` and `subject`); all others may be missing or empty, and what has another name is ignored:

  email           one bare address
  email_verified  true or false (default)
  name, picture   as they are shown; a picture is an https address
  created_at      such as 2024-05-31T12:00:00Z; now by default
  id              a UUID that others know the user by; a new one by default
  disabled        true or false (default)
  provider        the name of a configured provider
  subject         the `sub` that it gives this person
  identities      JSON lines only: [{\"provider\": …, \"subject\": …, \"email\": …, \"email_verified\": …}, …]

In CSV, somebody with several identities has several rows, with the same `id` or the same verified address. A verified
address is taken for proved: its owner is linked to the imported user at the first sign-in. One that is not verified is
anybody's: when its owner arrives, what came with it is removed.

Nobody who is there already is changed, and nothing is added to anybody who has signed in. So the same file can be
imported again: rows that are there are counted as such, about twice as fast as new ones. That is also how to go
on after an import that was interrupted; each row is wholly there or not at all.

A row that is not sound is not imported, and does not keep the others from it: its line and the reason are written
to FILE.refused.csv, in about their order. Blank lines are no rows. The schema is brought up to date first. The settings
are those of the service, and it may be running meanwhile.";

pub(crate) const HELP: &str = "Examples:
  vestibule import users.csv
  zcat users.jsonl.gz | vestibule import - --format jsonl --refused refused.csv

Exit codes: 0 every row is there, 1 failed (one line says why; what was imported stays), 2 wrong arguments,
3 some rows were refused, and all others are there.";

#[derive(Args)]
pub(crate) struct Import {
    /// The file, or `-` for standard input
    file: PathBuf,
    /// Format of the file; by default that of its extension (`.csv`, `.jsonl`, `.ndjson`)
    #[arg(long, value_enum)]
    format: Option<FormatName>,
    /// File for the list of refused rows; by default FILE.refused.csv, or standard error for standard input
    #[arg(long, value_name = "PATH")]
    refused: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum FormatName {
    Csv,
    Jsonl,
}

impl FormatName {
    fn of(file: &Path) -> Option<Self> {
        let extension = file.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "csv" => Some(Self::Csv),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            _ => None,
        }
    }
}

pub(crate) fn run(arguments: Import) -> Result<ExitCode> {
    let Import { file, format, refused } = arguments;
    let Some(format) = format.or_else(|| FormatName::of(&file)) else {
        let unclear = "the name does not say what it is; add `--format csv` or `--format jsonl`";
        Arguments::command().error(ErrorKind::MissingRequiredArgument, unclear).exit();
    };
    let format = match format {
        FormatName::Csv => Format::Csv,
        FormatName::Jsonl => Format::JsonLines,
    };
    let standard_input = file.as_os_str() == "-";
    let (input, length): (Box<dyn Read + Send>, _) = if standard_input {
        (Box::new(io::stdin()), None)
    } else {
        let opened = File::open(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let about = opened.metadata()?;
        let length = about.is_file().then_some(about.len());
        (Box::new(opened), length)
    };
    let listed = refused.or_else(|| (!standard_input).then(|| beside(&file)));
    let mut list = List::new(listed)?;
    let figment = config::figment();
    // In development, this is the database of the running server, if there is one.
    #[cfg(all(feature = "dev", debug_assertions))]
    let (figment, _development) = crate::dev::prepare_if_development(figment)?;
    let settings = Maintenance::read(figment)?;
    block_on(2, async move {
        let mut progress = Progress::new("rows", length);
        let mut reached = 0;
        let summary = import(&settings, input, format, |news| {
            match news {
                News::Ignored(names) => progress.say(&ignored(&names)),
                News::Refused { line, why } => list.add(line, &why.to_string(), &progress)?,
                News::Done { rows, position } => {
                    progress.add(rows, position.saturating_sub(reached));
                    reached = reached.max(position);
                }
            }
            Ok(())
        })
        .await?;
        let took = progress.finish();
        let listed = list.finish()?;
        print(&summary, took.as_secs_f64(), listed.as_deref());
        Ok(if summary.refused > 0 { ExitCode::from(REFUSED) } else { ExitCode::SUCCESS })
    })
}

/// Returns `users.csv.refused.csv` for `users.csv`.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".refused.csv");
    name.into()
}

fn ignored(names: &[String]) -> String {
    // The names come from a file, and a terminal would obey their control characters.
    let plain = |name: &String| name.chars().filter(|c| !c.is_control()).take(SHOWN).collect::<String>();
    let names: Vec<_> = names.iter().take(SHOWN).map(|name| format!("`{}`", plain(name))).collect();
    format!("ignored, for it has no meaning here: {}", names.join(", "))
}

fn print(summary: &Summary, seconds: f64, listed: Option<&Path>) {
    let Summary { read, imported, users, identities, already, refused } = summary;
    #[expect(clippy::cast_precision_loss, reason = "no file has that many rows")]
    let rate = *read as f64 / seconds.max(0.001);
    println!("{read} rows read in {seconds:.1} s: {rate:.0} rows/s");
    println!("{imported} imported: {users} users, {identities} identities");
    println!("{already} already there");
    match listed {
        Some(listed) => println!("{refused} refused: {}", listed.display()),
        None => println!("{refused} refused"),
    }
}

/// The list of refused rows. The file is created with the first row; one of an earlier import is deleted.
struct List {
    path: Option<PathBuf>,
    file: Option<csv::Writer<File>>,
}

impl List {
    fn new(path: Option<PathBuf>) -> io::Result<Self> {
        if let Some(path) =
            path.as_deref().filter(|path| path.symlink_metadata().is_ok_and(|it| it.is_file()))
        {
            fs::remove_file(path)?;
        }
        Ok(Self { path, file: None })
    }

    fn add(&mut self, line: u64, why: &str, progress: &Progress) -> io::Result<()> {
        let Some(path) = &self.path else {
            progress.say(&format!("line {line}: {why}"));
            return Ok(());
        };
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let mut file = csv::Writer::from_path(path)?;
                file.write_record(["line", "reason"])?;
                none.insert(file)
            }
        };
        Ok(file.write_record([&line.to_string(), why])?)
    }

    /// Returns the path of the list, if there are refused rows.
    fn finish(self) -> io::Result<Option<PathBuf>> {
        let Some(mut file) = self.file else { return Ok(None) };
        file.flush()?;
        Ok(self.path)
    }
}
