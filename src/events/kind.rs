//! The one table of events: the name, words, look, categories and webhook message of each kind.
//!
//! Each function is an exhaustive `match`, so the compiler lists what a new kind needs: its rows
//! here, and the statement that writes it. SQL names kinds by literals, which tests hold against
//! this table; also the message that the trigger on `events` queues for each.

use std::borrow::Cow;

use serde::Serialize;
use strum::{EnumString, IntoStaticStr, VariantArray};
use uuid::Uuid;

use crate::domain::{Actor, KeyName, MessageType};

/// A kind of event. The database and the API have its name in snake case, such as `user_created`.
///
/// During a rolling update, the database may have kinds that only the newer release knows. So what
/// reads events keeps the name as text, and [`str::parse`] returns an error for such a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum EventKind {
    UserCreated,
    SignedIn,
    IdentityLinked,
    IdentityUnlinked,
    IdentityMoved,
    UsersMerged,
    UserUpdated,
    IdentityHeld,
    IdentityReleased,
    ClaimsChanged,
    EmailLost,
    UserDisabled,
    UserEnabled,
    UserDeleted,
    DataDeletionKept,
    SignedOut,
    SessionEnded,
    SessionsEnded,
    ProviderEvent,
    RefreshTokenReplayed,
    RefreshTokenReissued,
    RefreshTokenRepeated,
    ProofRefused,
    SignInRefused,
    LinkRefused,
    UsersImported,
    UserViewed,
    UsersViewed,
    UsersExported,
    AuditViewed,
    AuditExported,
    NoteAdded,
    WebhookReplayed,
    StaffAdded,
    StaffRoleChanged,
    StaffRemoved,
    StaffSignedIn,
    StaffIdentityReset,
    StaffRefused,
    ApiKeyAdded,
    ApiKeyRevoked,
    SigningKeyAnnounced,
    SigningKeysReplaced,
    Pruned,
}

/// The columns of an event on which its words and its tone depend, beside the kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct Details<'a> {
    /// The author, as [`Actor::name`] returns it; `None` for the user.
    pub actor: Option<&'a str>,
    pub reason: Option<&'a str>,
    pub provider: Option<&'a str>,
    pub user: Option<Uuid>,
}

impl Details<'_> {
    fn is_by_provider(self) -> bool {
        self.actor.is_some_and(Actor::is_provider)
    }

    fn author(self) -> &'static str {
        if self.actor.is_some_and(KeyName::is_actor) {
            "an API key"
        } else {
            "staff"
        }
    }
}

/// How an event calls for attention on the staff pages: the class that colours it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    Bad,
    Warn,
    Good,
    /// An action of staff, of an API key or of an operator.
    Info,
    Calm,
}

/// A category of events in the audit, by its name in URLs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum EventCategory {
    /// All events except views of data.
    #[default]
    Everything,
    Refused,
    SignIns,
    Security,
    /// Events with an actor, except views of data.
    Staff,
    /// Views and exports of data by staff. They would bury the other events.
    Looks,
}

impl EventCategory {
    pub const fn label(self) -> &'static str {
        match self {
            Self::Everything => "All",
            Self::Refused => "Refused",
            Self::SignIns => "Actions of users",
            Self::Security => "Possible attacks",
            Self::Staff => "Staff and API keys",
            Self::Looks => "Views by staff",
        }
    }

    /// Returns the kinds whose [`EventKind::category`] it is. Other columns define `Everything`
    /// and `Staff`, which have no kinds.
    pub fn kinds(self) -> impl Iterator<Item = EventKind> {
        let kinds = EventKind::VARIANTS.iter().copied();
        kinds.filter(move |kind| kind.category() == Some(self))
    }
}

/// A category of events in the history of one user, by its name in URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum HistoryCategory {
    Alarms,
    SignIns,
    Refused,
    Staff,
    Provider,
    Changes,
}

