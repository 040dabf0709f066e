//! Merging two users: the choice of the second user, the preview, the merge.

use rocket::http::Status;
use rocket::response::Redirect;
use rocket::{Route, State, get, post, routes};

use super::find::{Find, Link, found};
use super::words::{ending, identity, name, refused, sentence, unproven};
use super::{Answer, Card, Effects, Preview, by, id, seen};
use crate::admin::changes::Outcome;
use crate::admin::changes::decision::Merged;
use crate::admin::changes::merge::{self as merging, preview};
use crate::admin::failure::Failure;
use crate::admin::guard::{AdminStaff, StaffForm};
use crate::admin::page::Page;
use crate::admin::person::isolated;
use crate::provider::Providers;
use crate::web::database::Db;
use crate::web::guard::ClientOrigin;

const TITLE: &str = "Merge two users";

pub(super) fn routes() -> Vec<Route> {
    routes![choose, merge]
}

fn effects(preview: &merging::Preview, merged: &Merged) -> Effects {
    let (from, into) = (&preview.from, &preview.into);
    let (goes, stays) = (name(from), name(into));
    let mut changes: Vec<_> = from
        .identities
        .iter()
        .map(|linked| sentence(&format!("{} signs in as {stays} from now on.", identity(linked))))
        .collect();
    if changes.is_empty() {
        changes.push(format!("{} has no identity, so nobody gains a way to sign in.", sentence(&goes)));
    }
    changes.push(ending(from.sessions(), &format!("of {goes}")));
    match (&into.user.email, &from.user.email) {
        (None, Some(address)) => {
            let verified = if merged.email_verified { "verified" } else { "not verified" };
            changes.push(format!("{} takes the address {address}, {verified}.", sentence(&stays)));
        }
        (Some(kept), Some(lost)) => changes.push(format!(
            "The address stays {kept}. {lost} is no user's address any more: an unknown identity that has it makes a \
             new user."
        )),
        _ => {}
    }
    for (what, own, theirs) in
        [("name", &into.user.name, &from.user.name), ("picture", &into.user.picture, &from.user.picture)]
    {
        match (own, theirs) {
            (None, Some(taken)) => {
                changes.push(format!("{} takes the {what} {}.", sentence(&stays), isolated(taken)));
            }
            (Some(kept), Some(lost)) if kept != lost => {
                changes.push(format!("The {what} stays {}; {} is dropped.", isolated(kept), isolated(lost)));
            }
            _ => {}
        }
    }
    changes.push(format!(
        "The user {} is deleted. What happened to them stays in the audit under that id; services that know it have to \
         learn {}.",
        from.id(),
        into.id()
    ));
    let mut warnings = Vec::new();
    if merged.disabled_at.is_some() && into.disabled_at.is_none() {
        warnings.push(format!("{} is disabled, so {stays} will be, too.", sentence(&goes)));
        warnings.push(ending(into.sessions(), &format!("of {stays}")));
    } else if into.disabled_at.is_some() {
        warnings.push(format!(
            "{} is disabled and stays so: what signs in as {goes} now will be refused.",
            sentence(&stays)
        ));
    }
    let address = if into.user.email.is_some() { into } else { from };
    warnings.extend(unproven(address));
    Effects { changes, warnings }
}

fn view(preview: &merging::Preview) -> Preview {
    let (from, into) = (&preview.from, &preview.into);
    let cards = vec![Card::new("Stays", into, None), Card::new("Goes", from, None)];
    let effects = preview.verdict.as_ref().map(|merged| effects(preview, merged));
    Preview {
        refused: effects.as_ref().err().map(|why| refused(**why)),
        reverse: Some(format!("/admin/users/{}/merge?into={}", into.id(), from.id())),
        action: format!("/admin/users/{}/merge", from.id()),
        other: Some(("into", into.id())),
        fingerprint: preview.fingerprint(),
        button: "Merge",
        ..Preview::new(TITLE, from, cards, effects.unwrap_or_default())
    }
}

#[get("/users/<user>/merge?<into>&<q>")]
async fn choose(
    staff: AdminStaff,
    user: &str,
    into: Option<&str>,
    q: Option<&str>,
    providers: &State<Providers>,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Page, Failure> {
    let user = id(user)?;
    if let Some(into) = into {
        let preview = preview(db.pool(), user, id(into)?, &staff.0.member.email).await?;
        return view(&preview.ok_or(Status::NotFound)?).ask(&staff, db, &origin).await;
    }
    let (person, query, people, more) = found(&staff, user, q, providers, db, &origin).await?;
    let this = person.called();
    let people = people.into_iter().map(|other| {
        let stays = Link {
            href: format!("/admin/users/{user}/merge?into={}", other.id),
            text: format!("{} stays", other.called()),
        };
        let goes = Link {
            href: format!("/admin/users/{}/merge?into={user}", other.id),
            text: format!("{this} stays"),
        };
        (other, vec![stays, goes])
    });
    let people = people.collect();
    let lead = "Where one person has become two users. Find the other one, and choose which of them stays.";
    let path = format!("/admin/users/{user}/merge");
    Ok(Page::new(&staff.0, &Find::new(TITLE, lead, &person, path, query, people, more)))
}

#[post("/users/<user>/merge", data = "<form>")]
async fn merge(
    staff: AdminStaff,
    user: &str,
    form: StaffForm,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Answer, Failure> {
    let (from, into) = (id(user)?, id(form.get("into").ok_or(Status::BadRequest)?)?);
    let reason = form.reason()?;
    let by = by(&staff, &reason, &origin);
    match merging::merge(db.pool(), from, into, seen(&form), by).await? {
        Outcome::Done => Ok(Answer::Done(Redirect::to(format!("/admin/users/{into}?done=merge")))),
        Outcome::NotFound => Err(Status::NotFound.into()),
        Outcome::NotPermitted => Err(Status::Forbidden.into()),
        Outcome::Changed | Outcome::Refused(_) => {
            let preview = preview(db.pool(), from, into, by.actor.name()).await?.ok_or(Status::NotFound)?;
            view(&preview).again(&form, &staff, db, &origin).await
        }
    }
}
