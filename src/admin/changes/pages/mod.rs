//! The pages of changes to users: the search for the other user, the confirmation, and the form. If a user has changed since
//! the confirmation was shown, or something was typed wrongly, nothing is done and it is shown again.

pub(in crate::admin) mod find;
pub(in crate::admin) mod receipt;
mod words;

use rocket::http::Status;
use rocket::http::uri::Segments;
use rocket::http::uri::fmt::Path;
use rocket::response::Redirect;
use rocket::{Either, FromForm, Route, State, get, post, routes};
use serde::Serialize;
use uuid::Uuid;

use self::find::find;
pub(in crate::admin) use self::words::{done, refused};
use crate::admin::changes::{Change, Outcome, Preview, make, preview, store};
use crate::admin::naming::isolated;
use crate::admin::{Answer, Failure, Page, Question, Signed, Staff, StaffForm, device, record};
use crate::config;
use crate::domain::{Role, UserState, merged};
use crate::provider::Providers;
use crate::store::{Look, retrying, sessions};
use crate::web::Db;
use crate::web::guard::ClientOrigin;

pub(in crate::admin) fn routes() -> Vec<Route> {
    routes![ask, confirm, receipt::receipt]
}

/// A user whom a change concerns, or the one who remains of two.
#[derive(Serialize)]
struct UserCard {
    /// The user's part in the change.
    part: &'static str,
    #[serde(flatten)]
    user: UserState,
    last_seen_on: Option<String>,
    /// The number of live sessions.
    sessions: i64,
    notes: i64,
}

const KEPT: &str = "stays";
const DELETED: &str = "will be deleted";

impl UserCard {
    fn new(part: &'static str, user: &UserState) -> Self {
        Self {
            part,
            last_seen_on: user.last_seen_on.map(|day| day.to_string()),
            sessions: user.sessions(),
            notes: user.notes,
            user: user.clone(),
        }
    }
}

#[derive(Serialize)]
pub(in crate::admin) struct Confirmation {
    #[serde(flatten)]
    question: Question,
    cards: Vec<UserCard>,
    /// The one who remains of a merge.
    after: Option<UserCard>,
    /// The single identity that the change is made to.
    identity: Option<Uuid>,
    refused: Option<&'static str>,
    /// True if a user has changed, so that the confirmed change was not made.
    stale: bool,
    /// The URL of the same change in the other direction.
    reverse: Option<String>,
}

impl Confirmation {
    /// Creates the page of a preview, which began on the page of `back` if that is one of the change's users. Access tokens are
    /// valid for `ttl` seconds.
    fn new(preview: &Preview, device: Option<&str>, back: Option<Uuid>, ttl: u32) -> Self {
        let change = &preview.change;
        let (user, name) = (change.user(), words::name(change.user()));
        let identity = change.identity().map(|identity| identity.id);
        let card = UserCard::new;
        let (cards, after, other) = match change {
            Change::Merge { from, into } => (
                vec![card(KEPT, into), card(DELETED, from)],
                Some(card("", &merged(from, into))),
                Some(("into", into)),
            ),
            Change::Move { from, to, .. } => (
                vec![card("loses the identity", from), card("gets the identity", to)],
                None,
                Some(("to", to)),
            ),
            Change::Delete { user } => (vec![card(DELETED, user)], None, None),
            Change::Unlink { user, .. } | Change::Release { user, .. } => {
                (vec![card("has the identity", user)], None, None)
            }
            _ => (vec![], None, None),
        };
        let began = other.map(|(_, other)| other).filter(|other| Some(other.id) == back).unwrap_or(user);
        let reverse = other
            .filter(|_| after.is_some())
            .map(|(_, into)| format!("/admin/users/{}/merge?into={}&back={}", into.id, user.id, began.id));
        let (title, button) = words::title(change, &name);
        let effects = words::effects(change, device, ttl);
        let session = match change {
            Change::EndSession { session, .. } => Some(*session),
            _ => None,
        };
        let trail = vec![
            ("/admin/users".into(), "Users".into()),
            (format!("/admin/users/{}", began.id), words::name(began)),
        ];
        // The fingerprint of the preview, and the other user.
        let seen = change.needs_preview().then(|| ("seen", preview.fingerprint()));
        let other =
            other.map(|(field, other)| [(field, other.id.to_string()), ("back", began.id.to_string())]);
        let mut question = Question {
            changes: effects.changes,
            warnings: effects.warnings,
            fields: seen.into_iter().chain(other.into_iter().flatten()).collect(),
            is_final: matches!(change, Change::Delete { .. } | Change::Merge { .. }),
            ..Question::new(title, trail, path(user.id, identity, session, change.name()), &button)
        };
        if let Change::Delete { .. } = change {
            question.hint = words::DELETION_HINT;
        }
        let refused = preview.refused.map(words::refused);
        Self { question, cards, after, identity, refused, stale: false, reverse }
    }
}

