//! `/api/v1/admin/users`: users for the product's backend, found as on the pages for staff, and
//! created before their first sign-in.

use rocket::http::Status as HttpStatus;
use rocket::http::uri::Origin;
use rocket::{State, get, post};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::guard::{Administrator, Reader, no_longer_valid};
use super::new_user;
use super::parameters::{Parameters, wrong};
use super::store::{self, Created, EventRow, NewUser, STAFF};
use super::{unknown_user, user};
use crate::accounts::sessions::SessionRow;
use crate::accounts::{identities, merging, sessions};
use crate::admin::dates::{begin_of, end_of};
use crate::admin::lists::person::{NoteRow, notes};
use crate::admin::lists::users::filter::Status;
use crate::admin::lists::users::search::{Position, search};
use crate::admin::lists::users::{Cursor, Days, Filters, Sort, Times, day, page};
use crate::admin::pages::users::known;
use crate::database::{Database, Error};
use crate::domain::{Email, UserState, is_subject};
use crate::provider::Providers;
use crate::web::guard::{ClientOrigin, JsonBody};
use crate::web::{Db, ErrorCode, Json, Problem, Problems, failures, resource};

/// The number of users on a page, if the request names none, and the most.
const PAGE: usize = 50;
const MAX_PAGE: usize = 100;
/// The longest text to search for and the longest name of a provider, in characters.
const MAX_TEXT: usize = Email::MAX_LENGTH;

resource!("Administration": find_users, create_user, get_user, list_user_sessions);

failures!(
    pub(super) Wrong: ErrorCode::InvalidRequest
);

failures!(
    pub(super) NoSuchUser: ErrorCode::NoSuchUser
);

failures!(
    /// The errors of a creation, in addition to its guards' errors.
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
    #[serde(flatten)]
    state: UserState,
    /// The day (UTC) of the latest sign-in or refresh; `null` if the user has never signed in.
    #[schema(required = true, format = Date, example = "2026-02-01")]
    last_seen_on: Option<String>,
}

impl From<UserState> for UserRecord {
    fn from(state: UserState) -> Self {
        Self {
            last_seen_on: state.last_seen_on.map(|day| day.to_string()),
            state,
        }
    }
}

/// A user's sessions.
#[derive(Serialize, ToSchema)]
struct SessionRecords {
    /// The sessions, most recently used first.
    sessions: Vec<SessionRow>,
}

/// The most events in a [`DataCopy`].
const MAX_EVENTS: usize = 10_000;

/// Everything that is stored about a user, for a request of theirs, and nothing about staff.
#[derive(Serialize)]
pub(in crate::admin) struct DataCopy {
    user: UserRecord,
    /// The e-mail addresses that the user proved earlier.
    former_addresses: Vec<String>,
    sessions: Vec<SessionRow>,
    notes: Vec<NoteRow>,
    events: Vec<EventRow>,
}

impl DataCopy {
    /// Returns the data, with the latest events, or `None` if there is no such user.
    pub(in crate::admin) async fn of(
        database: &Database,
        id: Uuid,
    ) -> Result<Option<Self>, Problem> {
        let Some(user) = database.run(|_| merging::user(database, id)).await? else {
            return Ok(None);
        };
        let former_addresses = database
            .run(|_| store::former_addresses(database, id))
            .await?;
        let sessions = database.run(|_| sessions::of_user(database, id)).await?;
        let notes = database.run(|_| notes(database, id)).await?.into_iter();
        let events = database
            .run(|_| store::events_of(database, id, Uuid::max(), MAX_EVENTS))
            .await?
            .into_iter();
        Ok(Some(Self {
            user: user.into(),
            former_addresses,
            sessions,
            notes: notes
                .map(|note| NoteRow {
                    author: STAFF.to_owned(),
                    ..note
                })
                .collect(),
            events: events.map(EventRow::without_staff).collect(),
        }))
    }
}

