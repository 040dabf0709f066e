//! The pages of changes to users: the search for the other user, the confirmation, and the form. If
//! a user has changed since the confirmation was shown, or something was typed wrongly, nothing is
//! done and it is shown again.

pub(in crate::admin) mod find;
pub(in crate::admin) mod receipt;

use rocket::http::Status;
use rocket::http::uri::fmt::Path;
use rocket::http::uri::{Origin, Segments};
use rocket::response::Redirect;
use rocket::{Route, State, get, post, routes};
use serde::Serialize;
use uuid::Uuid;

use crate::accounts::sessions;
use crate::admin::changes::words::{self, Done, Words};
use crate::admin::changes::{Change, Outcome, Preview, make, preview, store};
use crate::admin::pages::changes::find::find;
use crate::admin::pages::naming::called;
use crate::admin::pages::{Failure, Page, Question, Signed, Staff, StaffForm, device, record};
use crate::config;
use crate::domain::{Actor, Role, UserState, merged};
use crate::events::DataAccess;
use crate::provider::Providers;
use crate::web::Db;
use crate::web::guard::ClientOrigin;

pub(in crate::admin) fn routes() -> Vec<Route> {
    routes![ask, confirm, receipt::receipt]
}

/// A user whom a change concerns, or the one who remains of two.
#[derive(Serialize)]
struct Card {
    /// The user's part in the change; `None` for the one who remains.
    part: Option<&'static str>,
    is_deleted: bool,
    #[serde(flatten)]
    user: UserState,
    last_seen_on: Option<String>,
    /// The number of live sessions.
    sessions: i64,
    notes: i64,
}

impl Card {
    fn new(part: Option<&'static str>, user: &UserState) -> Self {
        Self {
            part,
            is_deleted: false,
            last_seen_on: user.last_seen_on.map(|day| day.to_string()),
            sessions: user.sessions(),
            notes: user.notes,
            user: user.clone(),
        }
    }
}

#[derive(Serialize)]
struct Confirmation {
    #[serde(flatten)]
    question: Question,
    /// The change's user, if the page shows them in detail.
    user: Option<Card>,
    /// The user who gets the identities.
    other: Option<Card>,
    /// The one who remains of a merge.
    after: Option<Card>,
    /// The identity, if the change is made to a single one.
    identity: Option<Uuid>,
    refused: Option<&'static str>,
    /// True if a user has changed, so that the confirmed change was not made.
    stale: bool,
    /// The URL of the same change in the other direction.
    reverse: Option<String>,
}

impl Confirmation {
    /// Creates the page of a preview, with the reason that was typed. It began on the page of the
    /// form's `back` if that is one of the change's users.
    fn new(preview: &Preview, device: Option<String>, visit: &Visit<'_>) -> Self {
        let change = &preview.change;
        let user = change.user();
        let other = change.other();
        let merge = match change {
            Change::Merge { from, into } => Some((from, into)),
            _ => None,
        };
        let back = visit
            .form
            .get("back")
            .and_then(|back| Uuid::parse_str(back).ok());
        let began = other.filter(|other| Some(other.id) == back).unwrap_or(user);
        let minutes = visit.settings.access_token_ttl.div_ceil(60);
        let words = Words::of(change, &name(user), device, minutes);
        let (part, part_of_other) = words::parts(change);
        let card = part.map(|part| Card {
            is_deleted: words.is_final,
            ..Card::new(Some(part), user)
        });
        let trail = vec![
            ("/admin/users".into(), "Users".into()),
            (format!("/admin/users/{}", began.id), name(began)),
        ];
        let mut question = Question::new(words, trail, visit.path.to_owned());
        visit
            .form
            .get("reason")
            .unwrap_or_default()
            .clone_into(&mut question.reason);
        question.fields.extend(
            change
                .needs_preview()
                .then(|| ("seen", preview.fingerprint())),
        );
        if let Some(other) = other {
            let field = if merge.is_some() { "into" } else { "to" };
            question.fields.extend([
                (field, other.id.to_string()),
                ("back", began.id.to_string()),
            ]);
        }
        Self {
            question,
            user: card,
            other: other.map(|other| Card::new(part_of_other, other)),
            reverse: merge.map(|(from, into)| {
                format!(
                    "/admin/users/{}/merge?into={}&back={}",
                    into.id, from.id, began.id
                )
            }),
            after: merge.map(|(from, into)| Card::new(None, &merged(from, into))),
            identity: change.identity().map(|identity| identity.id),
            refused: preview.refused.map(words::refused),
            stale: false,
        }
    }
}

fn name(user: &UserState) -> String {
    called(user.id, user.email.as_deref(), user.name.as_deref())
}

struct Visit<'r> {
    staff: Staff,
    /// The fields as they were typed, or as the link has them.
    form: StaffForm,
    path: &'r str,
    db: &'r Db,
    settings: &'r config::Session,
    origin: ClientOrigin,
}

