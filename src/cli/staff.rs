//! `vestibule staff …`

use clap::Subcommand;
use time::format_description::well_known::Rfc3339;

use super::Result;
use crate::admin::sign_in::store::all;
use crate::admin::staff::access::{forget_identity, give, take_away};
use crate::admin::staff::store::Changed;
use crate::domain::{Access, Actor, By, Email, Origin, Role};

const NO_MEMBER: &str = "there is no member of staff with this e-mail address";
const LAST_ADMIN: &str = "this is the only admin whose access does not end; add another one first";

#[derive(Subcommand)]
pub(super) enum Command {
    /// Give access to the admin pages, or replace the access that somebody has
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
    /// Unlink a member from their account at the identity provider; the next sign-in links another one
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
        let origin = Origin::default();
        let by = By { actor: Actor::COMMAND_LINE, reason: None, origin: &origin };
        match command {
            Command::Add { email, role, export, until } => {
                let ends_at = until.as_deref().map(super::day).transpose()?;
                let access = Access { role, may_export: export, ends_at };
                if give(&pool, &address(&email)?, access, by).await? == Changed::LastAdmin {
                    return Err(LAST_ADMIN.into());
                }
            }
            Command::Remove { email } => {
                match take_away(&pool, &address(&email)?, by).await? {
                    Changed::Already => return Err(NO_MEMBER.into()),
                    Changed::LastAdmin => return Err(LAST_ADMIN.into()),
                    // The command line may do everything; the role does not matter.
                    Changed::Done | Changed::NotPermitted => {}
                }
            }
            Command::Reset { email } => {
                if forget_identity(&pool, &address(&email)?, by).await? != Changed::Done {
                    return Err(NO_MEMBER.into());
                }
            }
            Command::List => {
                for member in all(&pool).await? {
                    let identity = member.identity.map(|it| format!("{} {}", it.provider, it.subject));
                    let (access, identity) = (member.access, identity.unwrap_or_default());
                    let export = if access.exports() { "export" } else { "" };
                    let end = access.ends_at.and_then(|end| end.format(&Rfc3339).ok()).unwrap_or_default();
                    say!("{}\t{}\t{identity}\t{export}\t{end}", member.email, access.role);
                }
            }
        }
        Ok(())
    })
}

fn address(text: &str) -> std::result::Result<Email, String> {
    Email::parse(text).ok_or_else(|| format!("{text} is not an e-mail address"))
}
