//! `/api/v1/admin/users`: users for the product's backend, found as on the pages for staff, and created beforehand.

use std::net::IpAddr;

use rocket::http::Status as HttpStatus;
use rocket::http::uri::Origin;
use rocket::{State, get, post};
use serde::Serialize;
use sqlx::PgPool;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::examples;
use super::guard::{Administrator, Reader};
use super::new_user::{self, NewUserRequest};
use super::parameters::{Parameters, wrong};
use super::store::{self, Created, EventRow, IdentityRow, UserRow};
use super::{unknown_user, user};
use crate::admin::dates::{begin_of, end_of};
use crate::admin::person::store::{NoteRow, notes};
use crate::admin::users::known;
use crate::admin::users::store::search::{Position, search};
use crate::admin::users::store::{Cursor, Days, Filters, Sort, Times, day, page};
use crate::domain::claims::is_subject;
use crate::domain::custom_claims::CustomClaims;
use crate::domain::email::Email;
use crate::provider::Providers;
use crate::store::error::retrying;
use crate::store::sessions::{self, SessionRow};
use crate::store::{identities, merging};
use crate::web::api::view::Json;
use crate::web::database::Db;
use crate::web::guard::{ClientOrigin, JsonBody};
use crate::web::openapi::problems::{Problems, failures};
use crate::web::problem::{ErrorCode, Problem};
use crate::web::resource::resource;

/// The number of users on a page, if the request names none, and the most.
const PAGE: usize = 50;
const MAX_PAGE: usize = 100;
/// The longest text to search for and the longest name of a provider, in characters.
const MAX_TEXT: usize = Email::MAX_LENGTH;

const PARAMETERS: [&str; 12] = [
    "q",
    "email",
    "provider",
    "subject",
    "status",
    "created_from",
    "created_to",
    "seen_from",
    "seen_to",
    "sort",
    "cursor",
    "limit",
];

resource!("Administration": find_users, create_user, get_user, list_user_sessions);

failures!(
    /// The errors of parameters.
    pub(super) Wrong: ErrorCode::InvalidRequest
);

failures!(
    /// The error that there is no such user.
    pub(super) NoSuchUser: ErrorCode::NoSuchUser
);

failures!(
    /// The errors of a creation beside those of the guards.
    NotCreated: ErrorCode::EmailTaken, ErrorCode::IdentityTaken
);

/// A page of users.
#[derive(Serialize, ToSchema)]
struct UserRecords {
    /// The users, in order.
    users: Vec<UserRecord>,
    /// The `cursor` of the next page; `null` on the last.
    #[schema(required = true)]
    next: Option<String>,
}

/// A user as the product's backend sees them.
#[derive(Serialize, ToSchema)]
pub(super) struct UserRecord {
    /// The user's id, which is the `sub` of access tokens and is never reused.
    id: Uuid,
    /// The e-mail address in lower case, unique among users; `null` if there is none.
    #[schema(required = true)]
    email: Option<String>,
    /// True if a provider, an import or a backend has verified the e-mail address.
    email_verified: bool,
    /// The name to be shown.
    #[schema(required = true)]
    name: Option<String>,
    /// The URL of a picture.
    #[schema(required = true)]
    picture: Option<String>,
    /// The time at which the user was created.
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// The time of the latest change to the user or the set of identities.
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
    /// The time at which the user was disabled; `null` if they may sign in.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required = true)]
    disabled_at: Option<OffsetDateTime>,
    /// The day (UTC) of the latest sign-in or refresh; `null` if the user has never signed in.
    #[schema(required = true, format = Date)]
    last_seen_on: Option<String>,
    /// The claims in the user's access tokens that a backend has set.
    #[schema(value_type = Object)]
    claims: CustomClaims,
    /// The user's identities, oldest first.
    identities: Vec<IdentityRow>,
}

impl TryFrom<UserRow> for UserRecord {
    type Error = Problem;

    fn try_from(row: UserRow) -> Result<Self, Problem> {
        let claims = CustomClaims::stored(row.claims.as_deref());
        Ok(Self {
            id: row.id,
            email: row.email,
            email_verified: row.email_verified,
            name: row.name,
            picture: row.picture,
            created_at: row.created_at,
            updated_at: row.updated_at,
            disabled_at: row.disabled_at,
            last_seen_on: row.last_seen_on.map(|day| day.to_string()),
            claims: claims.map_err(|error| Problem::internal().logged(error.to_string()))?,
            identities: row.identities.0,
        })
    }
}

