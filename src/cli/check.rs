//! `vestibule check`

use super::Result;
use crate::app::check;
use crate::check_result::{CheckResult, Fault};
use crate::config::{self, Config};

pub(super) const HELP: &str =
    "Each line is `ok`, `warn` or `wrong`, with a remedy. The command changes nothing and \
applies no migration.
It sends an unsigned token to each enabled provider, which has to reject it.

Exit codes: 0 no line is `wrong`, 1 a line is `wrong` or the settings are invalid.

Example:
  vestibule check && systemctl restart vestibule";

pub(super) fn run() -> Result {
    let figment = config::figment();
    #[cfg(debug_assertions)]
    let (figment, _development) = crate::dev::prepare_if_development(figment)?;
    let config = Config::read(figment)?;
    print("settings", &CheckResult::Ok("are valid".into()));
    super::block_on(1, async move {
        let mut wrong = 0_usize;
        check::check(&config, |subject, check_result| {
            wrong += usize::from(matches!(check_result, CheckResult::Fail(_)));
            print(subject, &check_result);
        })
        .await?;
        match wrong {
            0 => Ok(()),
            1 => Err("1 check failed".into()),
            several => Err(format!("{several} checks failed").into()),
        }
    })
}

fn print(subject: &str, check_result: &CheckResult) {
    match check_result {
        CheckResult::Ok(well) => say!("ok     {subject}: {well}"),
        CheckResult::Warn(Fault { problem, remedy }) => {
            say!("warn   {subject}: {problem}; {remedy}");
        }
        CheckResult::Fail(Fault { problem, remedy }) => {
            say!("wrong  {subject}: {problem}; {remedy}");
        }
    }
}