async fn found(
    mut asked: Parameters,
    providers: &State<Providers>,
    db: &Db,
) -> Result<(Vec<Uuid>, Option<String>), Problem> {
    let limit = asked.limit(PAGE, MAX_PAGE)?;
    if let Some(email) = asked.take("email", Email::parse, "must be exactly one e-mail address")? {
        if !asked.is_empty() {
            return Err(wrong(
                "`email` finds one user by itself; leave the other parameters out".into(),
            ));
        }
        return Ok((
            Vec::from_iter(db.run(|_| store::by_email(db, &email)).await?),
            None,
        ));
    }
    let plain = |text: &str| {
        let sound = text.chars().count() <= MAX_TEXT && !text.chars().any(char::is_control);
        sound.then(|| text.trim().to_owned())
    };
    let rule = format!("must have at most {MAX_TEXT} characters, and none that control a terminal");
    let provider = asked.take("provider", plain, &rule)?;
    let subject = |text: &str| is_subject(text).then(|| text.to_owned());
    if let Some(subject) = asked.take(
        "subject",
        subject,
        "must be 1 to 255 ASCII characters, at least one of them visible and none a control character",
    )? {
        let rule = "`subject` finds one user together with `provider`; leave the other parameters out";
        let provider = provider.filter(|_| asked.is_empty()).ok_or_else(|| wrong(rule.into()))?;
        return Ok((Vec::from_iter(db.run(|_| identities::owner(db, &provider, &subject)).await?), None));
    }
    let q = asked.take("q", plain, &rule)?.unwrap_or_default();
    let rule = "must be a day such as 2026-01-31";
    let filters = Filters {
        provider,
        status: asked.choice("status")?,
        created: Times {
            from: asked.take("created_from", |text| begin_of(date(text)?, None), rule)?,
            to: asked.take("created_to", |text| end_of(date(text)?, None), rule)?,
        },
        last_seen: Days {
            from: asked.take("seen_from", |text| day(date(text)?), rule)?,
            to: asked.take("seen_to", |text| day(date(text)?), rule)?,
        },
    };
    let sort: Option<Sort> = asked.choice("sort")?;
    let rule = "must be the `next` of the page before, and the other parameters as there";
    if q.is_empty() {
        let sort = sort.unwrap_or_default();
        let cursor = |text: &str| Cursor::decode(text).filter(|cursor| cursor.sort() == sort);
        let start = asked.take("cursor", cursor, rule)?;
        asked.end()?;
        let page = page(db, &filters, sort, start.as_ref(), limit)
            .await
            .map_err(too_slow)?;
        return Ok((
            page.users.iter().map(|user| user.id).collect(),
            page.after.as_ref().map(Cursor::encode),
        ));
    }
    if sort.is_some() {
        return Err(wrong(
            "a search by `q` has the best match first; leave `sort` out".into(),
        ));
    }
    let start = asked.take("cursor", Position::decode, rule)?;
    asked.end()?;
    let found = search(
        db,
        &q,
        &known(providers, db).await?,
        &filters,
        start.as_ref(),
        limit,
    )
    .await;
    let found = found.map_err(too_slow)?;
    Ok((
        found.users.iter().map(|user| user.id).collect(),
        found.after.as_ref().map(Position::encode),
    ))
}

/// Returns the problem of a list, which may be too slow.
fn too_slow(error: Error) -> Problem {
    let detail = "the list took too long; narrow it by `created_from` and `created_to`, or choose another `sort`";
    if error.is_timeout() {
        Problem::unavailable(60, detail).logged(error.to_string())
    } else {
        error.into()
    }
}

/// Returns a text that is a day and nothing else. The parsers also accept times and weeks.
fn date(text: &str) -> Option<&str> {
    Some(text).filter(|text| text.len() == 10 && begin_of(text, None).is_some())
}

