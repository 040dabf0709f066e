//! `vestibule user …` and `vestibule audit`: a way to the users while staff cannot sign in. Views
//! and changes go through the verbs of the admin pages, and the audit records them like views and
//! changes by staff.

use clap::{Args, Subcommand};
use uuid::Uuid;

use crate::accounts::{identities, sessions};
use crate::admin::changes::{self, Change, Outcome};
use crate::admin::lists::events::{EventRow, Filter, of_user, page};
use crate::admin::lists::person::user as person;
use crate::admin::lists::users::filter::Filters;
use crate::admin::lists::users::search::search;
use crate::admin::lists::users::{ListedUser, providers};
use crate::admin::reason;
use crate::database::Database;
use crate::domain::text::one_line;
use crate::domain::{Author, Email};
use crate::events::record::record_access;
use crate::events::{DataAccess, EventKind};
use crate::web::rfc3339;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

const EVENTS: i64 = 20;

#[derive(Subcommand)]
pub enum Command {
    /// Find users by an e-mail address, a name, an id or a subject
    #[command(after_help = after_help!("Example:\n  vestibule user find ada@example.com"))]
    Find {
        /// Whole or beginning of an e-mail address, words of a name, an id or a subject
        text: String,
        /// Maximum number of users
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// Show a user with identities, sessions and the latest events
    #[command(after_help = after_help!("Example:\n  vestibule user show 0192f0c1-2b3c-7d4e-8f50-617283940a1b"))]
    Show {
        /// Id of the user
        user: Uuid,
    },
    /// End all sessions of a user
    #[command(after_help = after_help!("Example:\n  vestibule user sign-out 0192f0c1-2b3c-7d4e-8f50-617283940a1b \
        --reason \"phone stolen, ticket 4711\""))]
    SignOut(On),
    /// Refuse a user's sign-ins, and end all sessions
    #[command(after_help = after_help!("Example:\n  vestibule user disable 0192f0c1-2b3c-7d4e-8f50-617283940a1b \
        --reason \"abuse, ticket 4711\""))]
    Disable(On),
    /// Permit a user's sign-ins again
    #[command(after_help = after_help!("Example:\n  vestibule user enable 0192f0c1-2b3c-7d4e-8f50-617283940a1b \
        --reason \"appeal, ticket 4711\""))]
    Enable(On),
    /// Delete a user with all of their data, at once and for good
    #[command(after_help = after_help!("Example:\n  vestibule user delete 0192f0c1-2b3c-7d4e-8f50-617283940a1b \
        --reason \"request of the person, ticket 4711\""))]
    Delete(On),
}

/// The user whom a change is made to.
#[derive(Args)]
pub struct On {
    /// Id of the user
    user: Uuid,
    /// Reason, which the audit keeps, also after a deletion: nothing personal
    #[arg(long, value_parser = read_reason)]
    reason: String,
}

#[derive(Args)]
pub struct Audit {
    /// Events of this user, and events in which others used their e-mail address
    #[arg(long, value_name = "ID")]
    user: Option<Uuid>,
    /// Events of the user with this e-mail address, and refused tokens that claimed it
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,
    /// Events that this member of staff or operator caused
    #[arg(long)]
    actor: Option<String>,
    /// Refusals for this reason, such as `audience_mismatch`
    #[arg(long)]
    reason: Option<String>,
    /// Events of this request, or the event with this id
    #[arg(long, value_name = "ID")]
    request: Option<String>,
    /// Maximum number of events
    #[arg(long, default_value_t = 100)]
    limit: u32,
}

/// Reads a reason as the forms of the admin pages do.
fn read_reason(text: &str) -> std::result::Result<String, String> {
    reason::read(text).ok_or_else(|| format!("a reason has 1 to {} characters", reason::MAX_LENGTH))
}

impl Command {
    /// Runs the command.
    pub async fn run(self, database: &Database) -> Result {
        match self {
            Self::Find { text, limit } => find(database, &text, limit).await,
            Self::Show { user } => show(database, user).await,
            Self::SignOut(On { user, reason }) => {
                change(database, Change::EndSessions { user }, &reason).await
            }
            Self::Disable(On { user, reason }) => {
                change(database, Change::Disable { user }, &reason).await
            }
            Self::Enable(On { user, reason }) => {
                change(database, Change::Enable { user }, &reason).await
            }
            Self::Delete(On { user, reason }) => {
                change(database, Change::Delete { user }, &reason).await
            }
        }
    }
}

impl Audit {
    /// Prints the events.
    pub async fn run(self, database: &Database) -> Result {
        let Self {
            user,
            email,
            actor,
            reason,
            request,
            limit,
        } = self;
        let email =
            email.map(|text| Email::parse(&text).ok_or(format!("{text} is not an e-mail address")));
        let email = email.transpose()?.map(|email| email.folded().to_owned());
        let id = user.map(|id| id.to_string());
        let fields = [
            ("user", &id),
            ("email", &email),
            ("actor", &actor),
            ("reason", &reason),
            ("request", &request),
        ];
        let search: Vec<_> = fields
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_deref()?)))
            .collect();
        record(database, DataAccess::list(EventKind::AuditViewed, &search)).await?;
        let filter = Filter {
            email,
            user,
            actor,
            reason,
            request,
            ..Filter::default()
        };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        print(page(database, &filter, None, limit).await?.0);
        Ok(())
    }
}

