//! The `DPoP` proof of a request (RFC 9449).

use rocket::request::{FromRequest, Outcome, Request};
use uuid::Uuid;

use super::origin::ClientOrigin;
use super::shared::{provider_in_path, request_guard, state};
use crate::accounts::sessions::NotRefreshed;
use crate::accounts::tokens::access_token::AccessToken;
use crate::accounts::{Issuer, ProofNonces, refresh};
use crate::domain::dpop::{self, Refused, Shown};
use crate::domain::{Binding, Origin, Thumbprint};
use crate::events::Refusals;
use crate::events::record::RefusedRequest;
use crate::web::{ErrorCode, Problem, failures};
use crate::{clock, config};

failures!(
    /// The errors of a request that does not prove the key of its session.
    pub ProofErrors: ErrorCode::UseDpopNonce,
    ErrorCode::InvalidDpopProof,
);

/// The key that a request with a refresh token proves.
///
/// - **Succeeds** always: only the session tells whether it needs the proof. But a proof that only
///   lacks a fresh nonce **fails** at once, without a query.
#[derive(Debug)]
pub struct Proof<'r> {
    proven: Result<Thumbprint, Refused>,
    refusals: &'r Refusals,
    pub origin: Origin,
}

/// The proof of a sign-in, which binds the new session to its key.
///
/// - **Succeeds** without a proof, and with a valid one.
/// - **Fails** otherwise, before the provider is asked. With `session.binding = "off"`, the header
///   is ignored.
#[derive(Debug)]
pub struct NewKey<'r>(pub Proof<'r>);

impl<'r> Proof<'r> {
    /// Reads the only `DPoP` header. `access_token` is the token that the request shows in
    /// `Authorization`.
    fn of(request: &'r Request<'_>, access_token: Option<&str>) -> Result<Self, Problem> {
        let refusals = state(request)?;
        let mut headers = request.headers().get("DPoP");
        let proven = match (headers.next(), headers.next()) {
            (None, _) => Err(Refused::Missing),
            (_, Some(_)) => Err(Refused::Repeated),
            (Some(proof), None) => {
                let (issuer, nonces): (&Issuer, &ProofNonces) = (state(request)?, state(request)?);
                let url = format!("{}{}", issuer.name, request.uri().path());
                let shown = Shown {
                    method: request.method().as_str(),
                    url: &url,
                    access_token,
                };
                let now = clock::now();
                let proven = dpop::verify(proof, shown, |nonce| nonces.accepts(nonce, now));
                request.local_cache(|| Some(proven));
                proven
            }
        };
        Ok(Self {
            proven,
            refusals,
            origin: ClientOrigin::of(request).0,
        })
    }

    pub fn key(&self) -> Option<Thumbprint> {
        self.proven.ok()
    }

    /// Returns the problem of a request that does not prove the key of this session, and records
    /// it.
    pub fn refuse(&self, session: Uuid) -> Problem {
        let refused = RefusedRequest {
            session: Some(session),
            ..RefusedRequest::default()
        };
        self.record(self.proven.err().unwrap_or(Refused::OtherKey), refused)
    }

    /// Returns the problem of a refresh that failed. Records the refusal if the session's key is
    /// not proven.
    pub fn explain(&self, error: refresh::Error) -> Problem {
        match error {
            refresh::Error::Unproven(session) => Problem {
                not_refreshed: Some(NotRefreshed::Unproven),
                ..self.refuse(session)
            },
            error => error.into(),
        }
    }

    fn record(&self, cause: Refused, refused: RefusedRequest) -> Problem {
        // The client retries with another nonce, and an unbound session needs no proof.
        if !matches!(cause, Refused::Nonce | Refused::Unbound) {
            let origin = self.origin.clone();
            self.refusals.record(
                RefusedRequest {
                    reason: cause.into(),
                    origin,
                    ..refused
                },
                false,
            );
        }
        cause.into()
    }
}