struct Visit<'r> {
    staff: Staff,
    db: &'r Db,
    /// The lifetime of access tokens, in seconds.
    access_token_ttl: u32,
    origin: ClientOrigin,
    /// The user on whose page it began.
    back: Option<Uuid>,
}

impl Visit<'_> {
    /// Returns the preview of a change, for those who may make it.
    async fn preview(&self, change: Change) -> Result<Preview, Failure> {
        let member = &self.staff.member;
        if change.role() == Role::Admin && member.role != Role::Admin {
            return Err(Status::Forbidden.into());
        }
        Ok(preview(self.db.pool(), change, &member.email).await?.ok_or(Status::NotFound)?)
    }

    /// Shows the confirmation of a change, altered, after recording that its users were viewed.
    async fn show(&self, preview: &Preview, alter: impl FnOnce(&mut Confirmation)) -> Result<Page, Failure> {
        let pool = self.db.pool();
        let mut device = None;
        if let Change::EndSession { session, user } = &preview.change {
            let sessions = retrying!(sessions::of_user(pool, user.id))?;
            let row = sessions.into_iter().find(|row| row.id == *session);
            device = row.map(|row| {
                let own = [row.device_name, row.device_platform].into_iter().flatten().collect::<Vec<_>>();
                let app = row.user_agent.as_deref().map(device::in_words);
                let words = if own.is_empty() { app } else { Some(own.join(", ")) };
                words.map_or_else(|| "an unknown device".into(), |words| isolated(&words))
            });
        }
        let mut page = Confirmation::new(preview, device.as_deref(), self.back, self.access_token_ttl);
        alter(&mut page);
        for id in [Some(preview.change.user()), preview.change.other()].into_iter().flatten() {
            record(pool, &self.staff.member, Look::person(id.id), &self.origin.0).await?;
        }
        Ok(Page::new(&self.staff, "admin/confirm", &page))
    }

    /// Makes a change that its form confirms. If nothing was done, shows why, in the confirmation.
    async fn confirm(&self, change: Change, form: &StaffForm) -> Result<Answer, Failure> {
        let (pool, preview) = (self.db.pool(), self.preview(change).await?);
        let typed = form.get("reason").unwrap_or_default().to_owned();
        let Ok(reason) = form.reason() else {
            let page = self.show(&preview, |page| page.question.refuse(form.get("reason"))).await?;
            return Ok(Either::Right(page.with(Status::BadRequest)));
        };
        let by = self.staff.by(&reason, &self.origin.0);
        let seen = change.needs_preview().then(|| form.get("seen").unwrap_or_default());
        let (user, kept) = (change.user(), change.other().unwrap_or(change.user()));
        match make(pool, &preview, seen, by).await? {
            Outcome::Done if matches!(change, Change::Delete { .. }) => {
                let number = retrying!(store::deletion_of(pool, *user))?.ok_or(Status::NotFound)?;
                Ok(Either::Left(Redirect::to(receipt::path(number))))
            }
            Outcome::Done => {
                let none =
                    matches!(change, Change::EndSessions { .. }) && preview.change.user().sessions() == 0;
                let done = if none { "nothing" } else { change.name() };
                Ok(Either::Left(Redirect::to(format!("/admin/users/{kept}?done={done}"))))
            }
            Outcome::NotPermitted => Err(Status::Forbidden.into()),
            Outcome::Changed | Outcome::Refused(_) => {
                let preview = self.preview(change).await?;
                let stale = preview.refused.is_none();
                let again = |page: &mut Confirmation| (page.stale, page.question.reason) = (stale, typed);
                let page = self.show(&preview, again).await?;
                Ok(Either::Right(page.with(Status::Conflict)))
            }
        }
    }
}

