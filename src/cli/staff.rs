//! `vestibule staff …`

use clap::Subcommand;
use time::format_description::well_known::Rfc3339;

use super::Result;
use crate::admin::staff::sign_in::store::all;
use crate::admin::staff::store::{Changed, add, remove, reset};
use crate::domain::{Access, Author, Email, Role};

const NO_MEMBER: &str = "there is no member of staff with this e-mail address";
const LAST_ADMIN: &str = "this is the only admin whose access does not end; add another one first";

#[derive(Subcommand)]
pub(super) enum Command {
    /// Give access to the admin pages, or replace the access that a member has
    #[command(after_help = after_help!("Examples:\n  vestibule staff add grace@example.com --role support\n  \
        vestibule staff add linus@example.com --export --until 2026-12-31"))]
    Add {
        /// E-mail address, which the identity provider must have verified
        email: String,
        /// `support` may read and end sessions; `admin` may do everything
        #[arg(long, value_parser = super::one_of::<Role>(), default_value_t = Role::Support)]
        role: Role,
        /// Allow the member to export users and events, as every admin may
        #[arg(long)]
        export: bool,
        /// End access at the end of this day (UTC), for example 2026-12-31
        #[arg(long, value_name = "DATE")]
        until: Option<String>,
    },
    /// Remove access, and end the member's sessions at once
    #[command(after_help = after_help!("Example:\n  vestibule staff remove grace@example.com"))]
    Remove {
        /// The member's e-mail address
        email: String,
    },
    /// Unlink a member from their account at the identity provider; the next sign-in links another
    /// one
    #[command(after_help = after_help!("Example:\n  vestibule staff reset grace@example.com"))]
    Reset {
        /// The member's e-mail address
        email: String,
    },
    /// List the members of staff with role, identity, right to export and end of access
    #[command(after_help = after_help!("Example:\n  vestibule staff list"))]
    List,
}

pub(super) fn run(command: Command) -> Result {
    super::on_database(async move |pool, _| {
        let by = Author::COMMAND_LINE;
        match command {
            Command::Add {
                email,
                role,
                export,
                until,
            } => {
                let ends_at = until.as_deref().map(super::day).transpose()?;
                let access = Access {
                    role,
                    may_export: export,
                    ends_at,
                };
                if add(&pool, address(&email)?.folded(), access, by).await? == Changed::LastAdmin {
                    return Err(LAST_ADMIN.into());
                }
            }
            Command::Remove { email } => {
                match remove(&pool, address(&email)?.folded(), by).await? {
                    Changed::Already => return Err(NO_MEMBER.into()),
                    Changed::LastAdmin => return Err(LAST_ADMIN.into()),
                    // The command line may do everything; the role does not matter.
                    Changed::Done | Changed::NotPermitted => {}
                }
            }
            Command::Reset { email } => {
                if reset(&pool, address(&email)?.folded(), by).await? != Changed::Done {
                    return Err(NO_MEMBER.into());
                }
            }
            Command::List => {
                for member in all(&pool).await? {
                    let access = member.access();
                    let identity = member.provider.zip(member.subject);
                    let identity =
                        identity.map(|(provider, subject)| format!("{provider} {subject}"));
                    let identity = identity.unwrap_or_default();
                    let export = if access.exports() { "export" } else { "" };
                    let end = access
                        .ends_at
                        .and_then(|end| end.format(&Rfc3339).ok())
                        .unwrap_or_default();
                    say!(
                        "{}\t{}\t{identity}\t{export}\t{end}",
                        member.email,
                        access.role
                    );
                }
            }
        }
        Ok(())
    })
}

fn address(text: &str) -> std::result::Result<Email, String> {
    Email::parse(text).ok_or_else(|| format!("{text} is not an e-mail address"))
}