/// A user's sessions.
#[derive(Serialize, ToSchema)]
struct SessionRecords {
    /// The sessions, most recently used first.
    sessions: Vec<SessionRecord>,
}

/// A session of a user.
#[derive(Serialize, ToSchema)]
struct SessionRecord {
    /// The session's id, which is the `sid` of its access tokens.
    id: Uuid,
    /// The name of the provider that the user signed in with.
    provider: String,
    /// The time at which the session was opened.
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// The time of the last refresh.
    #[serde(with = "time::serde::rfc3339")]
    last_used_at: OffsetDateTime,
    /// The IPv4 or IPv6 address that the session was opened from.
    #[schema(required = true, value_type = Option<String>)]
    ip: Option<IpAddr>,
    /// The `User-Agent` header of the sign-in.
    #[schema(required = true)]
    user_agent: Option<String>,
    /// The owner's name for the device, as the sign-in gave it.
    #[schema(required = true)]
    device_name: Option<String>,
    /// The platform that the device runs, as the sign-in gave it.
    #[schema(required = true)]
    device_platform: Option<String>,
}

impl From<SessionRow> for SessionRecord {
    fn from(row: SessionRow) -> Self {
        Self {
            id: row.id,
            provider: row.provider,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
            ip: row.ip,
            user_agent: row.user_agent,
            device_name: row.device_name,
            device_platform: row.device_platform,
        }
    }
}

/// The most events in a [`DataCopy`].
const MAX_EVENTS: usize = 10_000;

/// Everything that is stored about a user, for a request of theirs.
#[derive(Serialize)]
pub(in crate::admin) struct DataCopy {
    user: UserRecord,
    sessions: Vec<SessionRecord>,
    notes: Vec<NoteRow>,
    events: Vec<EventRow>,
}

impl DataCopy {
    /// Returns the data, with the latest events, or `None` if there is no such user.
    pub(in crate::admin) async fn of(pool: &PgPool, id: Uuid) -> Result<Option<Self>, Problem> {
        let Some(user) = retrying!(store::users(pool, &[id]))?.pop() else { return Ok(None) };
        let sessions = retrying!(sessions::of_user(pool, id))?.into_iter().map(Into::into).collect();
        let notes = retrying!(notes(pool, id))?;
        let events = retrying!(store::events_of(pool, id, Uuid::max(), MAX_EVENTS))?;
        Ok(Some(Self { user: user.try_into()?, sessions, notes, events }))
    }
}

/// A state of users, as in a search.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "it describes what the list of users reads")]
enum UserStatus {
    Active,
    Disabled,
    Unverified,
    /// With an identity that a hijacker may have linked.
    Held,
}

/// An order of users.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case", default = "newest")]
#[expect(dead_code, reason = "it describes what the list of users reads")]
enum UserSort {
    Newest,
    Oldest,
    LastSeen,
    Email,
    Name,
}

/// The users to find.
enum Wanted {
    /// The one with that e-mail address.
    Email(Email),
    /// The one with that identity: provider and subject.
    Identity(String, String),
    /// Those who match the text and the filters.
    Matching(String, Filters, Option<Position>),
    /// Those who pass the filters.
    Listed(Filters, Sort, Option<Cursor>),
}

