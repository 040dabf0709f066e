//! The body of a message, built from the facts that the trigger on `events` has queued
//! (`migrations/20261122044011_create_webhooks.sql`).
//!
//! The statement of the change queues the facts: what the event says, and the user and the identity
//! as the statement leaves them. A later change may come before the delivery. The service builds
//! the body when it sends the message, so that the structs here are both the body and its
//! description in the API. Each attempt builds the same bytes, unless a release in between changes
//! the structs.
//!
//! Facts wait in the queue for weeks, and another release may have queued them. So each fact keeps
//! its name and form, and a new fact has a default.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use time::{OffsetDateTime, UtcOffset};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use super::failure::Failure;
use super::store::Claimed;
use crate::domain::MessageType;

/// A message. Its members, and the members of all structs here, are in the order in which they are
/// sent.
#[derive(Serialize)]
struct Message {
    data: Data,
    r#type: &'static str,
    timestamp: Time,
}

/// What a message is about.
#[derive(Serialize)]
#[serde(untagged)]
enum Data {
    User(UserChange),
    Merge(Merge),
    Move(Move),
    Identity(IdentityChange),
    Sessions(SessionsEnded),
    Replay(Replay),
    Report(Report),
}

#[derive(Serialize, ToSchema)]
struct UserChange {
    #[schema(schema_with = user, required = true)]
    user: Option<User>,
    /// The user whom the change concerns.
    user_id: Uuid,
}

#[derive(Serialize, ToSchema)]
struct Merge {
    /// The user who is no more.
    #[schema(value_type = Uuid)]
    from: Option<Uuid>,
    /// The user who remains: `user_id`.
    into: Uuid,
    #[schema(schema_with = user, required = true)]
    user: Option<User>,
    /// The user whom the change concerns.
    user_id: Uuid,
    /// The claims of `from`. `user` gets each claim that it lacked, and keeps its own.
    #[schema(value_type = Object)]
    from_claims: Claims,
}

#[derive(Serialize, ToSchema)]
struct Move {
    /// The user who has it now: `user_id`.
    to: Uuid,
    /// The user who had the identity.
    #[schema(value_type = Uuid)]
    from: Option<Uuid>,
    #[schema(schema_with = user, required = true)]
    user: Option<User>,
    /// The user whom the change concerns.
    user_id: Uuid,
    #[schema(schema_with = changed_identity)]
    identity: ChangedIdentity,
}

#[derive(Serialize, ToSchema)]
struct IdentityChange {
    #[schema(schema_with = user, required = true)]
    user: Option<User>,
    /// The user whom the change concerns.
    user_id: Uuid,
    #[schema(schema_with = changed_identity)]
    identity: ChangedIdentity,
}

#[derive(Serialize, ToSchema)]
struct SessionsEnded {
    #[schema(schema_with = user, required = true)]
    user: Option<User>,
    /// The user whom the change concerns.
    user_id: Uuid,
    #[schema(inline)]
    sessions: Ended,
    /// `sid` in access tokens.
    #[schema(required = true)]
    session_id: Option<Uuid>,
}

/// `one`: `session_id`. `others`: all of the user's but `session_id`. `all`: all of the user's.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Ended {
    One,
    Others,
    All,
}

#[derive(Serialize, ToSchema)]
struct Replay {
    #[schema(schema_with = user, required = true)]
    user: Option<User>,
    /// The user whom the change concerns.
    user_id: Uuid,
    /// `sid` in access tokens.
    #[schema(value_type = Uuid)]
    session_id: Option<Uuid>,
}

#[derive(Serialize, ToSchema)]
struct Report {
    #[schema(schema_with = user, required = true)]
    user: Option<User>,
    /// What has happened: `sessions_revoked`, `tokens_revoked`, `account_disabled`,
    /// `account_enabled`, `account_purged`, `account_deleted`, `credential_change`,
    /// `identifier_changed`, `email_disabled`, `email_enabled`, `consent_revoked` or
    /// `deauthorized`. There may be others.
    #[schema(value_type = String)]
    event: Option<String>,
    /// The provider's reason, such as `hijacking`.
    #[schema(required = true)]
    reason: Option<String>,
    /// The user whom the change concerns.
    user_id: Uuid,
    #[schema(schema_with = changed_identity)]
    identity: ChangedIdentity,
    /// True if nobody can sign in with the identity now.
    suspended: bool,
    /// The time of the event at the provider.
    #[schema(value_type = OffsetDateTime)]
    occurred_at: Option<String>,
    /// The number of sessions that ended.
    sessions_ended: u32,
}

