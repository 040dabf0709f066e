//! Arguments → telemetry → service → exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    vestibule::cli::run()
}