/// Reads the parameters of a search, and the number of users on a page.
fn wanted(uri: &Origin<'_>) -> Result<(Wanted, usize), Problem> {
    let asked = Parameters::read(uri, &PARAMETERS)?;
    let limit = asked.limit(PAGE, MAX_PAGE)?;
    let plain = |text: &str| {
        let sound = text.chars().count() <= MAX_TEXT && !text.chars().any(char::is_control);
        sound.then(|| text.trim().to_owned())
    };
    let rule = format!("must have at most {MAX_TEXT} characters, and none that control a terminal");
    let q = asked.parse("q", plain, &rule)?.unwrap_or_default();
    let provider = asked.parse("provider", plain, &rule)?;
    if let Some(email) = asked.parse("email", Email::parse, "must be exactly one e-mail address")? {
        if asked.has_beside(&["email", "limit"]) {
            return Err(wrong("`email` finds one user by itself; leave the other parameters out".into()));
        }
        return Ok((Wanted::Email(email), limit));
    }
    let subject = |text: &str| is_subject(text).then(|| text.to_owned());
    if let Some(subject) = asked.parse("subject", subject, "must be 1 to 255 visible ASCII characters")? {
        let rule = "`subject` finds one user together with `provider`; leave the other parameters out";
        let provider = provider.filter(|_| !asked.has_beside(&["provider", "subject", "limit"]));
        let provider = provider.ok_or_else(|| wrong(rule.into()))?;
        return Ok((Wanted::Identity(provider, subject), limit));
    }
    let rule = "must be a day such as 2026-01-31";
    let filters = Filters {
        provider,
        status: asked.parse(
            "status",
            |name| name.parse().ok(),
            "must be active, disabled, unverified or held",
        )?,
        created: Times {
            from: asked.parse("created_from", |text| begin_of(date(text)?, None), rule)?,
            to: asked.parse("created_to", |text| end_of(date(text)?, None), rule)?,
        },
        last_seen: Days {
            from: asked.parse("seen_from", |text| day(date(text)?), rule)?,
            to: asked.parse("seen_to", |text| day(date(text)?), rule)?,
        },
    };
    let rule = "must be newest, oldest, last_seen, email or name";
    let sort: Option<Sort> = asked.parse("sort", |name| name.parse().ok(), rule)?;
    let rule = "must be the `next` of the page before, and the other parameters as there";
    if q.is_empty() {
        let sort = sort.unwrap_or_default();
        let cursor = |text: &str| Cursor::decode(text).filter(|cursor| cursor.sort() == sort);
        Ok((Wanted::Listed(filters, sort, asked.parse("cursor", cursor, rule)?), limit))
    } else if sort.is_some() {
        Err(wrong("a search by `q` has the best match first; leave `sort` out".into()))
    } else {
        Ok((Wanted::Matching(q, filters, asked.parse("cursor", Position::decode, rule)?), limit))
    }
}

/// Returns a text that is a day and nothing else. The parsers also accept times and weeks.
fn date(text: &str) -> Option<&str> {
    Some(text).filter(|text| text.len() == 10 && begin_of(text, None).is_some())
}

/// Find users
///
/// Returns a page of users: all of them, or those that match a text and filters, as on the pages for staff. `email`
/// alone, or `provider` with `subject`, finds at most one user. An unknown parameter is refused.
#[utoipa::path(
    params(
        ("q" = Option<String>, Query, max_length = 254, example = "ada lovelace",
         description = "A text: an id, an e-mail address, a subject, the beginning of an e-mail address or a name, or words of a name. The best match comes first."),
        ("email" = Option<String>, Query, max_length = 254, example = "ada@example.com",
         description = "The user's whole e-mail address, in upper or lower case."),
        ("provider" = Option<String>, Query, max_length = 254, example = "google",
         description = "The name of a provider that the user has an identity of."),
        ("subject" = Option<String>, Query, min_length = 1, max_length = 255, pattern = "^[!-~]+$",
         description = "The `sub` at that provider."),
        ("status" = inline(Option<UserStatus>), Query,
         description = "`active` users may sign in, `disabled` ones may not, and `unverified` ones have an e-mail address that nobody has verified."),
        ("created_from" = Option<String>, Query, format = Date, description = "The first day (UTC) of the user's creation."),
        ("created_to" = Option<String>, Query, format = Date, description = "The last day (UTC) of the user's creation."),
        ("seen_from" = Option<String>, Query, format = Date, description = "The first day (UTC) on which the user was last seen."),
        ("seen_to" = Option<String>, Query, format = Date, description = "The last day (UTC) on which the user was last seen."),
        ("sort" = inline(Option<UserSort>), Query,
         description = "The order without `q`. `last_seen` begins with the latest, of more than 5,000 users to within 35 days; `email` and `name` end with the users who have none."),
        ("cursor" = Option<String>, Query, max_length = 2048,
         description = "The `next` of the page before. The other parameters must be as there."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "The most users on the page; 50 by default."),
    ),
    responses(
        (status = 200, description = "The page. It is empty if nobody matches.", body = UserRecords,
         example = json!(examples::users())),
        Problems<(Reader, Db, Wrong)>,
    ),
)]
#[get("/users")]
async fn find_users(
    _key: Reader,
    uri: &Origin<'_>,
    providers: &State<Providers>,
    db: &Db,
) -> Result<Json<UserRecords>, Problem> {
    let ((wanted, limit), pool) = (wanted(uri)?, db.pool());
    let (ids, next) = match wanted {
        Wanted::Email(email) => (Vec::from_iter(retrying!(store::by_email(pool, &email))?), None),
        Wanted::Identity(provider, subject) => {
            (Vec::from_iter(retrying!(identities::owner(pool, &provider, &subject))?), None)
        }
        Wanted::Matching(text, filters, start) => {
            let providers = known(providers, db).await?;
            let found = search(pool, &text, &providers, &filters, start.as_ref(), limit).await?;
            let ids = found.users.iter().map(|user| user.id).collect();
            (ids, found.after.as_ref().map(Position::encode))
        }
        Wanted::Listed(filters, sort, start) => {
            let page = page(pool, &filters, sort, start.as_ref(), limit).await?;
            (page.users.iter().map(|user| user.id).collect(), page.after.as_ref().map(Cursor::encode))
        }
    };
    let users =
        retrying!(store::users(pool, &ids))?.into_iter().map(UserRecord::try_from).collect::<Result<_, _>>();
    Ok(Json(HttpStatus::Ok, UserRecords { users: users?, next }))
}

