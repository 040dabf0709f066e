//! The pages of changes to users: the search for the other user, the preview, and the forms. If a user has changed since
//! the preview, nothing is done and the preview is shown again.

pub(in crate::admin) mod find;
pub(in crate::admin) mod receipt;
mod words;

use rocket::http::Status;
use rocket::outcome::try_outcome;
use rocket::request::{FromRequest, Outcome as Guarded, Request};
use rocket::response::Redirect;
use rocket::{Either, Route, get, post, routes};
use serde::Serialize;
use uuid::Uuid;

use self::find::find;
pub(in crate::admin) use self::words::{done, refused};
use crate::admin::access_log::{DataAccess, record};
use crate::admin::changes::{Change, Outcome, Preview, apply, preview, store};
use crate::admin::failure::Failure;
use crate::admin::guard::{AdminStaff, Staff, StaffForm};
use crate::admin::page::{Page, View};
use crate::admin::person::Person;
use crate::config;
use crate::domain::actor::{Actor, By};
use crate::domain::merging::{LinkedIdentity, UserState};
use crate::provider::Providers;
use crate::store::error::retrying;
use crate::web::database::Db;
use crate::web::guard::ClientOrigin;

pub(in crate::admin) fn routes() -> Vec<Route> {
    let confirmed =
        routes![delete, merge, move_identity, unlink, release, disable, enable, end_sessions, end_session];
    [routes![ask_delete, ask_merge, ask_move, ask_unlink, receipt::receipt], confirmed].concat()
}

/// A user whom a change concerns.
#[derive(Serialize)]
struct UserCard {
    /// The user's part in the change.
    part: &'static str,
    person: Person,
    identities: Vec<LinkedIdentity>,
    /// The number of live sessions.
    sessions: i64,
}

const KEPT: &str = "Will be kept";
const DELETED: &str = "Will be deleted";

impl UserCard {
    fn new(part: &'static str, user: &UserState) -> Self {
        Self { part, person: user.into(), identities: user.identities.clone(), sessions: user.sessions() }
    }
}

/// A change that staff are asked to confirm.
#[derive(Serialize)]
pub(in crate::admin) struct PreviewPage {
    title: &'static str,
    /// The user on whose page the change began.
    person: Uuid,
    name: String,
    cards: Vec<UserCard>,
    /// The single identity that the change is made to.
    identity: Option<Uuid>,
    changes: Vec<String>,
    warnings: Vec<String>,
    /// The reason that the change is not permitted.
    refused: Option<&'static str>,
    /// True if a user has changed, so that the confirmed change was not made.
    stale: bool,
    /// The URL of the same change in the other direction.
    reverse: Option<String>,
    /// The URL to which the form is sent.
    action: String,
    /// The other user: the form field's name and value.
    other: Option<(&'static str, Uuid)>,
    fingerprint: String,
    /// The reason that was typed before.
    reason: String,
    /// A hint about the reason.
    hint: Option<&'static str>,
    button: &'static str,
}

impl View for PreviewPage {
    const TEMPLATE: &'static str = "admin/preview";

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        use crate::admin::changes::decision::Refused;
        use crate::admin::samples::{NASTY, user, user_without_data};
        let page = |change, refused| Self::new(&Preview { change, refused }, 900).expect("it is previewed");
        let identity = || user(false).identities.remove(0);
        let changes = [
            Change::Delete { user: user(true) },
            Change::Merge { from: user(true), into: user(false) },
            Change::Merge { from: user_without_data(), into: user(true) },
            Change::Merge { from: user(false), into: user_without_data() },
            Change::Move { identity: identity(), from: user(false), to: user_without_data() },
            Change::Unlink { identity: identity(), user: user(false) },
        ];
        let refused = page(Change::Delete { user: user(false) }, Some(Refused::OwnAccount));
        let stale = page(Change::Delete { user: user(false) }, None);
        let stale = Self { stale: true, reason: NASTY.into(), ..stale };
        changes.into_iter().map(|change| page(change, None)).chain([refused, stale]).collect()
    }
}

