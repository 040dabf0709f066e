//! Changes to users that staff confirm in a preview. If a user has changed since, nothing is done and the preview is
//! shown again.

mod delete;
pub(in crate::admin) mod find;
mod merge;
mod move_identity;
mod unlink;
mod words;

use rocket::http::Status;
use rocket::response::Redirect;
use rocket::{Responder, Route};
use serde::Serialize;
use uuid::Uuid;

pub(in crate::admin) use self::words::refused;
use crate::admin::access_log::{Look, record};
use crate::admin::changes::decision;
use crate::admin::failure::Failure;
use crate::admin::guard::{AdminStaff, StaffForm};
use crate::admin::page::{Page, View};
use crate::admin::person::Person;
use crate::domain::actor::{Actor, By};
use crate::web::database::Db;
use crate::web::guard::ClientOrigin;

pub(in crate::admin) fn routes() -> Vec<Route> {
    [delete::routes(), merge::routes(), move_identity::routes(), unlink::routes()].concat()
}

/// Returns the message to show after a change.
pub(in crate::admin) fn done(change: &str) -> Option<&'static str> {
    match change {
        "merge" => Some("The users are one. Everything the other one signed in with is this one's now."),
        "move" => Some("The identity is this user's now."),
        "unlink" => Some("The identity is unlinked."),
        _ => None,
    }
}

/// A user whom a change concerns.
#[derive(Serialize)]
struct Card {
    /// The user's part in the change.
    part: &'static str,
    person: Person,
    identities: Vec<Identity>,
    /// The number of live sessions.
    sessions: i64,
}

#[derive(Serialize)]
struct Identity {
    provider: String,
    subject: String,
    email: Option<String>,
    /// True for the identity that the change is about.
    concerned: bool,
}

impl Card {
    fn new(part: &'static str, person: &decision::Person, concerned: Option<Uuid>) -> Self {
        let identities = person.identities.iter().map(|linked| &linked.identity);
        let identities = identities.map(|identity| Identity {
            provider: identity.provider.clone(),
            subject: identity.subject.clone(),
            email: identity.email.clone(),
            concerned: concerned == Some(identity.id),
        });
        Self { part, identities: identities.collect(), person: person.into(), sessions: person.sessions() }
    }
}

/// The effects of a change, in sentences.
#[derive(Default)]
struct Effects {
    changes: Vec<String>,
    warnings: Vec<String>,
}

/// A change that staff are asked to confirm.
#[derive(Serialize)]
pub(in crate::admin) struct Preview {
    title: &'static str,
    /// The user on whose page the change began.
    person: Uuid,
    name: String,
    cards: Vec<Card>,
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

impl View for Preview {
    const TEMPLATE: &'static str = "admin/preview";

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        use crate::admin::samples::{self, NASTY};
        let card = |disabled: bool| {
            let identity = |email: Option<&str>, concerned| Identity {
                provider: NASTY.into(),
                subject: NASTY.into(),
                email: email.map(Into::into),
                concerned,
            };
            let identities = vec![identity(Some(NASTY), true), identity(None, false)];
            Card { part: "Stays", person: samples::person(disabled), identities, sessions: 2 }
        };
        let nobody = Card { part: "Goes", person: samples::nobody(), identities: Vec::new(), sessions: 0 };
        let full = |stale: bool| Self {
            title: "Merge two users",
            person: Uuid::max(),
            name: NASTY.into(),
            cards: vec![card(stale), card(!stale)],
            changes: vec![NASTY.into(), NASTY.into()],
            warnings: vec![NASTY.into()],
            refused: None,
            stale,
            reverse: Some("/admin/users".into()),
            action: "/admin/users".into(),
            other: Some(("into", Uuid::max())),
            fingerprint: "fingerprint".into(),
            reason: NASTY.into(),
            hint: Some(words::NOTHING_PERSONAL),
            button: "Merge",
        };
        let (other, warnings) = (None, Vec::new());
        let bare = |refused| Self {
            refused,
            cards: vec![nobody],
            other,
            warnings,
            reverse: None,
            hint: None,
            ..full(false)
        };
        vec![full(false), full(true), bare(Some(words::OWN_ACCOUNT))]
    }
}

impl Preview {
    /// Creates the preview of a permitted change.
    fn new(title: &'static str, person: &decision::Person, cards: Vec<Card>, effects: Effects) -> Self {
        Self {
            title,
            person: person.id(),
            name: words::name(person),
            cards,
            changes: effects.changes,
            warnings: effects.warnings,
            refused: None,
            stale: false,
            reverse: None,
            action: String::new(),
            other: None,
            fingerprint: String::new(),
            reason: String::new(),
            hint: None,
            button: title,
        }
    }

    /// Shows the preview, after recording that its users were viewed.
    async fn ask(self, staff: &AdminStaff, db: &Db, origin: &ClientOrigin) -> Result<Page, Failure> {
        for card in &self.cards {
            record(db.pool(), &staff.0.member, &Look::Person(card.person.id), &origin.0).await?;
        }
        Ok(Page::new(&staff.0, &self))
    }

    /// Shows the preview again if nothing was done: a user has changed, or the change is not permitted.
    async fn again(
        self,
        form: &StaffForm,
        staff: &AdminStaff,
        db: &Db,
        origin: &ClientOrigin,
    ) -> Result<Answer, Failure> {
        let stale = self.refused.is_none();
        let reason = form.get("reason").unwrap_or_default().to_owned();
        let page = Self { stale, reason, ..self }.ask(staff, db, origin).await?;
        Ok(Answer::Again(page.with(Status::Conflict)))
    }
}

/// The answer to a confirmed change.
#[derive(Responder)]
#[expect(clippy::large_enum_variant, reason = "it lives for one answer")]
enum Answer {
    Done(Redirect),
    Again(Page),
}

fn id(text: &str) -> Result<Uuid, Status> {
    Uuid::parse_str(text).map_err(|_| Status::NotFound)
}

/// Returns the acting member of staff and the reason.
fn by<'a>(staff: &'a AdminStaff, reason: &'a str, origin: &'a ClientOrigin) -> By<'a> {
    By { actor: Actor::Staff(&staff.0.member.email), reason: Some(reason), origin: &origin.0 }
}

/// Returns the fingerprint of the preview that staff saw.
fn seen(form: &StaffForm) -> &str {
    form.get("seen").unwrap_or_default()
}
