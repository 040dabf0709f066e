//! Changes to people that are shown before they are made: a page that says what will happen, and on it the form
//! that does it. It does nothing when somebody has changed since: then the page is shown again.

mod delete;
pub(super) mod find;
mod merge;
mod move_identity;
mod unlink;
mod words;

use rocket::http::Status;
use rocket::response::Redirect;
use rocket::{Responder, Route};
use serde::Serialize;
use uuid::Uuid;

pub(super) use self::words::refused;
use super::failure::Failure;
use super::page::{Page, View};
use super::person::Person;
use crate::domain::look_after;
use crate::session::staff_looks::{Look, record};
use crate::store::staff_access::{Actor, By};
use crate::web::database::Db;
use crate::web::guard::{AdminStaff, ClientOrigin, StaffForm};

pub(super) fn routes() -> Vec<Route> {
    [delete::routes(), merge::routes(), move_identity::routes(), unlink::routes()].concat()
}

/// What there is to say on a person's page when a change was made.
pub(super) fn done(change: &str) -> Option<&'static str> {
    match change {
        "merge" => Some("The users are one. Everything the other one signed in with is this one's now."),
        "move" => Some("The identity is this user's now."),
        "unlink" => Some("The identity is unlinked."),
        _ => None,
    }
}

/// Somebody whom a change concerns.
#[derive(Serialize)]
struct Card {
    /// Which part they have in it.
    part: &'static str,
    person: Person,
    identities: Vec<Identity>,
    /// How many are alive.
    sessions: i64,
}

#[derive(Serialize)]
struct Identity {
    provider: String,
    subject: String,
    email: Option<String>,
    /// Whether it is the one that the change is about.
    concerned: bool,
}

impl Card {
    fn new(part: &'static str, person: &look_after::Person, concerned: Option<Uuid>) -> Self {
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

/// What a change will do, in sentences.
#[derive(Default)]
struct Effects {
    changes: Vec<String>,
    warnings: Vec<String>,
}

/// A change that has yet to be made, as staff are asked to confirm it.
#[derive(Serialize)]
pub(super) struct Preview {
    title: &'static str,
    /// Whose page this began at.
    person: Uuid,
    name: String,
    cards: Vec<Card>,
    changes: Vec<String>,
    warnings: Vec<String>,
    /// Why it cannot be.
    refused: Option<&'static str>,
    /// Whether somebody has changed, so that what was confirmed was not done.
    stale: bool,
    /// Where the same is to be had the other way round.
    reverse: Option<String>,
    /// Where the form goes.
    action: String,
    /// Who else it concerns: the field's name, and the value.
    other: Option<(&'static str, Uuid)>,
    fingerprint: String,
    /// What was typed before.
    reason: String,
    /// What there is to know about the reason.
    hint: Option<&'static str>,
    button: &'static str,
}

impl View for Preview {
    const TEMPLATE: &'static str = "admin/preview";

    #[cfg(test)]
    fn samples() -> Vec<Self> {
        use super::samples::{self, NASTY};
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
    /// A change of that person, which may be.
    fn new(title: &'static str, person: &look_after::Person, cards: Vec<Card>, effects: Effects) -> Self {
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

    /// The page that asks. Whoever is on it was looked at.
    async fn ask(self, staff: &AdminStaff, db: &Db, origin: &ClientOrigin) -> Result<Page, Failure> {
        for card in &self.cards {
            record(db.pool(), &staff.0.member, &Look::Person(card.person.id), &origin.0).await?;
        }
        Ok(Page::new(&staff.0, &self))
    }

    /// The page again, after nothing was done: somebody has changed, or it must not be.
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

/// What a confirmed change ends with.
#[derive(Responder)]
#[expect(clippy::large_enum_variant, reason = "it lives for one answer")]
enum Answer {
    Done(Redirect),
    Again(Page),
}

fn id(text: &str) -> Result<Uuid, Status> {
    Uuid::parse_str(text).map_err(|_| Status::NotFound)
}

/// Who acts, and why.
fn by<'a>(staff: &'a AdminStaff, reason: &'a str, origin: &'a ClientOrigin) -> By<'a> {
    By { actor: Actor::Staff(&staff.0.member.email), reason: Some(reason), origin: &origin.0 }
}

/// What the form says was seen.
fn seen(form: &StaffForm) -> &str {
    form.get("seen").unwrap_or_default()
}