impl HistoryCategory {
    pub const fn label(self) -> &'static str {
        match self {
            Self::Alarms => "Alarms",
            Self::SignIns => "Sign-ins",
            Self::Refused => "Refused",
            Self::Staff => "By staff and keys",
            Self::Provider => "By the provider",
            Self::Changes => "Changes",
        }
    }

    /// Returns the category of an event with that author. An event of a kind that this release
    /// does not know is a change, unless it has an author.
    pub fn of(kind: Option<EventKind>, actor: Option<&str>) -> Self {
        match (kind.map(EventKind::history), actor) {
            (Some(Self::Provider), _) => Self::Provider,
            (_, Some(actor)) if Actor::is_provider(actor) => Self::Provider,
            (_, Some(_)) => Self::Staff,
            (category, None) => category.unwrap_or(Self::Changes),
        }
    }
}

impl EventKind {
    /// Returns the name in the database and in the API.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the type of the webhook message about an event with that reason. An event in two
    /// rows, one for each user, is one message: the row without a reason has it.
    pub const fn message_type(self, reason: Option<&str>) -> Option<MessageType> {
        Some(match self {
            Self::UserCreated => MessageType::UserCreated,
            Self::UserUpdated | Self::EmailLost | Self::ClaimsChanged => MessageType::UserUpdated,
            Self::UserDisabled => MessageType::UserDisabled,
            Self::UserEnabled => MessageType::UserEnabled,
            Self::UserDeleted => MessageType::UserDeleted,
            Self::UsersMerged | Self::IdentityMoved if reason.is_some() => return None,
            Self::UsersMerged => MessageType::UserMerged,
            Self::IdentityMoved => MessageType::IdentityMoved,
            Self::IdentityLinked => MessageType::IdentityLinked,
            Self::IdentityUnlinked => MessageType::IdentityUnlinked,
            Self::IdentityHeld => MessageType::IdentityHeld,
            Self::IdentityReleased => MessageType::IdentityReleased,
            Self::SignedOut | Self::SessionEnded | Self::SessionsEnded => {
                MessageType::SessionsEnded
            }
            Self::RefreshTokenReplayed => MessageType::RefreshTokenReplayed,
            Self::ProviderEvent => MessageType::ProviderEvent,
            Self::SignedIn
            | Self::DataDeletionKept
            | Self::RefreshTokenReissued
            | Self::RefreshTokenRepeated
            | Self::ProofRefused
            | Self::SignInRefused
            | Self::LinkRefused
            | Self::UsersImported
            | Self::UserViewed
            | Self::UsersViewed
            | Self::UsersExported
            | Self::AuditViewed
            | Self::AuditExported
            | Self::NoteAdded
            | Self::WebhookReplayed
            | Self::StaffAdded
            | Self::StaffRoleChanged
            | Self::StaffRemoved
            | Self::StaffSignedIn
            | Self::StaffIdentityReset
            | Self::StaffRefused
            | Self::ApiKeyAdded
            | Self::ApiKeyRevoked
            | Self::SigningKeyAnnounced
            | Self::SigningKeysReplaced
            | Self::Pruned => return None,
        })
    }

    /// Returns the category in the audit; `None` if the event is only among all events, or among
    /// the events of its author.
    pub const fn category(self) -> Option<EventCategory> {
        Some(match self {
            Self::SignInRefused | Self::LinkRefused => EventCategory::Refused,
            Self::SignedIn
            | Self::UserCreated
            | Self::IdentityLinked
            | Self::IdentityUnlinked
            | Self::UserUpdated
            | Self::UsersMerged
            | Self::SignedOut
            | Self::UserDeleted
            | Self::DataDeletionKept => EventCategory::SignIns,
            Self::RefreshTokenReplayed
            | Self::RefreshTokenReissued
            | Self::RefreshTokenRepeated
            | Self::ProofRefused
            | Self::EmailLost
            | Self::StaffRefused
            | Self::ProviderEvent
            | Self::IdentityHeld
            | Self::IdentityReleased => EventCategory::Security,
            Self::UserViewed
            | Self::UsersViewed
            | Self::UsersExported
            | Self::AuditViewed
            | Self::AuditExported => EventCategory::Looks,
            Self::IdentityMoved
            | Self::ClaimsChanged
            | Self::UserDisabled
            | Self::UserEnabled
            | Self::SessionEnded
            | Self::SessionsEnded
            | Self::UsersImported
            | Self::NoteAdded
            | Self::WebhookReplayed
            | Self::StaffAdded
            | Self::StaffRoleChanged
            | Self::StaffRemoved
            | Self::StaffSignedIn
            | Self::StaffIdentityReset
            | Self::ApiKeyAdded
            | Self::ApiKeyRevoked
            | Self::SigningKeyAnnounced
            | Self::SigningKeysReplaced
            | Self::Pruned => return None,
        })
    }