impl PreviewPage {
    /// Creates the page of a preview, or `None` for a change that has none. Access tokens are valid for `ttl` seconds.
    fn new(preview: &Preview, ttl: u32) -> Option<Self> {
        let change = &preview.change;
        let user = change.user();
        let identity = change.identity().map(|identity| identity.id);
        let card = UserCard::new;
        let (title, cards, button) = match change {
            Change::Delete { user } => ("Delete a user", vec![card(DELETED, user)], "Delete permanently"),
            Change::Merge { from, into } => {
                (words::MERGE, vec![card(KEPT, into), card(DELETED, from)], "Merge")
            }
            Change::Move { from, to, .. } => {
                (words::MOVE, vec![card("Loses the identity", from), card("Gets the identity", to)], "Move")
            }
            Change::Unlink { user, .. } => {
                ("Unlink an identity", vec![card("Loses the identity", user)], "Unlink")
            }
            Change::Release { .. }
            | Change::Disable { .. }
            | Change::Enable { .. }
            | Change::EndSessions { .. }
            | Change::EndSession { .. } => return None,
        };
        let (reverse, other) = match change {
            Change::Merge { from, into } => {
                (Some(format!("/admin/users/{}/merge?into={}", into.id, from.id)), Some(("into", into.id)))
            }
            Change::Move { to, .. } => (None, Some(("to", to.id))),
            _ => (None, None),
        };
        let effects = words::effects(change, ttl);
        Some(Self {
            title,
            person: user.id,
            name: words::name(user),
            cards,
            identity,
            changes: effects.changes,
            warnings: effects.warnings,
            refused: preview.refused.map(words::refused),
            stale: false,
            reverse,
            action: path(user.id, identity, change.name()),
            other,
            fingerprint: preview.fingerprint(),
            reason: String::new(),
            hint: matches!(change, Change::Delete { .. }).then_some(words::NOTHING_PERSONAL),
            button,
        })
    }
}

/// The answer to a confirmed change: the way to the changed user, or the preview again.
type Answer = Either<Redirect, Page>;

/// The parts of a request that all handlers here need.
///
/// - **Succeeds** when the guard `G` of the sender does.
/// - **Fails** as that guard does.
/// - **Forwards** never.
struct Visit<'r, G = AdminStaff> {
    staff: G,
    db: &'r Db,
    providers: &'r Providers,
    origin: ClientOrigin,
    /// The lifetime of access tokens, in seconds.
    access_token_ttl: u32,
}

#[rocket::async_trait]
impl<'r, G: FromRequest<'r, Error = ()>> FromRequest<'r> for Visit<'r, G> {
    type Error = ();

    async fn from_request(request: &'r Request<'_>) -> Guarded<Self, ()> {
        let staff = try_outcome!(request.guard::<G>().await);
        let state = request.rocket().state::<Db>().zip(request.rocket().state::<Providers>());
        let settings = request.rocket().state::<config::Session>();
        let Some(((db, providers), settings)) = state.zip(settings) else {
            return Guarded::Error((Status::InternalServerError, ()));
        };
        let access_token_ttl = settings.access_token_ttl;
        Guarded::Success(Self { staff, db, providers, origin: ClientOrigin::of(request), access_token_ttl })
    }
}

impl<G: AsRef<Staff>> Visit<'_, G> {
    /// Shows the preview of a change.
    async fn ask(&self, change: Change) -> Result<Page, Failure> {
        let preview = preview(self.db.pool(), change, &self.staff.as_ref().member.email).await?;
        let page = preview
            .as_ref()
            .and_then(|preview| PreviewPage::new(preview, self.access_token_ttl))
            .ok_or(Status::NotFound)?;
        self.show(&page).await
    }

    /// Makes a change that its form confirms. If nothing was done, shows why, in the preview where there is one.
    async fn confirm(&self, change: Change, form: &StaffForm) -> Result<Answer, Failure> {
        let reason = form.reason()?;
        let actor = Actor::Staff(&self.staff.as_ref().member.email);
        let by = By { actor, reason: Some(&reason), origin: &self.origin.0 };
        let previewed = change.is_previewed();
        let seen = previewed.then(|| form.get("seen").unwrap_or_default());
        let (user, kept) = (change.user(), change.other().unwrap_or(change.user()));
        match apply(self.db.pool(), change, seen, by).await? {
            Outcome::Done if matches!(change, Change::Delete { .. }) => {
                let number = retrying!(store::deletion_of(self.db.pool(), *user))?.ok_or(Status::NotFound)?;
                Ok(Either::Left(Redirect::to(receipt::path(number))))
            }
            Outcome::Done => {
                Ok(Either::Left(Redirect::to(format!("/admin/users/{kept}?done={}", change.name()))))
            }
            Outcome::NotFound => Err(Status::NotFound.into()),
            Outcome::NotPermitted => Err(Status::Forbidden.into()),
            Outcome::Refused(why) if !previewed => Err(Failure::Conflict(words::refused(why))),
            Outcome::Changed if !previewed => Err(Failure::Conflict(
                "Something has changed since you opened the page. Go back, reload it and look again.",
            )),
            Outcome::Changed | Outcome::Refused(_) => {
                let preview = preview(self.db.pool(), change, actor.name()).await?;
                let page = preview
                    .as_ref()
                    .and_then(|preview| PreviewPage::new(preview, self.access_token_ttl))
                    .ok_or(Status::NotFound)?;
                let (stale, reason) = (page.refused.is_none(), form.get("reason").unwrap_or_default().into());
                let page = self.show(&PreviewPage { stale, reason, ..page }).await?;
                Ok(Either::Right(page.with(Status::Conflict)))
            }
        }
    }

    /// Shows a preview, after recording that its users were viewed.
    async fn show(&self, page: &PreviewPage) -> Result<Page, Failure> {
        let staff = self.staff.as_ref();
        for card in &page.cards {
            record(self.db.pool(), &staff.member, &DataAccess::Person(card.person.id), &self.origin.0)
                .await?;
        }
        Ok(Page::new(staff, page))
    }
}

