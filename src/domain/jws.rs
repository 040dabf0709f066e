//! The signature of an `id_token` (RFC 7515 §5.2, RFC 8725).
//!
//! The token chooses neither the algorithm nor the key: each key names its algorithm, and keys in
//! the token or referenced by it (`jwk`, `jku`, `x5c`, `x5u`) are ignored.

use super::id_token::IdToken;
use super::issuer::Issuers;
use super::json::Object;
use super::jwk::{Algorithm, Key, KeySet};
use super::kind;
use super::refusal::{Reason, Refusal, visible};
use super::security_event;

/// A signed token whose signature is not yet verified.
#[derive(Debug)]
pub struct Jws<'t> {
    algorithm: Algorithm,
    key_id: Option<&'t str>,
    message: &'t [u8],
    signature: Vec<u8>,
    claims: &'t Object,
}

/// The reason why a signature is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The token is invalid with these keys.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The key is not in this key set; it may be in a newer one.
    #[error("the key is not among these")]
    UnknownKey,
}

impl Failure {
    /// Converts the failure once there is no newer key set.
    pub fn into_refusal(self) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::UnknownKey => {
                refused("the token is not signed with a published key of the provider")
            }
        }
    }
}

const fn refused(detail: &'static str) -> Refusal {
    Refusal::new(Reason::InvalidToken, detail)
}

fn unusable_key() -> Refusal {
    let names = Algorithm::NAMES;
    let keys = Algorithm::KEYS;
    refused("the token is signed with an unsupported key").logged(format!(
        "`kid` names a published key that is not supported; supported are {names}, with signature keys \
         ({keys}); configure the provider to sign id_tokens with one of them"
    ))
}

impl<'t> Jws<'t> {
    /// Reads the header of an `id_token`, and refuses a token that no key could verify.
    ///
    /// # Errors
    /// The token is not signed, or not with an accepted algorithm, or is of another kind.
    pub fn read(token: &'t IdToken) -> Result<Self, Refusal> {
        Self::read_as(token, kind::check_header)
    }

    /// Like [`Jws::read`], for a security event.
    ///
    /// # Errors
    /// The message is not signed, or not with an accepted algorithm, or is of another kind.
    pub fn read_event(token: &'t IdToken) -> Result<Self, Refusal> {
        Self::read_as(token, |header| {
            security_event::check_header(header).map_err(refused)
        })
    }

    fn read_as(
        token: &'t IdToken,
        check_header: impl Fn(&Object) -> Result<(), Refusal>,
    ) -> Result<Self, Refusal> {
        const UNSIGNED: Refusal = refused("the token is not a signed JWT");
        let (header, claims) = token.unverified().ok_or(UNSIGNED)?.parts();
        let (message, signature) = token.signed().ok_or(UNSIGNED)?;
        let named = header.str("alg").unwrap_or_default();
        let algorithm = named.parse().map_err(|_| {
            let accepted = Algorithm::NAMES;
            refused("`alg` is not a supported algorithm").logged(format!(
                "`alg` is {}; supported are {accepted}; configure the provider to sign id_tokens with one of them",
                visible(named)
            ))
        })?;
        // No extension that must be understood (RFC 7515 §4.1.11) is supported. `get` would hide a
        // `null`.
        if header.has("crit") {
            return Err(refused("`crit` names unsupported extensions"));
        }
        check_header(header)?;
        let key_id = match header.get("kid") {
            None => None,
            Some(kid) => Some(kid.as_str().ok_or(refused("`kid` is not a string"))?),
        };
        Ok(Self {
            algorithm,
            key_id,
            message,
            signature,
            claims,
        })
    }

    /// Returns the claims if a key of the provider has signed them.
    pub fn verify(&self, keys: &KeySet, issuers: &Issuers) -> Result<&'t Object, Failure> {
        let candidates: Vec<&Key> = match self.key_id {
            Some(id) => keys
                .keys()
                .iter()
                .filter(|key| key.id.as_deref() == Some(id))
                .collect(),
            // Without a `kid`, the provider must have exactly one key.
            None if keys.keys().len() == 1 => keys.keys().iter().collect(),
            None => {
                return Err(refused("`kid` is missing, but the provider has several keys").into());
            }
        };
        if candidates.is_empty() {
            // The key is published here, but unusable, so newer keys would not help.
            let unusable = self.key_id.is_some_and(|id| keys.leaves_out(id));
            return Err(if unusable {
                unusable_key().into()
            } else {
                Failure::UnknownKey
            });
        }
        let fits = |key: &&Key| key.signs_with(self.algorithm);
        let signed = |key: &&Key| key.verifies(self.algorithm, self.message, &self.signature);
        let permitted = |key: &Key| issuers.may_sign(key.issuer.as_deref(), self.claims.str("iss"));
        let signers: Vec<_> = candidates.iter().copied().filter(signed).collect();
        if signers.iter().copied().any(permitted) {
            return Ok(self.claims);
        }
        if !signers.is_empty() {
            return Err(refused("the key belongs to another issuer").into());
        }
        match (candidates.iter().any(fits), self.key_id) {
            // Without a `kid`, a signature by the provider's next key looks like a wrong one.
            (true, None) => Err(Failure::UnknownKey),
            (true, Some(_)) => Err(refused("the signature is invalid").into()),
            (false, _) => {
                let refusal = refused("`alg` does not match the key's algorithm");
                let named = self.algorithm;
                let log = format!(
                    "`alg` is {named}, but the provider publishes the key for another algorithm"
                );
                Err(refusal.logged(log).into())
            }
        }
    }
}