    /// Returns the category in the history of a user, who is the author.
    pub const fn history(self) -> HistoryCategory {
        match self {
            Self::RefreshTokenReplayed | Self::RefreshTokenRepeated => HistoryCategory::Alarms,
            Self::SignedIn | Self::UserCreated | Self::IdentityLinked => HistoryCategory::SignIns,
            Self::SignInRefused | Self::LinkRefused => HistoryCategory::Refused,
            Self::ProviderEvent | Self::IdentityHeld => HistoryCategory::Provider,
            Self::IdentityUnlinked
            | Self::IdentityMoved
            | Self::UsersMerged
            | Self::UserUpdated
            | Self::IdentityReleased
            | Self::ClaimsChanged
            | Self::EmailLost
            | Self::UserDisabled
            | Self::UserEnabled
            | Self::UserDeleted
            | Self::DataDeletionKept
            | Self::SignedOut
            | Self::SessionEnded
            | Self::SessionsEnded
            | Self::RefreshTokenReissued
            | Self::ProofRefused
            | Self::UsersImported
            | Self::UserViewed
            | Self::UsersViewed
            | Self::UsersExported
            | Self::AuditViewed
            | Self::AuditExported
            | Self::NoteAdded
            | Self::WebhookReplayed
            | Self::StaffAdded
            | Self::StaffRoleChanged
            | Self::StaffRemoved
            | Self::StaffSignedIn
            | Self::StaffIdentityReset
            | Self::StaffRefused
            | Self::ApiKeyAdded
            | Self::ApiKeyRevoked
            | Self::SigningKeyAnnounced
            | Self::SigningKeysReplaced
            | Self::Pruned => HistoryCategory::Changes,
        }
    }

