//! `vestibule api-key …`: the keys with which the product's backend administers users.

use clap::Subcommand;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Result;
use crate::admin::staff::api_keys::store::all;
use crate::admin::staff::api_keys::{add, revoke};
use crate::admin::staff::store::Changed;
use crate::domain::{Author, KeyName, KeyRole};
use crate::out;

#[derive(Subcommand)]
pub(super) enum Command {
    /// Add an API key, and print it this one time
    #[command(
        after_help = after_help!("Examples:\n  vestibule api-key add billing --role reader\n  \
        vestibule api-key add shop --role admin --expires 2026-12-31\n  \
        vestibule api-key add shop-2 --role admin > key.txt")
    )]
    Add {
        /// Name in the audit log: lower-case letters, digits and hyphens
        name: KeyName,
        /// `reader` may read, `support` may also end sessions, `admin` may do everything
        #[arg(long, value_parser = super::one_of::<KeyRole>())]
        role: KeyRole,
        /// Let the key expire at the end of this day (UTC), for example 2026-12-31
        #[arg(long, value_name = "DATE")]
        expires: Option<String>,
    },
    /// Revoke a key at once
    #[command(after_help = after_help!("Example:\n  vestibule api-key revoke billing"))]
    Revoke {
        /// The key's name
        name: KeyName,
    },
    /// List the keys with role, creation, end and last use (UTC)
    #[command(after_help = after_help!("Example:\n  vestibule api-key list"))]
    List,
}

pub(super) fn run(command: Command) -> Result {
    super::on_database(async move |pool, _| {
        let by = Author::COMMAND_LINE;
        match command {
            Command::Add {
                name,
                role,
                expires,
            } => {
                let expires_at = expires.as_deref().map(super::day).transpose()?;
                let Ok(key) = add(&pool, &name, role, expires_at, by).await? else {
                    return Err(
                        "there is an API key with this name; revoke it first, or choose another name".into(),
                    );
                };
                out::complain(format_args!("store this key now: it is not shown again"));
                say!("{}", key.expose());
            }
            Command::Revoke { name } => {
                if revoke(&pool, &name, by).await? != Changed::Done {
                    return Err("there is no API key with this name".into());
                }
            }
            Command::List => {
                let time = |at: Option<OffsetDateTime>| at.and_then(|at| at.format(&Rfc3339).ok());
                for key in all(&pool).await? {
                    let created = time(Some(key.created_at)).unwrap_or_default();
                    let end = time(key.expires_at);
                    let used = time(key.last_used_at);
                    let end = end.unwrap_or_default();
                    let used = used.unwrap_or_default();
                    say!(
                        "{}\t{}\t{created}\t{}\t{end}\t{used}",
                        key.name,
                        key.role,
                        key.created_by
                    );
                }
            }
        }
        Ok(())
    })
}