fn id(text: &str) -> Result<Uuid, Status> {
    Uuid::parse_str(text).map_err(|_| Status::NotFound)
}

/// Returns the id in the form's field of that name.
fn other(form: &StaffForm, name: &str) -> Result<Uuid, Status> {
    id(form.get(name).ok_or(Status::BadRequest)?)
}

fn path(user: Uuid, identity: Option<Uuid>, change: &str) -> String {
    let identity = identity.map(|id| format!("/identities/{id}")).unwrap_or_default();
    format!("/admin/users/{user}{identity}/{change}")
}

#[get("/users/<user>/delete")]
async fn ask_delete(visit: Visit<'_>, user: &str) -> Result<Page, Failure> {
    visit.ask(Change::Delete { user: id(user)? }).await
}

#[post("/users/<user>/delete", data = "<form>")]
async fn delete(visit: Visit<'_>, user: &str, form: StaffForm) -> Result<Answer, Failure> {
    visit.confirm(Change::Delete { user: id(user)? }, &form).await
}

#[get("/users/<user>/merge?<into>&<q>")]
async fn ask_merge(
    visit: Visit<'_>,
    user: &str,
    into: Option<&str>,
    q: Option<&str>,
) -> Result<Page, Failure> {
    let from = id(user)?;
    match into {
        Some(into) => visit.ask(Change::Merge { from, into: id(into)? }).await,
        None => find(&visit, from, None, q).await,
    }
}

#[post("/users/<user>/merge", data = "<form>")]
async fn merge(visit: Visit<'_>, user: &str, form: StaffForm) -> Result<Answer, Failure> {
    visit.confirm(Change::Merge { from: id(user)?, into: other(&form, "into")? }, &form).await
}

#[get("/users/<user>/identities/<identity>/move?<to>&<q>")]
async fn ask_move(
    visit: Visit<'_>,
    user: &str,
    identity: &str,
    to: Option<&str>,
    q: Option<&str>,
) -> Result<Page, Failure> {
    let (identity, from) = (id(identity)?, id(user)?);
    match to {
        Some(to) => visit.ask(Change::Move { identity, from, to: id(to)? }).await,
        None => find(&visit, from, Some(identity), q).await,
    }
}

#[post("/users/<user>/identities/<identity>/move", data = "<form>")]
async fn move_identity(
    visit: Visit<'_>,
    user: &str,
    identity: &str,
    form: StaffForm,
) -> Result<Answer, Failure> {
    let change = Change::Move { identity: id(identity)?, from: id(user)?, to: other(&form, "to")? };
    visit.confirm(change, &form).await
}

#[get("/users/<user>/identities/<identity>/unlink")]
async fn ask_unlink(visit: Visit<'_>, user: &str, identity: &str) -> Result<Page, Failure> {
    visit.ask(Change::Unlink { identity: id(identity)?, user: id(user)? }).await
}

#[post("/users/<user>/identities/<identity>/unlink", data = "<form>")]
async fn unlink(visit: Visit<'_>, user: &str, identity: &str, form: StaffForm) -> Result<Answer, Failure> {
    visit.confirm(Change::Unlink { identity: id(identity)?, user: id(user)? }, &form).await
}

#[post("/users/<user>/identities/<identity>/release", data = "<form>")]
async fn release(visit: Visit<'_>, user: &str, identity: &str, form: StaffForm) -> Result<Answer, Failure> {
    visit.confirm(Change::Release { identity: id(identity)?, user: id(user)? }, &form).await
}

#[post("/users/<id>/disable", data = "<form>")]
async fn disable(visit: Visit<'_>, id: &str, form: StaffForm) -> Result<Answer, Failure> {
    visit.confirm(Change::Disable { user: self::id(id)? }, &form).await
}

#[post("/users/<id>/enable", data = "<form>")]
async fn enable(visit: Visit<'_>, id: &str, form: StaffForm) -> Result<Answer, Failure> {
    visit.confirm(Change::Enable { user: self::id(id)? }, &form).await
}

#[post("/users/<id>/end-sessions", data = "<form>")]
async fn end_sessions(visit: Visit<'_, Staff>, id: &str, form: StaffForm) -> Result<Answer, Failure> {
    visit.confirm(Change::EndSessions { user: self::id(id)? }, &form).await
}

#[post("/users/<id>/sessions/<session>/end", data = "<form>")]
async fn end_session(
    visit: Visit<'_, Staff>,
    id: &str,
    session: &str,
    form: StaffForm,
) -> Result<Answer, Failure> {
    visit.confirm(Change::EndSession { session: self::id(session)?, user: self::id(id)? }, &form).await
}
