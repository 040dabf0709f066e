//! `vestibule completions`

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Arguments;
use crate::out;

pub(super) const HELP: &str = after_help!(
    "Examples:
  vestibule completions bash > /etc/bash_completion.d/vestibule
  vestibule completions zsh > ~/.zfunc/_vestibule
  vestibule completions fish > ~/.config/fish/completions/vestibule.fish"
);

#[derive(Args)]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

pub(super) fn run(completions: &Completions) {
    let mut script = Vec::new();
    clap_complete::generate(
        completions.shell,
        &mut Arguments::command(),
        "vestibule",
        &mut script,
    );
    out::all(&script);
}