/// Find users
///
/// Returns a page of users: all of them, or users who match a text and filters, as on the pages for
/// staff. `email` alone, or `provider` with `subject`, finds at most one user. An unknown parameter
/// is refused.
#[utoipa::path(
    params(
        ("q" = Option<String>, Query, max_length = 254, example = "ada lovelace",
         description = "A text: an id, an e-mail address, a subject, the beginning of an e-mail address or a name, or words of a name. The best match comes first."),
        ("email" = Option<String>, Query, max_length = 254, example = "ada@example.com",
         description = "The user's whole e-mail address, in upper or lower case."),
        ("provider" = Option<String>, Query, max_length = 254, example = "google",
         description = "The name of a provider that the user has an identity of."),
        ("subject" = Option<String>, Query, min_length = 1, max_length = 255, pattern = "^ *[!-~][ -~]*$",
         description = "The `sub` at that provider."),
        ("status" = inline(Option<Status>), Query,
         description = "`active` users may sign in, `disabled` ones may not, of `suspended` ones no identity may, `unverified` ones have an e-mail address that nobody has verified, and `held` ones an identity that may be a hijacker's."),
        ("created_from" = Option<String>, Query, format = Date, description = "The first day (UTC) of the user's creation."),
        ("created_to" = Option<String>, Query, format = Date, description = "The last day (UTC) of the user's creation."),
        ("seen_from" = Option<String>, Query, format = Date, description = "The first day (UTC) on which the user was last seen."),
        ("seen_to" = Option<String>, Query, format = Date, description = "The last day (UTC) on which the user was last seen."),
        ("sort" = inline(Option<Sort>), Query,
         description = "The order without `q`. `last_seen` begins with the latest, to within 35 days; `email` and `name`, and these backwards, end with the users who have none."),
        ("cursor" = Option<String>, Query, max_length = 2048,
         description = "The `next` of the page before. The other parameters must be as there."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "The most users on the page; 50 by default."),
    ),
    responses(
        (status = 200, description = "The page.", body = UserRecords),
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
    let (ids, next) = found(Parameters::of(uri), providers, db).await?;
    let users = db
        .run(|_| merging::users(db, &ids))
        .await?
        .into_iter()
        .map(UserRecord::from)
        .collect();
    Ok(Json(HttpStatus::Ok, UserRecords { users, next }))
}

/// Get a user
///
/// Returns the user with identities and claims. After a merge, the error about the merged user
/// names the user who remains.
#[utoipa::path(
    params(("id" = Uuid, Path, description = "The user's `id`.")),
    responses(
        (status = 200, description = "The user.", body = UserRecord),
        Problems<(Reader, Db, NoSuchUser)>,
    ),
)]
#[get("/users/<id>")]
async fn get_user(_key: Reader, id: &str, db: &Db) -> Result<Json<UserRecord>, Problem> {
    let id = user(id)?;
    match db.run(|_| merging::user(db, id)).await? {
        Some(user) => Ok(Json(HttpStatus::Ok, user.into())),
        None => Err(missing(db, id).await),
    }
}

/// List a user's sessions
#[utoipa::path(
    params(("id" = Uuid, Path, description = "The user's `id`.")),
    responses(
        (status = 200, description = "The active sessions, most recently used first.", body = SessionRecords),
        Problems<(Reader, Db, NoSuchUser)>,
    ),
)]
#[get("/users/<id>/sessions")]
async fn list_user_sessions(
    _key: Reader,
    id: &str,
    db: &Db,
) -> Result<Json<SessionRecords>, Problem> {
    let id = user(id)?;
    let sessions = db.run(|_| sessions::of_user(db, id)).await?;
    if sessions.is_empty() && !db.run(|_| store::exists(db, id)).await? {
        return Err(missing(db, id).await);
    }
    Ok(Json(HttpStatus::Ok, SessionRecords { sessions }))
}

/// Create a user beforehand
///
/// Creates a user who has not signed in yet. A sign-in with one of the identities signs in this
/// user. So does the first sign-in with the e-mail address as verified by a provider, as with an
/// imported user. An unknown member is refused.
#[utoipa::path(
    request_body(content = NewUser, description = "The user."),
    responses(
        (status = 201, description = "The user was created.", body = UserRecord),
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
    let user = body.read(|body| new_user::parse(body, &providers.names()))?;
    let id = match store::create(db, &user, key.0.actor(), &origin.0).await? {
        Created::Done(id) => id,
        Created::EmailTaken => {
            return Err(Problem::new(
                ErrorCode::EmailTaken,
                "another user has the e-mail address",
            ));
        }
        Created::IdentityTaken => {
            return Err(Problem::new(
                ErrorCode::IdentityTaken,
                "another user has one of the identities",
            ));
        }
        Created::NotPermitted => return Err(no_longer_valid()),
    };
    match db.run(|_| merging::user(db, id)).await? {
        Some(user) => Ok(Json(HttpStatus::Created, user.into())),
        // The user was merged or deleted in the meantime.
        None => Err(missing(db, id).await),
    }
}

/// Returns the answer to a request about a user who does not exist, and may have been merged into
/// another one.
pub(super) async fn missing(database: &Database, id: Uuid) -> Problem {
    let detail = "the user was merged into the one whom `merged_into` names";
    match database.run(|_| merging::merged_into(database, id)).await {
        Ok(None) => unknown_user(),
        Ok(merged_into) => Problem {
            merged_into,
            ..Problem::new(ErrorCode::NoSuchUser, detail)
        },
        Err(error) => error.into(),
    }
}
