//! The statements of the routes for the product's backend, except the list of users.

use serde::Serialize;
use serde_json::Value;
use sqlx::FromRow;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::database::{Database, Error};
use crate::domain::{Actor, Author, CustomClaims, Email, Origin, Role};
use crate::events::settled::{DRAWN, settled};
use crate::events::{SqlAuthor, first_id};

pub async fn by_email(database: &Database, email: &Email) -> Result<Option<Uuid>, Error> {
    let id = sqlx::query_scalar!("SELECT id FROM users WHERE email = $1", email.folded());
    Ok(id.fetch_optional(database).await?)
}

pub async fn exists(database: &Database, id: Uuid) -> Result<bool, Error> {
    let found = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM users WHERE id = $1) AS "found!""#,
        id
    );
    Ok(found.fetch_one(database).await?)
}

/// Returns the e-mail addresses that a user proved earlier.
pub async fn former_addresses(database: &Database, user: Uuid) -> Result<Vec<String>, Error> {
    let emails = sqlx::query_scalar!(
        "SELECT email FROM former_addresses WHERE user_id = $1 ORDER BY email",
        user
    );
    Ok(emails.fetch_all(database).await?)
}

/// A user to create. An `email` or an identity is required.
#[derive(Debug, Default, ToSchema)]
#[schema(as = NewUserRequest)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    /// The e-mail address, exactly one and without a name.
    #[schema(value_type = Option<String>, max_length = 254, example = "ada@example.com")]
    pub email: Option<Email>,
    /// True if you have verified that the address belongs to the user: a person who proves it to a
    /// provider signs in as this user. The default is false.
    #[schema(value_type = Option<bool>, example = true)]
    pub email_verified: bool,
    /// The name to be shown.
    #[schema(max_length = 200, example = "Ada Lovelace")]
    pub name: Option<String>,
    /// An `https` URL of a picture.
    #[schema(max_length = 2048, pattern = "^https://[!-~]*$")]
    pub picture: Option<String>,
    /// Claims for the user's access tokens: an object of at most 1,000 bytes without the names that
    /// have a meaning of their own.
    #[schema(value_type = Option<Object>)]
    pub claims: CustomClaims,
    /// The accounts at identity providers with which the user signs in.
    #[schema(value_type = Option<Vec<NewIdentity>>, max_items = 20,
             example = json!([{ "provider": "google", "subject": "110169484474386276334" }]))]
    pub identities: Vec<NewIdentity>,
}

/// An identity of a user to create.
#[derive(Debug, ToSchema)]
#[schema(as = NewIdentityRequest)]
#[serde(deny_unknown_fields)]
pub struct NewIdentity {
    /// The name of a configured provider.
    pub provider: String,
    /// The account's `sub` at the provider.
    #[schema(min_length = 1, max_length = 255, pattern = "^ *[!-~][ -~]*$")]
    pub subject: String,
    /// The account's e-mail address; by default the user's.
    #[schema(value_type = Option<String>, max_length = 254)]
    pub email: Option<Email>,
    /// True if the provider has verified it; by default as with the user.
    #[schema(value_type = Option<bool>)]
    pub email_verified: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    Done(Uuid),
    EmailTaken,
    IdentityTaken,
    NotPermitted,
}

/// Creates a user; see `create_user.sql`.
pub async fn create(
    database: &Database,
    user: &NewUser,
    actor: Actor<'_>,
    origin: &Origin,
) -> Result<Created, Error> {
    let author = SqlAuthor::needing(
        Role::Admin,
        Author {
            actor,
            reason: None,
            origin,
        },
    );
    let create = async || {
        let id = Uuid::now_v7();
        let new = &user.identities;
        let emails: Vec<_> = new
            .iter()
            .map(|identity| identity.email.as_ref().map(Email::as_given))
            .collect();
        let outcome = sqlx::query_file_scalar!(
            "src/admin/api/create_user.sql",
            id,
            user.email.as_ref().map(Email::folded),
            user.email_verified,
            user.name,
            user.picture,
            (!user.claims.is_empty()).then(|| user.claims.json()),
            &new.iter().map(|_| Uuid::now_v7()).collect::<Vec<_>>(),
            &new.iter()
                .map(|identity| identity.provider.as_str())
                .collect::<Vec<_>>() as &[&str],
            &new.iter()
                .map(|identity| identity.subject.as_str())
                .collect::<Vec<_>>() as &[&str],
            &emails as &[Option<&str>],
            &new.iter()
                .map(|identity| identity.email_verified)
                .collect::<Vec<_>>(),
            author as SqlAuthor<'_>,
        );
        match outcome.fetch_one(database).await?.as_str() {
            "created" => Ok(Created::Done(id)),
            "email_taken" => Ok(Created::EmailTaken),
            "identity_taken" => Ok(Created::IdentityTaken),
            "not_permitted" => Ok(Created::NotPermitted),
            outcome => Err(Error::unexpected(outcome)),
        }
    };
    let is_undone =
        |created: &Created| matches!(created, Created::EmailTaken | Created::IdentityTaken);
    database.change(create, is_undone).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimsSet {
    Done,
    NoSuchUser,
    NotPermitted,
}

/// Sets a user's claims, and records it if they differ. No claims are stored as NULL.
pub async fn set_claims(
    database: &Database,
    user: Uuid,
    claims: &CustomClaims,
    by: Author<'_>,
) -> Result<ClaimsSet, Error> {
    let row = sqlx::query!(
        r#"WITH permitted AS MATERIALIZED (
               SELECT author_allowed($3) AS yes
           ),
           changed AS (
               UPDATE users SET claims = nullif($2::text::jsonb, '{}'), updated_at = now()
               WHERE id = $1 AND claims IS DISTINCT FROM nullif($2::text::jsonb, '{}') AND (SELECT yes FROM permitted)
               RETURNING id, claims
           ),
           recorded AS (
               INSERT INTO events
               SELECT e.* FROM changed c, event_row($3, 'claims_changed', c.id,
                                                detail => jsonb_build_object('claims', coalesce(c.claims, '{}'))) AS e
           )
           SELECT EXISTS (SELECT FROM users WHERE id = $1) AS "found!", yes AS "permitted!" FROM permitted"#,
        user,
        claims.json(),
        SqlAuthor::needing(Role::Admin, by) as SqlAuthor<'_>,
    );
    let row = row.fetch_one(database).await?;
    Ok(match (row.permitted, row.found) {
        (false, _) => ClaimsSet::NotPermitted,
        (true, false) => ClaimsSet::NoSuchUser,
        (true, true) => ClaimsSet::Done,
    })
}

