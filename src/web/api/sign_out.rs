//! `POST /api/v1/auth/logout`: ends this session, the user's others, or all.

use rocket::http::Status;
use rocket::{State, post};

use crate::accounts::SharedStatements;
use crate::accounts::sign_out::{Scope, sign_out, sign_out_by_token};
use crate::web::guard::rate_limited::Refresh;
use crate::web::guard::sign_out_proof::SignOutRequest;
use crate::web::guard::{Page, Proof, RateLimited, SignOutProof};
use crate::web::{Db, Problem, Problems, resource};

resource!("Session": logout);

// A session that has already ended answers 204, too: the app could do nothing about it (RFC 7009
// §2.2).
/// Sign out
///
/// Send the access token or, if that has expired, the refresh token in the body or the page's
/// cookie. A session that has already ended is not an error. The cookie of the session that ends is
/// deleted. Services that only verify access tokens accept the current one until it expires.
#[utoipa::path(
    security(("access_token" = []), ()),
    params(("scope" = inline(Option<Scope>), Query,
            description = "`local` ends the current session, `others` all other sessions of the user, `global` all sessions of the user.")),
    request_body(content = SignOutRequest, description = "Required only without a valid access token."),
    responses(
        (status = 204, description = "Signed out."),
        Problems<(RateLimited<Refresh>, SignOutProof, Db)>,
    ),
)]
// Rocket would treat a repeated `scope` as absent if the parameter were not a `Vec`.
#[post("/auth/logout?<scope>", data = "<proof>")]
async fn logout(
    _limit: RateLimited<Refresh>,
    page: Page<'_>,
    key: Proof<'_>,
    proof: SignOutProof,
    scope: Vec<&str>,
    db: &Db,
    shared: &State<SharedStatements>,
) -> Result<Status, Problem> {
    let scope = match *scope {
        [] | ["local"] => Scope::Local,
        ["others"] => Scope::Others,
        ["global"] => Scope::Global,
        _ => {
            return Err(Problem::malformed(
                "`scope` must be local, others or global",
            ));
        }
    };
    match proof {
        SignOutProof::Session(session) => {
            sign_out(db, session, scope, &key.origin).await?;
            if scope != Scope::Others {
                page.forget_session(session);
            }
        }
        SignOutProof::Token(token) => {
            let successors = &shared.successors;
            let unproven =
                sign_out_by_token(db, successors, &token, key.key(), scope, &key.origin).await?;
            if let Some(session) = unproven {
                // Without its key the cookie is of no use, and a page cannot delete it.
                page.forget_token(&token);
                return Err(key.refuse(session));
            }
            if scope != Scope::Others {
                page.forget_token(&token);
            }
        }
    }
    Ok(Status::NoContent)
}
