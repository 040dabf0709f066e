//! Authentication by access token: `Bearer` (RFC 6750), and `DPoP` (RFC 9449 §7) for a session that
//! is bound to a key.

use rocket::request::Request;
use uuid::Uuid;

use super::proof::{self, ProofErrors};
use super::rate_limited::{self, admit_address, admit_name, admit_session};
use super::shared::{request_guard, state};
use crate::accounts::identities::IdentityRow;
use crate::accounts::merging::merged_into;
use crate::accounts::sessions::{SessionUser, why_over};
use crate::accounts::tokens::access_token::AccessToken;
use crate::accounts::{Issuer, SharedStatements};
use crate::clock;
use crate::database::Error;
use crate::domain::{CustomClaims, EndReason, User};
use crate::web::{Db, ErrorCode, Problem, errors};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Challenge {
    Missing,
    Repeated,
    Invalid,
}

impl Challenge {
    pub(crate) const fn header(self) -> &'static str {
        match self {
            // A request without credentials gets no error code (RFC 6750 §3.1).
            Self::Missing => r#"Bearer realm="vestibule""#,
            Self::Repeated => r#"Bearer realm="vestibule", error="invalid_request""#,
            Self::Invalid => r#"Bearer realm="vestibule", error="invalid_token""#,
        }
    }
}

/// Returns the bearer token of the one `Authorization` header. A token in the query or the body is
/// ignored.
pub(crate) fn credentials<'r>(request: &'r Request<'_>) -> Result<&'r str, Challenge> {
    match authorization(request)? {
        (scheme, token) if scheme.eq_ignore_ascii_case("Bearer") => Ok(token),
        _ => Err(Challenge::Missing),
    }
}

pub(super) fn authorization<'r>(request: &'r Request<'_>) -> Result<(&'r str, &'r str), Challenge> {
    let mut headers = request.headers().get("Authorization");
    let header = headers.next().ok_or(Challenge::Missing)?;
    if headers.next().is_some() {
        return Err(Challenge::Repeated);
    }
    let (scheme, token) = header.split_once(' ').unwrap_or((header, ""));
    Ok((scheme, token.trim_start()))
}

impl From<Challenge> for Problem {
    fn from(challenge: Challenge) -> Self {
        let (kind, detail) = match challenge {
            Challenge::Missing => (
                ErrorCode::InvalidAccessToken,
                "the `Authorization` header must contain a bearer token",
            ),
            Challenge::Repeated => (
                ErrorCode::InvalidRequest,
                "there must be exactly one `Authorization` header",
            ),
            Challenge::Invalid => (
                ErrorCode::InvalidAccessToken,
                "the access token is malformed or expired, or its session has ended",
            ),
        };
        Self {
            challenge: Some(challenge.header()),
            ..Self::new(kind, detail)
        }
    }
}

/// A request with a valid access token, whose session may have ended since.
///
/// - **Succeeds** when the one `Authorization` header carries a valid access token, and the request
///   proves its key if it is bound to one.
/// - **Fails** with 401 when it does not, and with 400 when there are several headers.
///
/// A token in the query or the body is ignored.
#[derive(Debug, Clone, Copy)]
pub struct Bearer(pub AccessToken);

/// A request of a user with a live session.
///
/// - **Succeeds** when [`Bearer`] does, the session has not ended and the user is not disabled.
#[derive(Debug, Clone)]
pub struct SignedIn {
    pub token: AccessToken,
    pub user: User,
    /// The identity that the session was opened with.
    pub identity: Uuid,
    /// The user's identities, the oldest first.
    pub identities: Vec<IdentityRow>,
    pub claims: CustomClaims,
}

/// A request of a user with a live session who changes the name to be shown.
///
/// - **Succeeds** when [`SignedIn`] does, within the limit of such changes.
#[derive(Debug, Clone)]
pub struct Renaming(pub SignedIn);

/// Returns the answer to a request with a valid access token whose session is over.
pub async fn over(db: &Db, token: AccessToken) -> Problem {
    let told = async {
        let reason = db.run(|_| why_over(db, token.user)).await?;
        let merged_into = match reason {
            Some(EndReason::UserMerged) => db.run(|_| merged_into(db, token.user)).await?,
            _ => None,
        };
        Ok::<_, Error>(Problem {
            merged_into,
            ..Problem::from(Challenge::Invalid).because(reason)
        })
    };
    told.await.unwrap_or_else(Problem::from)
}

impl Bearer {
    /// Reads the header. The caller keeps the problem with the request.
    pub(super) async fn of(request: &Request<'_>) -> Result<Self, Problem> {
        let issuer: &Issuer = state(request)?;
        let (scheme, text) = authorization(request)?;
        let is_dpop = scheme.eq_ignore_ascii_case("DPoP");
        if !is_dpop && !scheme.eq_ignore_ascii_case("Bearer") {
            return Err(Challenge::Missing.into());
        }
        let token = issuer
            .verify(text, clock::now())
            .await
            .map_err(|_| Challenge::Invalid)?;
        proof::check(request, text, is_dpop, token)?;
        Ok(Self(token))
    }
}

impl SignedIn {
    /// Finds the user. The caller keeps the problem with the request.
    pub(super) async fn of(request: &Request<'_>) -> Result<Self, Problem> {
        // Before the token's signature is verified, which costs more than the counter.
        admit_address::<rate_limited::Bearer>(request)?;
        let Bearer(token) = Bearer::of(request).await?;
        admit_session(request, token.session)?;
        let db: &Db = state(request)?;
        let shared: &SharedStatements = state(request)?;
        match shared.user(db, token).await? {
            Some(SessionUser {
                user,
                identity,
                identities,
                claims,
            }) => Ok(Self {
                token,
                user,
                identity,
                identities,
                claims,
            }),
            None => Err(over(db, token).await),
        }
    }
}

impl Renaming {
    async fn of(request: &Request<'_>) -> Result<Self, Problem> {
        let signed_in = SignedIn::of(request).await?;
        admit_name(request, signed_in.user.id)?;
        Ok(Self(signed_in))
    }
}

errors!(Bearer: [ErrorCode::InvalidRequest, ErrorCode::InvalidAccessToken].into_iter().chain(ProofErrors::kinds()));
// Requests of a session are rate-limited, too.
errors!(SignedIn: <(Bearer, Db)>::kinds().chain([ErrorCode::RateLimited]));
errors!(Renaming: SignedIn::kinds());

request_guard!(SignedIn, |request| Self::of(request).await);
request_guard!(Renaming, |request| Self::of(request).await);