/// An event.
#[derive(Debug, Clone, FromRow, Serialize, ToSchema)]
#[schema(as = EventRecord)]
pub struct EventRow {
    /// The event's id, a UUID of version 7. Ids grow with time. For the event of a sign-in it is
    /// also the session's id.
    pub id: Uuid,
    /// The time of the event.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// The kind, such as `user_created`. New releases may add kinds.
    #[schema(example = "user_created")]
    pub kind: String,
    /// The reason of a refusal, which is the name of the error, or more about the kind.
    #[schema(required = true)]
    pub reason: Option<String>,
    /// The user concerned.
    #[schema(required = true)]
    pub user_id: Option<Uuid>,
    /// The session concerned; `null` for a sign-in, whose session has the event's `id`.
    #[schema(required = true)]
    pub session_id: Option<Uuid>,
    /// The name of the provider.
    #[schema(required = true, example = "google")]
    pub provider: Option<String>,
    /// The e-mail address that a refused token claimed, that staff searched for, or of a user who
    /// was merged.
    #[schema(required = true)]
    pub email: Option<String>,
    /// The member of staff, the operator, the API key (`key:…`) or the provider (`provider:…`) that
    /// caused the event; `null` for the user.
    #[schema(required = true)]
    pub actor: Option<String>,
    /// The IP address of the request.
    #[schema(required = true, example = "203.0.113.7")]
    pub ip: Option<String>,
    /// The `User-Agent` header of the request.
    #[schema(required = true, example = "VestibuleDemo/1.4 (Android 17)")]
    pub user_agent: Option<String>,
    /// The id of the request in the service's log.
    #[schema(required = true, example = "0199a6c2f0c47d51b3c59c8d2f6a7e10")]
    pub request_id: Option<String>,
    /// More about the event, by its kind.
    #[schema(required = true, value_type = Option<Object>)]
    pub detail: Option<Value>,
}

/// The name of every member of staff to other people.
pub(super) const STAFF: &str = "staff";

impl EventRow {
    /// Returns the event without data about an author other than the user: a member's e-mail
    /// address, and the origin of the request.
    pub(super) fn without_staff(mut self) -> Self {
        if let Some(Value::Object(detail)) = &mut self.detail {
            detail.remove("member");
        }
        match self.actor {
            None => self,
            Some(actor) => {
                let actor = if Actor::is_staff(&actor) {
                    STAFF.to_owned()
                } else {
                    actor
                };
                Self {
                    actor: Some(actor),
                    ip: None,
                    user_agent: None,
                    request_id: None,
                    ..self
                }
            }
        }
    }
}

const EVENT: &str =
    "SELECT id, created_at, kind, reason, user_id, session_id, provider, email, actor, host(ip) AS ip,
    user_agent, request_id, detail FROM events";

pub async fn events_of(
    database: &Database,
    user: Uuid,
    before: Uuid,
    limit: usize,
) -> Result<Vec<EventRow>, Error> {
    let sql = format!("{EVENT} WHERE user_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3");
    let query = sqlx::query_as(sqlx::AssertSqlSafe(sql))
        .bind(user)
        .bind(before)
        .bind(count(limit));
    Ok(query
        .persistent(false)
        .fetch_all(database.planned_each_time())
        .await?)
}

/// Returns the events after the event `after`, oldest first, up to the point where they are
/// complete: no event before it can appear later. See [`settled`].
pub async fn events_after(
    database: &Database,
    after: Uuid,
    limit: usize,
) -> Result<Vec<EventRow>, Error> {
    let before = first_id(settled(database).await? - DRAWN);
    let sql = format!("{EVENT} WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3");
    let query = sqlx::query_as(sqlx::AssertSqlSafe(sql))
        .bind(after)
        .bind(before)
        .bind(count(limit));
    Ok(query
        .persistent(false)
        .fetch_all(database.planned_each_time())
        .await?)
}

fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
