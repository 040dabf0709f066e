//! Sign-in with a verified identity: decides, writes and issues credentials.

use std::sync::Arc;

use uuid::Uuid;

use crate::accounts::tokens::Tokens;
use crate::accounts::tokens::refresh_token::RefreshToken;
use crate::accounts::users::{self, SignIn, SignedIn};
use crate::accounts::{Issuer, SharedStatements};
use crate::database::Database;
use crate::domain::{Origin, Reason, Thumbprint, VerifiedClaims};
use crate::keys::signing_key;
use crate::{config, database};

#[derive(Debug)]
pub struct Attempt<'a> {
    pub provider: &'a config::Provider,
    pub claims: &'a VerifiedClaims,
    pub create: bool,
    pub device_name: Option<&'a str>,
    pub device_platform: Option<&'a str>,
    /// The user's name, as the provider gave it to the client.
    pub reported_name: Option<&'a str>,
    pub key: Option<Thumbprint>,
    pub origin: &'a Origin,
    /// The current time, in seconds since the epoch.
    pub now: i64,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("refused: {0}")]
    Refused(Reason),
    #[error(transparent)]
    Store(#[from] database::Error),
    #[error(transparent)]
    Sign(#[from] signing_key::Error),
}

/// Finds, creates or links the user and opens a session.
///
/// Known identities, and new ones with an unused e-mail address, share a statement with concurrent
/// sign-ins. All others run a statement of their own, as do sign-ins for which the shared statement
/// has no result. After an error, nothing but the event of a refusal was written, unless a
/// connection broke: then a session may be open.
pub async fn sign_in(
    database: &Database,
    shared: &SharedStatements,
    issuer: &Issuer,
    attempt: &Attempt<'_>,
) -> Result<(SignedIn, Tokens), Error> {
    let decision = attempt
        .provider
        .policy
        .decide(attempt.claims, attempt.create);
    // An attempt whose connection broke may have taken effect, so each has a session of its own.
    let new_session = || {
        let token = RefreshToken::first(Uuid::now_v7());
        let item = SignIn {
            provider: attempt.provider.name.clone(),
            claims: attempt.claims.clone(),
            decision,
            session_id: token.session(),
            family_hash: token.family_hash(),
            token_hash: token.token_hash(),
            origin: attempt.origin.clone(),
            device_name: attempt.device_name.map(str::to_owned),
            device_platform: attempt.device_platform.map(str::to_owned),
            reported_name: attempt.reported_name.map(str::to_owned),
            key: attempt.key,
        };
        (token, Arc::new(item))
    };
    let (mut token, mut item) = new_session();
    let mut signed_in = shared.known.submit(item.clone()).await?;
    if signed_in.is_none() && decision.if_free.is_ok() {
        (token, item) = new_session();
        signed_in = shared.new.submit(item).await?;
    }
    let signed_in = if let Some(signed_in) = signed_in {
        signed_in
    } else {
        let identity = (&attempt.provider.name, &attempt.claims.subject);
        let ttl = shared.lifetimes.refresh_token_ttl;
        let alone = |_| {
            let (token, item) = new_session();
            async move { Ok((token, users::sign_in(database, &item, ttl).await?)) }
        };
        let (last, signed_in) = database.run_on(identity, alone).await?;
        token = last;
        signed_in.map_err(Error::Refused)?
    };
    let user = signed_in.user.id;
    let client_id = &attempt.claims.client_id;
    let session = token.session();
    let key = attempt.key.as_ref();
    let claims = &signed_in.claims;
    // No token outlives a new session (`config::session`).
    let expires_in = issuer.ttl;
    let refresh_expires_in = shared.lifetimes.refresh_token_ttl;
    let valid = attempt.now..attempt.now + i64::from(expires_in);
    let access_token = issuer.issue(user, session, client_id, key, claims, valid)?;
    let refresh_token = token.text();
    let bound = key.is_some();
    Ok((
        signed_in,
        Tokens {
            access_token,
            expires_in,
            refresh_token,
            refresh_expires_in,
            bound,
        },
    ))
}
