//! Staff sign-in by the authorization code flow: the request to the provider, its answer, and the
//! session that follows (OpenID Connect Core §3.1, RFC 7636, RFC 9700 §2.1).

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::accounts::OpaqueToken;
use crate::admin::staff::sign_in::store;
use crate::admin::staff::sign_in::store::{Candidate, Pending, Stranger};
use crate::config::Provider;
use crate::database::{Database, Error};
use crate::domain::{Origin, Reason, VerifiedClaims};
use crate::secret::Secret;

/// A sign-in that has begun. Everything in it is random.
#[derive(Debug)]
pub struct Begun {
    pub state: Secret<String>,
    /// Cookie of the browser, so that no other browser can finish.
    pub browser: Secret<String>,
    pub nonce: String,
    /// `code_challenge`, for the method S256.
    pub code_challenge: String,
}

pub async fn begin(database: &Database, next: String) -> Result<Begun, Error> {
    let [state, browser, nonce, verifier] = std::array::from_fn(|_| OpaqueToken::generate());
    let nonce = nonce.text.expose().clone();
    let code_verifier = verifier.text.expose().clone();
    let code_challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, code_verifier.as_bytes()));
    store::begin(
        database,
        &state.hash,
        &browser.hash,
        &Pending {
            nonce: nonce.clone(),
            code_verifier,
            next,
        },
    )
    .await?;
    Ok(Begun {
        state: state.text,
        browser: browser.text,
        nonce,
        code_challenge,
    })
}

/// Opens a session for the member of staff with the proven e-mail address and the identity that
/// they first signed in with, and refuses anyone else. The session of the cookie `before`, which
/// the browser had, ends.
pub async fn sign_in(
    database: &Database,
    provider: &Provider,
    claims: &VerifiedClaims,
    before: Option<&str>,
    origin: &Origin,
) -> Result<Result<Secret<String>, Stranger>, Error> {
    let Some(email) = &claims.email else {
        return Ok(Err(Stranger::NoEmail));
    };
    let authoritative = provider.staff_link().admits(claims);
    let before = before.and_then(OpaqueToken::parse);
    let candidate = Candidate {
        email: email.folded(),
        provider: &provider.name,
        subject: &claims.subject,
        unproven: match (claims.email_verified, authoritative) {
            (false, _) => Some(Reason::EmailNotVerified.into()),
            (true, false) => Some("not_authoritative"),
            (true, true) => None,
        },
        before: before.as_ref(),
    };
    let session = OpaqueToken::generate();
    Ok(
        match store::open_session(database, candidate, &session.hash, origin).await? {
            Ok(()) => Ok(session.text),
            Err(Stranger::NotStaff) if claims.email_verified && !authoritative => {
                Err(Stranger::NotAuthoritative)
            }
            Err(Stranger::NotStaff) if store::all(database).await?.is_empty() => {
                Err(Stranger::NobodyYet)
            }
            Err(stranger) => Err(stranger),
        },
    )
}

/// Returns the token which proves that a form is from a page of this session.
pub fn csrf_token(session: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, format!("csrf {session}").as_bytes()))
}