/// Get a user
///
/// Returns the user with identities and claims. After a merge, the error about the user who is no more names the one
/// who remains.
#[utoipa::path(
    params(("id" = Uuid, Path, description = "The user's `id`.")),
    responses(
        (status = 200, description = "The user.", body = UserRecord, example = json!(examples::user())),
        Problems<(Reader, Db, NoSuchUser)>,
    ),
)]
#[get("/users/<id>")]
async fn get_user(_key: Reader, id: &str, db: &Db) -> Result<Json<UserRecord>, Problem> {
    let id = user(id)?;
    match retrying!(store::users(db.pool(), &[id]))?.pop() {
        Some(user) => Ok(Json(HttpStatus::Ok, user.try_into()?)),
        None => Err(missing(db.pool(), id).await),
    }
}

/// List a user's sessions
#[utoipa::path(
    params(("id" = Uuid, Path, description = "The user's `id`.")),
    responses(
        (status = 200, description = "The active sessions, most recently used first.", body = SessionRecords,
         example = json!(examples::sessions())),
        Problems<(Reader, Db, NoSuchUser)>,
    ),
)]
#[get("/users/<id>/sessions")]
async fn list_user_sessions(_key: Reader, id: &str, db: &Db) -> Result<Json<SessionRecords>, Problem> {
    let id = user(id)?;
    let sessions: Vec<_> = retrying!(sessions::of_user(db.pool(), id))?.into_iter().map(Into::into).collect();
    if sessions.is_empty() && !retrying!(store::exists(db.pool(), id))? {
        return Err(missing(db.pool(), id).await);
    }
    Ok(Json(HttpStatus::Ok, SessionRecords { sessions }))
}

/// Create a user beforehand
///
/// Creates a user who has not signed in yet. Whoever signs in with one of the identities is this user, and so is the
/// first to sign in with the e-mail address as verified by a provider, as with an imported user. An unknown member is
/// refused.
#[utoipa::path(
    request_body(content = NewUserRequest, description = "The user.", example = json!(examples::new_user())),
    responses(
        (status = 201, description = "The user was created.", body = UserRecord, example = json!(examples::user())),
        Problems<((Administrator, JsonBody, Db), NotCreated)>,
    ),
)]
#[post("/users", data = "<body>")]
async fn create_user(
    key: Administrator,
    body: JsonBody,
    providers: &State<Providers>,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Json<UserRecord>, Problem> {
    let user = new_user::parse(&body.0, &providers.names())?;
    let id = match store::create(db.pool(), &user, key.0.actor(), &origin.0).await? {
        Created::Done(id) => id,
        Created::EmailTaken => {
            return Err(Problem::new(ErrorCode::EmailTaken, "another user has the e-mail address"));
        }
        Created::IdentityTaken => {
            return Err(Problem::new(ErrorCode::IdentityTaken, "another user has one of the identities"));
        }
    };
    match retrying!(store::users(db.pool(), &[id]))?.pop() {
        Some(user) => Ok(Json(HttpStatus::Created, user.try_into()?)),
        // The user was merged or deleted in the meantime.
        None => Err(missing(db.pool(), id).await),
    }
}

/// Returns the answer to a request about a user who does not exist, and may have been merged into another one.
pub(super) async fn missing(pool: &PgPool, id: Uuid) -> Problem {
    let detail = "the user was merged into the one whom `merged_into` names";
    match async { retrying!(merging::merged_into(pool, id)) }.await {
        Ok(None) => unknown_user(),
        Ok(merged_into) => Problem { merged_into, ..Problem::new(ErrorCode::NoSuchUser, detail) },
        Err(error) => error.into(),
    }
}