fn id(text: &str) -> Result<Uuid, Status> {
    Uuid::parse_str(text).map_err(|_| Status::NotFound)
}

fn path(user: Uuid, identity: Option<Uuid>, session: Option<Uuid>, change: &str) -> String {
    match (identity, session) {
        (Some(identity), _) => format!("/admin/users/{user}/identities/{identity}/{change}"),
        (None, Some(session)) => format!("/admin/users/{user}/sessions/{session}/end"),
        (None, None) => format!("/admin/users/{user}/{change}"),
    }
}

enum Wanted {
    Change(Change),
    /// The other user of a merge, or of the move of that identity.
    Other(Option<Uuid>),
}

/// Reads the path of a change below its user's. `other` is the second user.
fn wanted(user: Uuid, below: Segments<'_, Path>, other: Option<&str>) -> Result<Wanted, Status> {
    let (below, other) = (below.collect::<Vec<_>>(), other.map(id).transpose()?);
    Ok(Wanted::Change(match (&below[..], other) {
        (["delete"], _) => Change::Delete { user },
        (["disable"], _) => Change::Disable { user },
        (["enable"], _) => Change::Enable { user },
        (["end-sessions"], _) => Change::EndSessions { user },
        (["sessions", session, "end"], _) => Change::EndSession { session: id(session)?, user },
        (["identities", identity, "unlink"], _) => Change::Unlink { identity: id(identity)?, user },
        (["identities", identity, "release"], _) => Change::Release { identity: id(identity)?, user },
        (["identities", identity, "move"], Some(to)) => {
            Change::Move { identity: id(identity)?, from: user, to }
        }
        (["merge"], Some(into)) => Change::Merge { from: user, into },
        (["identities", identity, "move"], None) => return Ok(Wanted::Other(Some(id(identity)?))),
        (["merge"], None) => return Ok(Wanted::Other(None)),
        _ => return Err(Status::NotFound),
    }))
}

#[derive(FromForm)]
struct Asked<'r> {
    into: Option<&'r str>,
    to: Option<&'r str>,
    /// The search for the other user.
    q: Option<&'r str>,
    back: Option<&'r str>,
    /// What was typed before the sign-in that came between.
    reason: Option<&'r str>,
}

#[expect(clippy::too_many_arguments, reason = "they are the parts of the request")]
#[get("/users/<user>/<below..>?<asked..>", rank = 2)]
async fn ask(
    staff: Staff,
    user: &str,
    below: Segments<'_, Path>,
    asked: Asked<'_>,
    db: &Db,
    providers: &State<Providers>,
    settings: &State<config::Session>,
    origin: ClientOrigin,
) -> Result<Page, Failure> {
    let (user, back) = (id(user)?, asked.back.and_then(|back| Uuid::parse_str(back).ok()));
    let visit = Visit { staff, db, access_token_ttl: settings.access_token_ttl, origin, back };
    match wanted(user, below, asked.into.or(asked.to))? {
        Wanted::Other(moved) => find(&visit, providers, user, moved, asked.q).await,
        Wanted::Change(change) => {
            let reason = asked.reason.unwrap_or_default().to_owned();
            visit.show(&visit.preview(change).await?, |page| page.question.reason = reason).await
        }
    }
}

#[post("/users/<user>/<below..>", data = "<sent>", rank = 2)]
async fn confirm(
    user: &str,
    below: Segments<'_, Path>,
    sent: Signed,
    db: &Db,
    settings: &State<config::Session>,
    origin: ClientOrigin,
) -> Result<Answer, Failure> {
    let Signed { staff, form } = sent;
    let back = form.get("back").and_then(|back| Uuid::parse_str(back).ok());
    match wanted(id(user)?, below, form.get("into").or(form.get("to")))? {
        Wanted::Other(_) if staff.member.role != Role::Admin => Err(Status::Forbidden.into()),
        Wanted::Other(_) => Err(Status::BadRequest.into()),
        Wanted::Change(change) => {
            let visit = Visit { staff, db, access_token_ttl: settings.access_token_ttl, origin, back };
            visit.confirm(change, &form).await
        }
    }
}