/// The user as of the change; `null` if there is no such user any more.
#[derive(Serialize, Deserialize, ToSchema)]
struct User {
    /// `sub` in access tokens.
    id: Uuid,
    /// The name.
    #[schema(required = true)]
    name: Option<String>,
    /// In ASCII lower case.
    #[schema(required = true)]
    email: Option<String>,
    /// What the backend has set by the admin API.
    #[schema(value_type = Object)]
    claims: Claims,
    /// The URL of the picture.
    #[schema(required = true)]
    picture: Option<String>,
    /// The time of the first sign-in, or of the import.
    #[schema(value_type = OffsetDateTime)]
    created_at: Time,
    /// The accounts that the user signs in with.
    #[schema(inline)]
    identities: Vec<Identity>,
    /// The time of the last change.
    #[schema(value_type = OffsetDateTime)]
    updated_at: Time,
    #[schema(value_type = Option<OffsetDateTime>, required = true)]
    disabled_at: Option<Time>,
    email_verified: bool,
}

/// An account at an identity provider. One that is gone has only `id` and `provider`.
#[derive(Serialize, Deserialize, ToSchema)]
struct Identity {
    /// The id of the identity.
    id: Uuid,
    /// The e-mail address of the account.
    #[schema(required = true)]
    email: Option<String>,
    /// The provider's id of the account.
    subject: String,
    provider: String,
    /// It is a fact about the identity of a report, and not sent with it.
    #[serde(skip_serializing, default)]
    #[schema(ignore)]
    suspended: bool,
}

/// The identity that changed. If it is deleted, its address and subject are unknown.
#[derive(Serialize)]
#[serde(untagged)]
enum ChangedIdentity {
    Present(Identity),
    Gone {
        id: Option<Uuid>,
        provider: Option<String>,
    },
}

/// Claims as the database has them: in a `Value`, numbers would lose digits.
#[derive(Default, Deserialize)]
#[serde(transparent)]
struct Claims(Option<Box<RawValue>>);

impl Serialize for Claims {
    fn serialize<S: Serializer>(&self, target: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(claims) => claims.serialize(target),
            None => target.serialize_map(Some(0))?.end(),
        }
    }
}

/// A time with six digits of the second, in UTC.
#[derive(Deserialize)]
struct Time(#[serde(with = "time::serde::rfc3339")] OffsetDateTime);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, target: S) -> Result<S::Ok, S::Error> {
        let time = self.0.to_offset(UtcOffset::UTC);
        target.collect_str(&format_args!(
            "{}T{:02}:{:02}:{:02}.{:06}Z",
            time.date(),
            time.hour(),
            time.minute(),
            time.second(),
            time.microsecond()
        ))
    }
}

/// Returns the schema of a user or `null`. It has no `oneOf`, of which generators for Java make
/// classes that do not exist.
fn user() -> RefOr<Schema> {
    let mut schema = User::schema();
    if let RefOr::T(Schema::Object(object)) = &mut schema {
        object.schema_type = SchemaType::from_iter([Type::Object, Type::Null]);
    }
    schema
}

/// Returns the schema of an identity that may be gone.
fn changed_identity() -> RefOr<Schema> {
    let mut schema = Identity::schema();
    if let RefOr::T(Schema::Object(object)) = &mut schema {
        object
            .required
            .retain(|name| name == "id" || name == "provider");
    }
    schema
}

