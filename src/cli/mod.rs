//! The command line, with one file per subcommand.
//!
//! Exit codes: 0 success, 1 failure (one line on standard error says why), 2 wrong arguments, 3 an
//! import refused rows.

mod api_key;
mod check;
mod completions;
#[cfg(debug_assertions)]
mod dev;
mod health;
mod serve;
mod staff;

use std::process::ExitCode;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};
use strum::VariantNames;
use time::OffsetDateTime;

use crate::admin::pages::staff::end;
use crate::config::{self, LogFormat, LogLevel, Maintenance};
use crate::database::Database;
use crate::import::{self, Writer};
use crate::keys::{self, Rotation};
use crate::{admin, app, out, telemetry, webhooks};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Sign in with an identity provider's token.
#[derive(Parser)]
#[command(
    name = "vestibule",
    version = concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("VESTIBULE_COMMIT"), ")"),
    after_help = after_help!("Examples:\n  vestibule\n  vestibule help import")
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the API (the default command)
    #[command(after_help = after_help!("Example:\n  ROCKET_PROFILE=release vestibule serve"))]
    Serve,
    /// Migrate the database's schema, and exit
    #[command(
        after_help = after_help!("Example:\n  DATABASE_URL=postgres://vestibule@db/vestibule vestibule migrate")
    )]
    Migrate {
        /// List the missing migrations, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Check the setup: database, schema, keys and providers
    #[command(after_help = check::HELP)]
    Check,
    /// Check whether the service on this machine is ready
    #[command(after_help = health::HELP)]
    Health,
    /// Import users from CSV or JSON lines
    #[command(long_about = import::command::ABOUT, after_help = import::command::HELP)]
    Import(import::command::Import),
    /// Delete expired sessions, old events and the data of deleted users (the service does so every
    /// ten minutes)
    #[command(after_help = after_help!("Example:\n  vestibule prune"))]
    Prune,
    /// List and rotate the keys that sign access tokens
    #[command(subcommand, after_help = after_help!("Example:\n  vestibule keys list"))]
    Keys(keys::command::Command),
    /// Manage access to the admin pages
    #[command(subcommand, after_help = after_help!("Example:\n  vestibule staff list"))]
    Staff(staff::Command),
    /// Manage the API keys of the product's backend
    #[command(subcommand, after_help = after_help!("Example:\n  vestibule api-key list"))]
    ApiKey(api_key::Command),
    /// Test webhooks, and send messages again that were not accepted
    #[command(subcommand, after_help = after_help!("Example:\n  vestibule webhooks list"))]
    Webhooks(webhooks::command::Command),
    /// Find, show, sign out, disable, enable and delete users while the admin pages cannot be used
    #[command(subcommand, after_help = after_help!("Example:\n  vestibule user find ada@example.com"))]
    User(admin::command::Command),
    /// Print events of the audit, newest first
    #[command(after_help = after_help!("Example:\n  vestibule audit --email ada@example.com"))]
    Audit(admin::command::Audit),
    /// Print a completion script for a shell
    #[command(after_help = completions::HELP)]
    Completions(completions::Completions),
    /// Tools for development
    #[cfg(debug_assertions)]
    #[command(subcommand, after_help = after_help!("Example:\n  vestibule dev token --email ada@example.com"))]
    Dev(dev::Command),
}

pub fn run() -> ExitCode {
    let arguments = Arguments::parse();
    let command = arguments.command.unwrap_or(Command::Serve);
    if !matches!(command, Command::Serve) {
        // The user of a command reads its output directly.
        telemetry::start(LogFormat::Text, LogLevel::Info);
    }
    let done = match command {
        Command::Serve => return serve::run(),
        Command::Migrate { dry_run } => migrate(dry_run),
        Command::Check => check::run(),
        Command::Health => health::run(),
        Command::Import(arguments) => return ended(import(arguments)),
        Command::Prune => prune(),
        Command::Keys(command) => keys(command),
        Command::Staff(command) => staff::run(command),
        Command::ApiKey(command) => api_key::run(command),
        Command::Webhooks(command) => webhooks(command),
        Command::User(command) => {
            on_database(async move |database, _| command.run(&database).await)
        }
        Command::Audit(command) => {
            on_database(async move |database, _| command.run(&database).await)
        }
        Command::Completions(completions) => {
            completions::run(&completions);
            Ok(())
        }
        #[cfg(debug_assertions)]
        Command::Dev(command) => dev::run(command),
    };
    ended(done.map(|()| ExitCode::SUCCESS))
}