/// Returns the verdict on the proof of an answered request, if it has one or should.
pub fn verdict(
    request: &Request<'_>,
    problem: Option<&Problem>,
) -> Option<Result<Thumbprint, Refused>> {
    let refused = problem.and_then(|problem| problem.proof).map(Err);
    refused.or_else(|| {
        if request.headers().contains("DPoP") {
            *request.local_cache(|| None)
        } else {
            None
        }
    })
}

/// Checks that the request proves the key of an access token, and that a bound one comes with the
/// scheme `DPoP`.
pub(super) fn check(
    request: &Request<'_>,
    text: &str,
    is_dpop: bool,
    token: AccessToken,
) -> Result<(), Problem> {
    let Some(key) = token.key else {
        return if is_dpop {
            Err(Refused::Unbound.into())
        } else {
            Ok(())
        };
    };
    let proof = Proof::of(request, Some(text))?;
    let proof = if is_dpop {
        proof
    } else {
        Proof {
            proven: Err(Refused::Bearer),
            ..proof
        }
    };
    if proof.key() == Some(key) {
        return Ok(());
    }
    Err(proof.refuse(token.session))
}

impl<'r> NewKey<'r> {
    fn of(request: &'r Request<'_>) -> Result<Self, Problem> {
        let session: &config::Session = state(request)?;
        // A refusal is recorded with the provider's name, so it must be a configured one: any
        // client can make up a name in a path.
        let provider = &provider_in_path(request)?.settings.name;
        let key = Self(Proof::of(request, None)?);
        // Only the verified token shows whether the client needs a proof.
        let early = if session.binding == Binding::Off {
            Binding::Off
        } else {
            Binding::Optional
        };
        key.bind(early, provider)?;
        Ok(key)
    }

    pub fn bind(&self, binding: Binding, provider: &str) -> Result<Option<Thumbprint>, Problem> {
        match (self.0.proven, binding) {
            (_, Binding::Off) | (Err(Refused::Missing), Binding::Optional) => Ok(None),
            (Ok(key), _) => Ok(Some(key)),
            (Err(cause), _) => {
                let refused = RefusedRequest {
                    provider: provider.to_owned(),
                    ..RefusedRequest::default()
                };
                Err(self.0.record(cause, refused))
            }
        }
    }
}

impl From<Refused> for Problem {
    fn from(cause: Refused) -> Self {
        macro_rules! challenge {
            ($error:literal) => {
                concat!(
                    r#"DPoP realm="vestibule", error=""#,
                    $error,
                    r#"", algs="ES256 EdDSA""#
                )
            };
        }
        let (kind, challenge) = match cause {
            Refused::Nonce => (ErrorCode::UseDpopNonce, challenge!("use_dpop_nonce")),
            Refused::Bearer | Refused::Unbound => {
                (ErrorCode::InvalidAccessToken, challenge!("invalid_token"))
            }
            _ => (
                ErrorCode::InvalidDpopProof,
                challenge!("invalid_dpop_proof"),
            ),
        };
        let detail = format!(
            "{} (RFC 9449, section {})",
            cause.sentence(),
            cause.section()
        );
        Self {
            challenge: Some(challenge),
            proof: Some(cause),
            ..Self::new(kind, detail)
        }
    }
}

#[rocket::async_trait]
impl<'r> FromRequest<'r> for Proof<'r> {
    /// For a handler that answers in a format of its own.
    type Error = Problem;

    async fn from_request(request: &'r Request<'_>) -> Outcome<Self, Problem> {
        let problem = match Self::of(request, None) {
            Ok(Self {
                proven: Err(Refused::Nonce),
                ..
            }) => Refused::Nonce.into(),
            Ok(proof) => return Outcome::Success(proof),
            Err(problem) => problem,
        };
        let problem = problem.keep(request).clone();
        Outcome::Error((problem.status(), problem))
    }
}

request_guard!(NewKey<'r>, |request| Self::of(request));
