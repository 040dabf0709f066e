//! `vestibule staff …`

use clap::{Subcommand, ValueEnum};

use super::Result;
use crate::config::{self, Maintenance};
use crate::domain::email::Email;
use crate::domain::staff::Role;
use crate::service::{self, staff::Changed};

const LAST_ADMIN: &str = "nobody else is an admin; make another one first";

#[derive(Subcommand)]
pub(super) enum Command {
    /// Let someone use the admin pages, or change what they may do
    #[command(after_help = after_help!("Example:\n  vestibule staff add grace@example.com --role support"))]
    Add {
        /// Address that the identity provider vouches for when they sign in
        email: String,
        /// `support` reads and ends sessions; `admin` may do everything
        #[arg(long, value_enum, default_value = "support")]
        role: RoleName,
    },
    /// Take it away again, and end their sessions at once
    #[command(after_help = after_help!("Example:\n  vestibule staff remove grace@example.com"))]
    Remove {
        /// The member's address
        email: String,
    },
    /// Let the next sign-in decide which account at the identity provider is theirs, as the first one did
    #[command(after_help = after_help!("Example:\n  vestibule staff reset grace@example.com"))]
    Reset {
        /// The member's address
        email: String,
    },
    /// Show who may use the admin pages, and as whom
    #[command(after_help = after_help!("Example:\n  vestibule staff list"))]
    List,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum RoleName {
    Support,
    Admin,
}

pub(super) fn run(command: Command) -> Result {
    let settings = Maintenance::read(config::figment())?;
    super::block_on(1, async move {
        match command {
            Command::Add { email, role } => {
                let role = match role {
                    RoleName::Support => Role::Support,
                    RoleName::Admin => Role::Admin,
                };
                if service::staff::add(&settings.figment, &address(&email)?, role).await?
                    == Changed::LastAdmin
                {
                    return Err(LAST_ADMIN.into());
                }
            }
            Command::Remove { email } => {
                match service::staff::remove(&settings.figment, &address(&email)?).await? {
                    Changed::Already => return Err("there is no such member of staff".into()),
                    Changed::LastAdmin => return Err(LAST_ADMIN.into()),
                    // Whoever has a shell is not asked for a role.
                    Changed::Done | Changed::NotPermitted => {}
                }
            }
            Command::Reset { email } => {
                if service::staff::reset(&settings.figment, &address(&email)?).await? != Changed::Done {
                    return Err("there is no such member of staff".into());
                }
            }
            Command::List => {
                for member in service::staff::list(&settings.figment).await? {
                    let identity = member.identity.map(|it| format!("{} {}", it.provider, it.subject));
                    println!("{}\t{}\t{}", member.email, member.role, identity.unwrap_or_default());
                }
            }
        }
        Ok(())
    })
}

fn address(text: &str) -> std::result::Result<Email, String> {
    Email::parse(text).ok_or_else(|| format!("{text} is not an e-mail address"))
}
