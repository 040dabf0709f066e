//! Unlinking an identity, after a preview.

use rocket::http::Status;
use rocket::response::Redirect;
use rocket::{Route, get, post, routes};

use super::words::{ending, identity as called, name, refused, sentence};
use super::{Answer, Card, Effects, Preview, by, id, seen};
use crate::admin::changes::Outcome;
use crate::admin::changes::unlink::{self as unlinking, preview};
use crate::admin::failure::Failure;
use crate::admin::guard::{AdminStaff, StaffForm};
use crate::admin::page::Page;
use crate::web::database::Db;
use crate::web::guard::ClientOrigin;

pub(super) fn routes() -> Vec<Route> {
    routes![ask, unlink]
}

fn effects(preview: &unlinking::Preview) -> Effects {
    let (user, gone) = (&preview.person.user, &preview.identity);
    let who = name(&preview.person);
    let mut changes = vec![
        sentence(&format!("{} no longer signs in as {who}.", called(gone))),
        "Whoever signs in with it afterwards is met as any unknown identity: linked to the user who has its address, \
         verified, or else a new user."
            .to_owned(),
        ending(gone.sessions, "opened with it"),
    ];
    let mut warnings = Vec::new();
    if let Some(address) = &user.email {
        changes.push(format!("The address of {who} stays {address}."));
        if preview.is_last() {
            warnings.push(format!(
                "It is the last identity. The only way back to this user is to sign in with the address {address} at a \
                 provider that vouches for it."
            ));
        }
    }
    Effects { changes, warnings }
}

fn view(preview: &unlinking::Preview) -> Preview {
    let (person, gone) = (&preview.person, preview.identity.identity.id);
    let cards = vec![Card::new("Loses it", person, Some(gone))];
    let effects = preview.verdict.map(|()| effects(preview));
    Preview {
        refused: effects.as_ref().err().map(|why| refused(*why)),
        action: format!("/admin/users/{}/identities/{gone}/unlink", person.id()),
        fingerprint: preview.fingerprint(),
        button: "Unlink it",
        ..Preview::new("Unlink an identity", person, cards, effects.unwrap_or_default())
    }
}

#[get("/users/<user>/identities/<identity>/unlink")]
async fn ask(
    staff: AdminStaff,
    user: &str,
    identity: &str,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Page, Failure> {
    let preview = preview(db.pool(), id(user)?, id(identity)?).await?.ok_or(Status::NotFound)?;
    view(&preview).ask(&staff, db, &origin).await
}

#[post("/users/<user>/identities/<identity>/unlink", data = "<form>")]
async fn unlink(
    staff: AdminStaff,
    user: &str,
    identity: &str,
    form: StaffForm,
    db: &Db,
    origin: ClientOrigin,
) -> Result<Answer, Failure> {
    let (user, identity) = (id(user)?, id(identity)?);
    let reason = form.reason()?;
    match unlinking::unlink(db.pool(), user, identity, seen(&form), by(&staff, &reason, &origin)).await? {
        Outcome::Done => Ok(Answer::Done(Redirect::to(format!("/admin/users/{user}?done=unlink")))),
        Outcome::NotFound => Err(Status::NotFound.into()),
        Outcome::NotPermitted => Err(Status::Forbidden.into()),
        Outcome::Changed | Outcome::Refused(_) => {
            let preview = preview(db.pool(), user, identity).await?.ok_or(Status::NotFound)?;
            view(&preview).again(&form, &staff, db, &origin).await
        }
    }
}
