//! Moving an identity: the choice of its user, the preview, the move.

use rocket::http::Status;
use rocket::response::Redirect;
use rocket::{Route, State, get, post, routes};

use super::find::{Find, Link, found};
use super::words::{called, ending, identity, name, sentence, unproven};
use super::{Answer, Card, Effects, Preview, by, id, seen};
use crate::admin::changes::Outcome;
use crate::admin::changes::move_identity::{self as moving, preview};
use crate::admin::failure::Failure;
use crate::admin::guard::{AdminStaff, StaffForm};
use crate::admin::page::Page;
use crate::provider::Providers;
use crate::store::identities;
use crate::web::database::Db;
use crate::web::guard::ClientOrigin;

const TITLE: &str = "Move an identity";

pub(super) fn routes() -> Vec<Route> {
    routes![choose, move_identity]
}

fn effects(preview: &moving::Preview) -> Effects {
    let (from, to, moved) = (&preview.from, &preview.to, &preview.identity);
    let (loses, gains) = (name(from), name(to));
    let mut changes = vec![
        sentence(&format!("{} signs in as {gains} from now on, no longer as {loses}.", identity(moved))),
        ending(moved.sessions, "opened with it"),
        "The addresses of both users stay as they are.".to_owned(),
    ];
    if to.user.email.is_none() {
        changes.push(format!(
            "The next time that somebody signs in with it, {gains} takes its address, if the provider vouches for it and \
             nobody else has it."
        ));
    }
    let mut warnings = Vec::new();
    let own = from.user.email.as_deref();
    match own {
        Some(own) if preview.is_last() => warnings.push(format!(
            "It is the last identity of {loses}. That user is left to whoever signs in with the address {own} at a \
             provider that vouches for it. If it is the same person, merge the two instead."
        )),
        None if preview.is_last() => warnings.push(format!(
            "It is the last identity of {loses}, and no address leads back: nobody can sign in to that user any more. \
             Merge the two, or delete that one afterwards."
        )),
        Some(own) if moved.identity.email.as_deref().is_some_and(|email| email.eq_ignore_ascii_case(own)) => {
            warnings.push(format!(
                "The address {own} stays where it is: another identity that has it signs in as {loses}, not as {gains}."
            ));
        }
        _ => {}
    }
    if to.disabled_at.is_some() {
        warnings.push(format!(
            "{} is disabled: whoever signs in with the identity is refused.",
            sentence(&gains)
        ));
    }
    warnings.extend(unproven(to));
    Effects { changes, warnings }
}

fn view(preview: &moving::Preview) -> Preview {
    let moved = preview.identity.identity.id;
    let cards = vec![
        Card::new("Has it now", &preview.from, Some(moved)),
        Card::new("Will have it", &preview.to, None),
    ];
    Preview {
        action: format!("/admin/users/{}/identities/{moved}/move", preview.from.id()),
        other: Some(("to", preview.to.id())),
        fingerprint: preview.fingerprint(),
        button: "Move it",
        ..Preview::new(TITLE, &preview.from, cards, effects(preview))
    }
}

#[get("/users/<user>/identities/<identity>/move?<to>&<q>")]
#[expect(clippy::too_many_arguments, reason = "each is a part of the request, or what answers it")]
async fn choose(
    staff: AdminStaff,
    user: &str,
    identity: &str,
    to: Option<&str>,
    q: Option<&str>,
    providers: &State<Providers>,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Page, Failure> {
    let (user, identity) = (id(user)?, id(identity)?);
    if let Some(to) = to {
        let preview = preview(db.pool(), user, identity, id(to)?).await?.ok_or(Status::NotFound)?;
        return view(&preview).ask(&staff, db, &origin).await;
    }
    let identities = identities::of_user(db.pool(), user).await?;
    let moved = identities.into_iter().find(|row| row.id == identity).ok_or(Status::NotFound)?;
    let (person, query, people, more) = found(&staff, user, q, providers, db, &origin).await?;
    let path = format!("/admin/users/{user}/identities/{identity}/move");
    let people = people.into_iter().map(|other| {
        let link = Link { href: format!("{path}?to={}", other.id), text: "Move it here".to_owned() };
        (other, vec![link])
    });
    let people = people.collect();
    let moved = called(&moved.provider, &moved.subject, moved.email.as_deref());
    let lead = sentence(&format!("{moved} is linked to {}. Find the user whose it is.", person.called()));
    Ok(Page::new(&staff.0, &Find::new(TITLE, lead, &person, path.clone(), query, people, more)))
}

#[post("/users/<user>/identities/<identity>/move", data = "<form>")]
async fn move_identity(
    staff: AdminStaff,
    user: &str,
    identity: &str,
    form: StaffForm,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Answer, Failure> {
    let (from, identity) = (id(user)?, id(identity)?);
    let to = id(form.get("to").ok_or(Status::BadRequest)?)?;
    let reason = form.reason()?;
    match moving::move_identity(db.pool(), from, identity, to, seen(&form), by(&staff, &reason, &origin))
        .await?
    {
        Outcome::Done => Ok(Answer::Done(Redirect::to(format!("/admin/users/{to}?done=move")))),
        Outcome::NotFound => Err(Status::NotFound.into()),
        Outcome::NotPermitted => Err(Status::Forbidden.into()),
        Outcome::Changed | Outcome::Refused(_) => {
            let preview = preview(db.pool(), from, identity, to).await?.ok_or(Status::NotFound)?;
            view(&preview).again(&form, &staff, db, &origin).await
        }
    }
}