    /// Returns the name of the icon, in `static/icons.svg`.
    pub const fn icon(self) -> &'static str {
        match self {
            Self::SignedIn | Self::StaffSignedIn => "in",
            Self::UserCreated | Self::UsersImported | Self::StaffAdded => "new",
            Self::IdentityLinked
            | Self::IdentityMoved
            | Self::IdentityHeld
            | Self::IdentityReleased
            | Self::IdentityUnlinked => "link",
            Self::SignInRefused | Self::LinkRefused | Self::StaffRefused => "refused",
            Self::RefreshTokenReplayed | Self::RefreshTokenRepeated => "theft",
            Self::RefreshTokenReissued | Self::EmailLost | Self::ProviderEvent => "info",
            Self::SignedOut | Self::SessionsEnded | Self::SessionEnded => "out",
            Self::UserDeleted | Self::DataDeletionKept => "trash",
            Self::UsersMerged => "merge",
            Self::UserDisabled | Self::UserEnabled => "off",
            Self::UserViewed | Self::UsersViewed | Self::AuditViewed => "eye",
            Self::UsersExported | Self::AuditExported => "receipt",
            Self::WebhookReplayed => "send",
            Self::ApiKeyAdded
            | Self::ApiKeyRevoked
            | Self::SigningKeyAnnounced
            | Self::SigningKeysReplaced => "key",
            Self::StaffRoleChanged | Self::StaffRemoved | Self::StaffIdentityReset => "staff",
            Self::UserUpdated
            | Self::ClaimsChanged
            | Self::ProofRefused
            | Self::NoteAdded
            | Self::Pruned => "edit",
        }
    }

    pub fn tone(self, event: Details<'_>) -> Tone {
        match self {
            Self::SignInRefused
            | Self::LinkRefused
            | Self::StaffRefused
            | Self::RefreshTokenReplayed
            | Self::RefreshTokenRepeated => Tone::Bad,
            Self::IdentityHeld => Tone::Warn,
            Self::ProviderEvent
                if matches!(event.reason, Some("sessions_revoked" | "account_disabled")) =>
            {
                Tone::Warn
            }
            Self::UserViewed | Self::UsersViewed | Self::AuditViewed => Tone::Calm,
            Self::SignedIn
            | Self::StaffSignedIn
            | Self::UserCreated
            | Self::UsersImported
            | Self::StaffAdded => Self::tone_by(event, Tone::Good),
            Self::IdentityLinked
            | Self::IdentityUnlinked
            | Self::IdentityMoved
            | Self::UsersMerged
            | Self::UserUpdated
            | Self::IdentityReleased
            | Self::ClaimsChanged
            | Self::EmailLost
            | Self::UserDisabled
            | Self::UserEnabled
            | Self::UserDeleted
            | Self::DataDeletionKept
            | Self::SignedOut
            | Self::SessionEnded
            | Self::SessionsEnded
            | Self::ProviderEvent
            | Self::RefreshTokenReissued
            | Self::ProofRefused
            | Self::UsersExported
            | Self::AuditExported
            | Self::NoteAdded
            | Self::WebhookReplayed
            | Self::StaffRoleChanged
            | Self::StaffRemoved
            | Self::StaffIdentityReset
            | Self::ApiKeyAdded
            | Self::ApiKeyRevoked
            | Self::SigningKeyAnnounced
            | Self::SigningKeysReplaced
            | Self::Pruned => Self::tone_by(event, Tone::Calm),
        }
    }

    /// Returns the tone of an event that staff, an API key or an operator has caused, or else `own`.
    pub fn tone_by(event: Details<'_>, own: Tone) -> Tone {
        if event.actor.is_some() && !event.is_by_provider() {
            Tone::Info
        } else {
            own
        }
    }

    /// Returns what happened, in words for staff.
    pub fn words(self, event: Details<'_>) -> Cow<'static, str> {
        let author = event.author();
        let to_another = event.reason == Some("to_another");
        Cow::Borrowed(match self {
            Self::UserCreated => user_created(event),
            Self::SignedIn => "Signed in",
            Self::IdentityLinked => match event.reason {
                Some("imported") => "Identity added by an import of users",
                Some("same_provider") => "Second account of the same provider linked",
                _ => "Identity linked",
            },
            Self::IdentityUnlinked if event.is_by_provider() => {
                "Identity unlinked because the user asked the provider to have the data deleted"
            }
            Self::IdentityUnlinked => "Identity unlinked",
            Self::IdentityMoved if to_another => "An identity was moved to another user",
            Self::IdentityMoved => "An identity was moved here from another user",
            Self::UsersMerged => users_merged(event.actor.is_some(), to_another),
            Self::UserUpdated => user_updated(event),
            Self::IdentityHeld => {
                "An identity is held: the hijacker of another account of the user may have brought it"
            }
            Self::IdentityReleased => {
                return format!("A held identity released by {author}").into();
            }
            Self::ClaimsChanged => "Claims in access tokens changed",
            Self::EmailLost => "Lost an unverified e-mail address to a user who has verified it",
            Self::UserDisabled => return format!("Disabled by {author}").into(),
            Self::UserEnabled => return format!("Enabled by {author}").into(),
            Self::UserDeleted if event.is_by_provider() => {
                "Deleted because the user asked the provider to have the data deleted"
            }
            Self::UserDeleted if event.actor.is_some() => {
                return format!("Deleted by {author}").into();
            }
            Self::UserDeleted => "The user deleted the account",
            Self::DataDeletionKept => {
                "The user asked the provider to have the data deleted. It was kept because the user is disabled: decide about it"
            }
            Self::SignedOut => "Signed out",
            Self::SessionEnded => return format!("One session ended by {author}").into(),
            Self::SessionsEnded => return format!("Signed out everywhere by {author}").into(),
            Self::ProviderEvent => reported(event.reason.unwrap_or_default(), event.user.is_some()),
            Self::RefreshTokenReplayed => {
                "A refresh token was used twice, so it may be stolen: the session has ended"
            }
            Self::RefreshTokenReissued => {
                "An answer was lost, so a refresh was repeated: the unused refresh token is void"
            }
            Self::RefreshTokenRepeated => {
                "A refresh token came again at once, from another address and another app or browser: it may be stolen"
            }
            Self::ProofRefused => "A request with a token of a session was refused",
            Self::SignInRefused => "Sign-in refused",
            Self::LinkRefused => "Linking refused",
            Self::UsersImported => "Imported users",
            Self::UserViewed => "Viewed user",
            Self::UsersViewed => "Viewed list of users",
            Self::UsersExported => "Exported list of users",
            Self::AuditViewed => "Viewed audit log",
            Self::AuditExported => "Exported audit log",
            Self::NoteAdded if event.reason == Some("known") => {
                "Note written: the use that looked like theft was the user’s own"
            }
            Self::NoteAdded => "Note written",
            Self::WebhookReplayed => "Let the messages of a webhook be sent again",
            Self::StaffAdded => "Gave access to the staff pages",
            Self::StaffRoleChanged => "Changed access to the staff pages",
            Self::StaffRemoved => "Revoked access to the staff pages",
            Self::StaffSignedIn => "Signed in to the staff pages",
            Self::StaffIdentityReset => {
                "Reset the account of a member: the next one to sign in is theirs"
            }
            Self::StaffRefused => staff_refused(event.reason),
            Self::ApiKeyAdded => "Added an API key",
            Self::ApiKeyRevoked => "Revoked an API key",
            Self::SigningKeyAnnounced => "Announced the next key that signs access tokens",
            Self::SigningKeysReplaced => {
                "Replaced all keys that sign access tokens: those issued before are refused"
            }
            Self::Pruned => "Deleted what had expired, at the command line",
        })
    }
}