impl Visit<'_> {
    /// Returns the preview of a change. The status is 403 if the member of staff may not make it.
    async fn preview(&self, change: Change) -> Result<Preview, Failure> {
        let member = &self.staff.member;
        if change.role() == Role::Admin && member.role != Role::Admin {
            return Err(Status::Forbidden.into());
        }
        Ok(preview(self.db, change, Actor::Staff(&member.email))
            .await?
            .ok_or(Status::NotFound)?)
    }

    /// Shows the confirmation of a change, altered, after recording that its users were viewed.
    async fn show(
        &self,
        preview: &Preview,
        alter: impl FnOnce(&mut Confirmation),
    ) -> Result<Page, Failure> {
        let db = self.db;
        let mut device = None;
        if let Change::EndSession { session, user } = &preview.change {
            let sessions = db.run(|_| sessions::of_user(db, user.id)).await?;
            let row = sessions.into_iter().find(|row| row.id == *session);
            device = row.map(|row| {
                let own = [row.device_name, row.device_platform]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>();
                let app = row.user_agent.as_deref().map(device::in_words);
                let words = if own.is_empty() {
                    app
                } else {
                    Some(own.join(", "))
                };
                words.unwrap_or_else(|| "an unknown device".into())
            });
        }
        let mut page = Confirmation::new(preview, device, self);
        alter(&mut page);
        for id in [Some(preview.change.user()), preview.change.other()]
            .into_iter()
            .flatten()
        {
            record(
                db,
                &self.staff.member,
                DataAccess::person(id.id),
                &self.origin.0,
            )
            .await?;
        }
        Ok(Page::new(&self.staff, "admin/confirm", &page))
    }

    /// Makes a change that its form confirms. If nothing was done, shows why, in the confirmation.
    async fn confirm(&self, change: Change) -> Result<Redirect, Failure> {
        let db = self.db;
        let form = &self.form;
        let preview = self.preview(change).await?;
        let reason = match form.reason() {
            Ok(reason) => reason,
            Err(status) => {
                let page = self
                    .show(&preview, |page| page.question.refuse(form.get("reason")))
                    .await?;
                return Err(Failure::Shown(page.with(status)));
            }
        };
        let by = self.staff.by(&reason, &self.origin.0);
        let seen = change
            .needs_preview()
            .then(|| form.get("seen").unwrap_or_default());
        let kept = change.other().unwrap_or(change.user());
        match make(db, &preview, seen, by).await? {
            Outcome::Done => {
                let Some(done) = Done::of(&preview.change) else {
                    let number = db.run(|_| store::deletion_of(db, *kept)).await?;
                    let number = number.ok_or(Status::NotFound)?;
                    return Ok(Redirect::to(receipt::path(number)));
                };
                let done: &str = done.into();
                Ok(Redirect::to(format!("/admin/users/{kept}?done={done}")))
            }
            Outcome::NotPermitted => Err(Status::Forbidden.into()),
            Outcome::Stale | Outcome::Refused(_) => {
                let preview = self.preview(change).await?;
                let again = |page: &mut Confirmation| page.stale = preview.refused.is_none();
                Err(Failure::Shown(
                    self.show(&preview, again).await?.with(Status::Conflict),
                ))
            }
        }
    }
}

fn id(text: &str) -> Result<Uuid, Status> {
    Uuid::parse_str(text).map_err(|_| Status::NotFound)
}

enum Wanted {
    Change(Change),
    /// The other user of a merge, or of the move of that identity.
    Other(Option<Uuid>),
}

/// Reads the path of a change below its user's, and the second user in the form.
fn wanted(user: Uuid, below: Segments<'_, Path>, form: &StaffForm) -> Result<Wanted, Status> {
    let other = form.get("into").or(form.get("to")).map(id).transpose()?;
    let below = below.collect::<Vec<_>>();
    Ok(Wanted::Change(match (&below[..], other) {
        (["delete"], _) => Change::Delete { user },
        (["disable"], _) => Change::Disable { user },
        (["enable"], _) => Change::Enable { user },
        (["end-sessions"], _) => Change::EndSessions { user },
        (["sessions", session, "end"], _) => Change::EndSession {
            session: id(session)?,
            user,
        },
        (["identities", identity, "unlink"], _) => Change::Unlink {
            identity: id(identity)?,
            user,
        },
        (["identities", identity, "release"], _) => Change::Release {
            identity: id(identity)?,
            user,
        },
        (["identities", identity, "move"], Some(to)) => Change::Move {
            identity: id(identity)?,
            from: user,
            to,
        },
        (["merge"], Some(into)) => Change::Merge { from: user, into },
        (["identities", identity, "move"], None) => return Ok(Wanted::Other(Some(id(identity)?))),
        (["merge"], None) => return Ok(Wanted::Other(None)),
        _ => return Err(Status::NotFound),
    }))
}

#[expect(
    clippy::too_many_arguments,
    reason = "they are the parts of the request"
)]
#[get("/users/<user>/<below..>", rank = 2)]
async fn ask(
    staff: Staff,
    user: &str,
    below: Segments<'_, Path>,
    uri: &Origin<'_>,
    db: &Db,
    providers: &State<Providers>,
    settings: &State<config::Session>,
    origin: ClientOrigin,
) -> Result<Page, Failure> {
    let user = id(user)?;
    let form = StaffForm::of(uri);
    let wanted = wanted(user, below, &form)?;
    let visit = Visit {
        staff,
        form,
        path: uri.path().as_str(),
        db,
        settings,
        origin,
    };
    match wanted {
        Wanted::Other(moved) => find(&visit, providers, user, moved).await,
        Wanted::Change(change) => visit.show(&visit.preview(change).await?, |_| ()).await,
    }
}

#[post("/users/<user>/<below..>", data = "<sent>", rank = 2)]
async fn confirm(
    user: &str,
    below: Segments<'_, Path>,
    uri: &Origin<'_>,
    sent: Signed,
    db: &Db,
    settings: &State<config::Session>,
    origin: ClientOrigin,
) -> Result<Redirect, Failure> {
    let Signed { staff, form } = sent;
    match wanted(id(user)?, below, &form)? {
        Wanted::Other(_) if staff.member.role != Role::Admin => Err(Status::Forbidden.into()),
        Wanted::Other(_) => Err(Status::BadRequest.into()),
        Wanted::Change(change) => {
            Visit {
                staff,
                form,
                path: uri.path().as_str(),
                db,
                settings,
                origin,
            }
            .confirm(change)
            .await
        }
    }
}