/// Returns the schema of the `data` of a message.
pub(super) fn schema(kind: MessageType) -> RefOr<Schema> {
    match kind {
        MessageType::UserCreated
        | MessageType::UserUpdated
        | MessageType::UserDisabled
        | MessageType::UserEnabled
        | MessageType::UserDeleted => UserChange::schema(),
        MessageType::UserMerged => Merge::schema(),
        MessageType::IdentityMoved => Move::schema(),
        MessageType::IdentityLinked
        | MessageType::IdentityUnlinked
        | MessageType::IdentityHeld
        | MessageType::IdentityReleased => IdentityChange::schema(),
        MessageType::SessionsEnded => SessionsEnded::schema(),
        MessageType::RefreshTokenReplayed => Replay::schema(),
        MessageType::ProviderEvent => Report::schema(),
    }
}

/// What the trigger queues. All facts are optional: another release may have queued them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Facts {
    /// The kind, reason, provider and session of the event.
    kind: String,
    reason: Option<String>,
    provider: Option<String>,
    session_id: Option<Uuid>,
    /// The identity that the event names, and its row, if it still has one.
    identity_id: Option<Uuid>,
    identity: Option<Identity>,
    user: Option<User>,
    /// The claims of a user who was merged into `user`.
    from_claims: Claims,
    /// The provider's reason for its report, the time of what it reports, and the number of
    /// sessions that ended.
    cause: Option<String>,
    occurred_at: Option<String>,
    session_count: Option<u32>,
}

/// Builds the body of a message. Fails if another release has queued it, with a type or facts that
/// this release does not know.
pub fn body(message: &Claimed) -> Result<String, Failure> {
    let kind = message.kind.parse().map_err(|_| Failure::Unreadable)?;
    let facts = serde_json::from_str(&message.facts).map_err(|_| Failure::Unreadable)?;
    let built = Message {
        data: data(kind, message.user_id, message.other_id, facts),
        r#type: kind.into(),
        timestamp: Time(message.created_at),
    };
    serde_json::to_string(&built).map_err(|_| Failure::Unreadable)
}

/// Returns the members of a message about `user_id` and, after a merge or a move, `from`.
fn data(kind: MessageType, user_id: Uuid, from: Option<Uuid>, facts: Facts) -> Data {
    let user = facts.user;
    let suspended = facts.identity.as_ref().is_some_and(|it| it.suspended);
    let gone = ChangedIdentity::Gone {
        id: facts.identity_id,
        provider: facts.provider,
    };
    let identity = facts.identity.map_or(gone, ChangedIdentity::Present);
    match kind {
        MessageType::UserCreated
        | MessageType::UserUpdated
        | MessageType::UserDisabled
        | MessageType::UserEnabled
        | MessageType::UserDeleted => Data::User(UserChange { user, user_id }),
        MessageType::UserMerged => Data::Merge(Merge {
            from,
            into: user_id,
            user,
            user_id,
            from_claims: facts.from_claims,
        }),
        MessageType::IdentityMoved => Data::Move(Move {
            to: user_id,
            from,
            user,
            user_id,
            identity,
        }),
        MessageType::IdentityLinked
        | MessageType::IdentityUnlinked
        | MessageType::IdentityHeld
        | MessageType::IdentityReleased => Data::Identity(IdentityChange {
            user,
            user_id,
            identity,
        }),
        MessageType::SessionsEnded => {
            let sessions = match (facts.kind.as_str(), facts.reason.as_deref()) {
                ("session_ended", _) | (_, Some("local")) => Ended::One,
                (_, Some("others")) => Ended::Others,
                _ => Ended::All,
            };
            Data::Sessions(SessionsEnded {
                user,
                user_id,
                sessions,
                session_id: facts.session_id.filter(|_| sessions != Ended::All),
            })
        }
        MessageType::RefreshTokenReplayed => Data::Replay(Replay {
            user,
            user_id,
            session_id: facts.session_id,
        }),
        MessageType::ProviderEvent => Data::Report(Report {
            user,
            event: facts.reason,
            reason: facts.cause,
            user_id,
            identity,
            suspended,
            occurred_at: facts.occurred_at,
            sessions_ended: facts.session_count.unwrap_or_default(),
        }),
    }
}