/// Records a view. Data may be shown only after it has been recorded.
async fn record(database: &Database, access: DataAccess<'_>) -> Result {
    record_access(
        database,
        access,
        Author::COMMAND_LINE.actor,
        Author::COMMAND_LINE.origin,
    )
    .await?;
    Ok(())
}

/// Prints the users that match a text. No match is an error, so that scripts notice.
async fn find(database: &Database, text: &str, limit: usize) -> Result {
    let text = one_line(text).trim().to_owned();
    if text.is_empty() {
        return Err("the text to find is empty".into());
    }
    record(
        database,
        DataAccess::list(EventKind::UsersViewed, &[("q", &text)]),
    )
    .await?;
    let providers = providers(database).await?;
    let found = search(
        database,
        &text,
        &providers,
        &Filters::default(),
        None,
        limit.max(1),
    )
    .await?;
    if let Some(into) = found.remains {
        say!("merged into {into}");
    }
    if found.remains.is_none() && found.users.is_empty() {
        return Err("there is no such user".into());
    }
    for ListedUser {
        id,
        email,
        email_verified,
        name,
        disabled_at,
        last_seen_on,
        providers,
        ..
    } in found.users
    {
        let status = if disabled_at.is_some() {
            "disabled"
        } else {
            "active"
        };
        let proof = if email.is_some() && !email_verified {
            "not verified"
        } else {
            ""
        };
        let seen = last_seen_on.map(|day| day.to_string()).unwrap_or_default();
        let email = email.unwrap_or_default();
        let name = one_line(&name.unwrap_or_default());
        say!(
            "{id}\t{email}\t{proof}\t{name}\t{status}\t{seen}\t{}",
            providers.join(",")
        );
    }
    Ok(())
}

async fn show(database: &Database, id: Uuid) -> Result {
    record(database, DataAccess::person(id)).await?;
    let found = person(database, id).await?;
    let found = found
        .ok_or("there is no user with this id; `vestibule audit --user` shows what is left")?;
    let user = found.user;
    let claims = found.claims;
    let proof = if user.email_verified {
        " (verified)"
    } else {
        " (not verified)"
    };
    say!("id\t{id}");
    say!(
        "email\t{}",
        user.email
            .map(|email| format!("{email}{proof}"))
            .unwrap_or_default()
    );
    say!("name\t{}", one_line(&user.name.unwrap_or_default()));
    say!("created\t{}", rfc3339(user.created_at));
    say!(
        "disabled\t{}",
        user.disabled_at.map(rfc3339).unwrap_or_default()
    );
    say!(
        "last seen\t{}",
        user.last_seen_on
            .map(|day| day.to_string())
            .unwrap_or_default()
    );
    say!(
        "claims\t{}",
        one_line(&claims.map(|claims| claims.to_string()).unwrap_or_default())
    );
    for identity in identities::of_user(database, id).await? {
        let email = identity.email.unwrap_or_default();
        say!(
            "identity\t{}\t{}\t{}\t{email}",
            identity.id,
            identity.provider,
            one_line(&identity.subject)
        );
    }
    for session in sessions::of_user(database, id).await? {
        let ip = session.ip.map(|ip| ip.to_string()).unwrap_or_default();
        let device = [session.device_name, session.device_platform]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>();
        let began = rfc3339(session.created_at);
        let last = rfc3339(session.last_used_at);
        say!(
            "session\t{}\t{}\t{began}\t{last}\t{ip}\t{}",
            session.id,
            session.provider,
            one_line(&device.join(", "))
        );
    }
    print(of_user(database, id, EVENTS).await?);
    Ok(())
}

async fn change(database: &Database, change: Change, reason: &str) -> Result {
    let by = Author {
        reason: Some(reason),
        ..Author::COMMAND_LINE
    };
    let preview = changes::preview(database, change, by.actor).await?;
    match changes::make(
        database,
        &preview.ok_or("there is no user with this id")?,
        None,
        by,
    )
    .await?
    {
        Outcome::Done => Ok(()),
        Outcome::Stale => {
            Err("the user has changed meanwhile, and nothing was done; try again".into())
        }
        // Rules about one's own account and the last identity are for members of staff and for
        // other changes.
        Outcome::Refused(_) | Outcome::NotPermitted => Err("a rule forbids the change".into()),
    }
}

fn print(events: Vec<EventRow>) {
    for event in events {
        let user = event.user_id.map(|id| id.to_string());
        let columns = [
            Some(rfc3339(event.created_at)),
            Some(event.kind),
            event.reason,
            event.provider,
            user,
            event.email,
            event.actor,
            event.about,
            event.remark,
            event.ip,
            event.audience,
            event.issuer,
            event.request_id,
        ];
        let columns = columns.map(|column| one_line(&column.unwrap_or_default()));
        say!("event\t{}", columns.join("\t"));
    }
}