fn ended(done: Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|error| {
        out::complain(format_args!("{error}"));
        ExitCode::FAILURE
    })
}

/// Runs a command with the settings, in development with the database of the running server or its
/// own.
fn with_settings<T>(command: impl FnOnce(Maintenance) -> Result<T>) -> Result<T> {
    let figment = config::figment();
    // Keys of development are not for a database that the settings name.
    #[cfg(debug_assertions)]
    let (figment, _development) = if figment.contains("databases.vestibule.url") {
        (figment, crate::dev::Development::default())
    } else {
        crate::dev::prepare_if_development(figment)?
    };
    command(Maintenance::read(figment)?)
}

fn migrate(dry_run: bool) -> Result {
    with_settings(|settings| {
        block_on(1, async move {
            let figment = &settings.figment;
            let (done, migrations) = if dry_run {
                ("is missing", app::missing_migrations(figment).await?)
            } else {
                ("is applied", app::migrate(figment).await?)
            };
            for migration in &migrations {
                say!("migration {migration} {done}");
            }
            if migrations.is_empty() {
                say!("no migration is missing");
            }
            Ok(())
        })
    })
}

fn prune() -> Result {
    on_database(async |database, settings| {
        let (pruned, incomplete) = match app::prune(&database, &settings).await {
            Ok(pruned) => (pruned, None),
            Err(incomplete) => (incomplete.pruned, Some(incomplete)),
        };
        say!(
            "{} expired sessions, {} staff sessions and {} old events deleted",
            pruned.sessions,
            pruned.staff_sessions,
            pruned.events
        );
        say!(
            "{} sessions above session.max_per_identity deleted",
            pruned.surplus_sessions
        );
        say!("{} webhook messages deleted", pruned.webhook_messages);
        say!(
            "{} ids of providers' messages deleted",
            pruned.provider_events
        );
        say!(
            "{} hashes of deleted identities deleted",
            pruned.deleted_identities
        );
        say!("{} provider tokens deleted", pruned.provider_tokens);
        say!(
            "{} events cleared of the data of deleted users",
            pruned.forgotten
        );
        incomplete.map_or(Ok(()), |incomplete| Err(incomplete.into()))
    })
}

fn import(arguments: import::command::Import) -> Result<ExitCode> {
    let import = arguments.open()?;
    with_settings(|settings| {
        block_on(1, async move {
            app::migrate(&settings.figment).await?;
            let writer = Writer::new(app::database(&settings.figment).await?);
            import.run(writer, settings.providers).await
        })
    })
}

fn keys(command: keys::command::Command) -> Result {
    on_database(async move |database, settings| {
        let rotation = Rotation::new(database, &settings.secret_key()?, settings.keys)?;
        command.run(&rotation).await
    })
}

fn webhooks(command: webhooks::command::Command) -> Result {
    with_settings(|settings| {
        let configured = settings.webhooks()?;
        block_on(
            1,
            command.run(configured, async || {
                Ok(app::database(&settings.figment).await?)
            }),
        )
    })
}

fn on_database(command: impl AsyncFnOnce(Database, Maintenance) -> Result) -> Result {
    with_settings(|settings| {
        block_on(1, async move {
            command(app::database(&settings.figment).await?, settings).await
        })
    })
}

/// Returns the parser of an argument that is one of the names of `T`.
fn one_of<T>() -> impl TypedValueParser<Value = T>
where
    T: VariantNames + FromStr<Err: std::error::Error + Send + Sync> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(T::VARIANTS).try_map(|name| name.parse())
}

fn day(text: &str) -> std::result::Result<OffsetDateTime, String> {
    end(text, None).ok_or_else(|| format!("{text} is not a day to come; write one as 2026-12-31"))
}

fn block_on<T>(workers: usize, future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers.max(1))
        .enable_all()
        .build()?
        .block_on(future)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_says_how_it_is_used_and_how_it_ends() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path}{}", command.get_name());
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(help.contains("Example"), "{path} has no example");
            assert!(
                help.contains("\nExit codes: 0 "),
                "{path} has no exit codes"
            );
            for below in command.get_subcommands() {
                check(below, &format!("{path} "));
            }
        }
        Arguments::command().debug_assert();
        check(&Arguments::command(), "");
    }
}
