//! The output of commands: lines on standard output. If the reader has seen enough, such as `head`,
//! the command ends quietly, as the signal SIGPIPE would end it.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::process;

/// The exit code of a program that SIGPIPE has ended, as shells report it.
const CLOSED: i32 = 141;

macro_rules! say {
    ($($text:tt)*) => { $crate::out::line(format_args!($($text)*)) };
}

/// Builds the end of a command's help: its examples and exit codes.
macro_rules! after_help {
    ($examples:literal) => {
        concat!(
            $examples,
            "\n\nExit codes: 0 done, 1 failed (one line states the reason), 2 wrong arguments."
        )
    };
}

/// Prints a line. Ends the process if the reader has closed the pipe.
pub fn line(text: Arguments<'_>) {
    written(writeln!(io::stdout(), "{text}"));
}

/// Prints a text as it is. Ends the process if the reader has closed the pipe.
pub fn all(text: &[u8]) {
    let mut out = io::stdout().lock();
    written(out.write_all(text).and_then(|()| out.flush()));
}

fn written(result: io::Result<()>) {
    match result {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => process::exit(CLOSED),
        Err(error) => {
            complain(format_args!("the output cannot be written: {error}"));
            process::exit(1);
        }
    }
}

/// Prints the last line of a command that failed. An error is ignored.
pub fn complain(text: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "vestibule: {text}");
}
