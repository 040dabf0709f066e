//! `vestibule check`

use super::Result;
use crate::app::check;
use crate::config::{self, Config};
use crate::finding::{Fault, Finding};

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
    print("settings", &Finding::Ok("are valid".into()));
    super::block_on(1, async move {
        let mut wrong = 0_usize;
        check::check(&config, |subject, finding| {
            wrong += usize::from(matches!(finding, Finding::Fail(_)));
            print(subject, &finding);
        })
        .await?;
        match wrong {
            0 => Ok(()),
            1 => Err("1 check failed".into()),
            several => Err(format!("{several} checks failed").into()),
        }
    })
}

fn print(subject: &str, finding: &Finding) {
    match finding {
        Finding::Ok(well) => say!("ok     {subject}: {well}"),
        Finding::Warn(Fault { problem, remedy }) => say!("warn   {subject}: {problem}; {remedy}"),
        Finding::Fail(Fault { problem, remedy }) => say!("wrong  {subject}: {problem}; {remedy}"),
    }
}
