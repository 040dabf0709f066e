//! Deleting a user, after a preview.

use rocket::http::Status;
use rocket::response::Redirect;
use rocket::{Route, get, post, routes};

use super::words::{NOTHING_PERSONAL, ending, identity, name, refused, sentence};
use super::{Answer, Card, Effects, Preview, by, id, seen};
use crate::admin::changes::Outcome;
use crate::admin::changes::delete::{self as deleting, preview};
use crate::admin::failure::Failure;
use crate::admin::guard::{AdminStaff, StaffForm};
use crate::admin::page::Page;
use crate::web::database::Db;
use crate::web::guard::ClientOrigin;

pub(super) fn routes() -> Vec<Route> {
    routes![ask, delete]
}

fn effects(preview: &deleting::Preview) -> Effects {
    let person = &preview.person;
    let who = name(person);
    let mut changes =
        vec![format!("{} is removed for good: address, name, picture and all that follows.", sentence(&who))];
    let identities = person.identities.iter();
    changes.extend(identities.map(|linked| {
        sentence(&format!(
            "{} is unlinked. Whoever signs in with it afterwards is a new user.",
            identity(linked)
        ))
    }));
    changes.push(ending(person.sessions(), &format!("of {who}")));
    changes.push(
        "The audit keeps what happened, and when, without addresses, places and devices. It keeps this deletion with \
         your address and reason."
            .to_owned(),
    );
    let mut warnings = vec!["It cannot be undone.".to_owned()];
    if person.disabled_at.is_some() {
        warnings.push(format!(
            "{} is disabled, which goes with them: the same person may come back as a new user.",
            sentence(&who)
        ));
    }
    Effects { changes, warnings }
}

fn view(preview: &deleting::Preview) -> Preview {
    let person = &preview.person;
    let effects = preview.verdict.map(|()| effects(preview));
    Preview {
        refused: effects.as_ref().err().map(|why| refused(*why)),
        action: format!("/admin/users/{}/delete", person.id()),
        fingerprint: preview.fingerprint(),
        hint: Some(NOTHING_PERSONAL),
        button: "Delete for good",
        ..Preview::new(
            "Delete a user",
            person,
            vec![Card::new("Goes", person, None)],
            effects.unwrap_or_default(),
        )
    }
}

#[get("/users/<user>/delete")]
async fn ask(staff: AdminStaff, user: &str, db: &Db, origin: ClientOrigin) -> Result<Page, Failure> {
    let preview = preview(db.pool(), id(user)?, &staff.0.member.email).await?.ok_or(Status::NotFound)?;
    view(&preview).ask(&staff, db, &origin).await
}

#[post("/users/<user>/delete", data = "<form>")]
async fn delete(
    staff: AdminStaff,
    user: &str,
    form: StaffForm,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Answer, Failure> {
    let user = id(user)?;
    let reason = form.reason()?;
    let by = by(&staff, &reason, &origin);
    match deleting::delete(db.pool(), user, seen(&form), by).await? {
        // The audit shows what is left of the user.
        Outcome::Done => Ok(Answer::Done(Redirect::to(format!("/admin/audit?user={user}")))),
        Outcome::NotFound => Err(Status::NotFound.into()),
        Outcome::NotPermitted => Err(Status::Forbidden.into()),
        Outcome::Changed | Outcome::Refused(_) => {
            let preview = preview(db.pool(), user, by.actor.name()).await?.ok_or(Status::NotFound)?;
            view(&preview).again(&form, &staff, db, &origin).await
        }
    }
}
