//! `vestibule check`

use super::Result;
use crate::app::check::{self, Line, State};
use crate::config::{self, Config};

pub(super) const HELP: &str =
    "Each line is `ok`, `warn` or `wrong`, and says what to do. Nothing is changed, and \
no migration applied.
Each provider that is switched on is shown a token that nobody has signed, which it has to refuse.

Exit codes: 0 nothing is wrong (a `warn` is not), 1 something is, or the settings are.

Example:
  vestibule check && systemctl restart vestibule";

pub(super) fn run() -> Result {
    let figment = config::figment();
    #[cfg(all(feature = "dev", debug_assertions))]
    {
        let missing = crate::dev::stands_in_for(&figment).join(", ");
        if !missing.is_empty() {
            return Err(format!(
                "this is a development build, and there is no {missing}: `vestibule serve` fills that in for as long as \
                 it runs; there is a setup to check once it is set, or with ROCKET_PROFILE=release"
            )
            .into());
        }
    }
    let config = Config::read(figment)?;
    print(&Line { subject: "settings".into(), state: State::Ok("are sound".into()) });
    super::block_on(1, async move {
        let mut wrong = 0_usize;
        check::check(&config, |line| {
            wrong += usize::from(matches!(line.state, State::Fail { .. }));
            print(&line);
        })
        .await?;
        match wrong {
            0 => Ok(()),
            1 => Err("one thing is wrong".into()),
            several => Err(format!("{several} things are wrong").into()),
        }
    })
}

fn print(Line { subject, state }: &Line) {
    match state {
        State::Ok(well) => println!("ok     {subject}: {well}"),
        State::Warn { problem, remedy } => println!("warn   {subject}: {problem}; {remedy}"),
        State::Fail { problem, remedy } => println!("wrong  {subject}: {problem}; {remedy}"),
    }
}