fn user_created(event: Details<'_>) -> &'static str {
    match (event.actor.is_some(), event.reason) {
        (true, Some("email_proven")) => {
            "Created before the first sign-in, with an e-mail address that another user had not verified"
        }
        (true, _) => "Created before the first sign-in",
        (false, Some("email_proven")) => {
            "Signed in for the first time, and took over an e-mail address that another user had not verified"
        }
        (false, _) => "Signed in for the first time",
    }
}

fn user_updated(event: Details<'_>) -> &'static str {
    match (event.reason, event.provider) {
        (Some("proof_gone"), _) => {
            "The e-mail address is no longer verified: the identity that proved it is gone, or has another one"
        }
        (_, None) => "The user changed the name to be shown",
        (_, Some(_)) => "Updated from the provider",
    }
}

/// The other user's id is forgotten when this one is deleted; the direction is not.
const fn users_merged(by_staff: bool, to_another: bool) -> &'static str {
    match (by_staff, to_another) {
        (true, true) => "Merged into another user",
        (true, false) => "Another user was merged into this one",
        (false, true) => {
            "The user, who has proven to have both accounts, merged this one into the other"
        }
        (false, false) => {
            "The user, who has proven to have both accounts, merged the other into this one"
        }
    }
}

fn staff_refused(reason: Option<&str>) -> &'static str {
    match reason {
        Some("another_identity") => {
            "Staff sign-in refused: another account with the e-mail address of a member"
        }
        Some("not_authoritative") => {
            "Staff sign-in refused: Google has verified the e-mail address only once"
        }
        Some("identity_suspended") => {
            "Staff sign-in refused: the provider has reported the account hijacked, disabled or deleted"
        }
        _ => "Staff sign-in refused: not a member of staff",
    }
}

/// Returns a provider's report, about a user or about a person who has no user here.
fn reported(event: &str, about_user: bool) -> &'static str {
    if !about_user && event != "verification" {
        return "The provider reported something about an account that no user has";
    }
    match event {
        "sessions_revoked" => "The provider ended its sessions of the account",
        "tokens_revoked" => "The provider revoked the access of our apps to the account",
        "account_disabled" => "The provider disabled the account",
        "account_enabled" => "The provider enabled the account again",
        "account_purged" | "account_deleted" => "The account was deleted at the provider",
        "credential_change" => "The provider reported a change of the account’s credentials",
        "identifier_changed" => "The provider reported a change of the account’s address",
        "email_disabled" => "E-mail by the provider’s relay address no longer reaches the user",
        "email_enabled" => "E-mail by the provider’s relay address reaches the user again",
        "consent_revoked" => "The user stopped using the account with our apps",
        "deauthorized" => "The user removed our apps from the account",
        "verification" => "The provider tested the connection for its reports",
        _ => "The provider reported something about the account",
    }
}
