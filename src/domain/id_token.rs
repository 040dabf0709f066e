//! The `id_token` as the client sent it: its format, and its unverified content.
//!
//! The content read here is **unverified**. It serves to refuse early a token that no provider
//! could accept, to choose the client's rules, and to show staff the claims of a refused token.
//! Otherwise it counts only once a signature or an endpoint has confirmed it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::claims::Expected;
use super::json::{self, MAX_VALUES, Object};
use super::refusal::{Reason, Refusal};
use super::{claims, kind};
use crate::secret::Secret;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Three base64url parts (RFC 7519); anything else is a malformed request.
    #[default]
    Jwt,
    /// Any text; it is read if it happens to be a JWT.
    Any,
}

/// A token of acceptable length and alphabet. It is a credential: `Debug` hides it.
#[derive(Debug, Clone)]
pub struct IdToken {
    text: Secret<String>,
    unverified: Option<Unverified>,
}

#[derive(Debug, Clone)]
pub struct Unverified {
    header: Object,
    claims: Object,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A line break was read with it, from a file or a program's output.
    #[error("`id_token` ends with a line break")]
    LineBreak,
    /// It is empty, too long, or not visible ASCII.
    #[error("`id_token` must be 1 to 16384 visible ASCII characters")]
    Text,
    /// It does not have the three parts of a JWT.
    #[error("`id_token` must be a JWT: three base64url parts separated by dots")]
    Parts,
    /// Its header or payload has too many values.
    #[error("`id_token` must not have more than {MAX_VALUES} values in its header or payload")]
    Values,
}

impl IdToken {
    /// The longest accepted token, in bytes. With two hundred groups, a token has some 12,000.
    pub const MAX_LENGTH: usize = 16 << 10;

    pub fn parse(text: &str, format: Format) -> Result<Self, Malformed> {
        let sound = (1..=Self::MAX_LENGTH).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_graphic());
        if !sound {
            let broken = text.ends_with(['\n', '\r']) && !text.trim_end().is_empty();
            return Err(if broken {
                Malformed::LineBreak
            } else {
                Malformed::Text
            });
        }
        let parts = decode(text);
        if parts.is_none() && format == Format::Jwt {
            return Err(Malformed::Parts);
        }
        let unverified = match parts.map(Unverified::read).transpose() {
            // An endpoint must not be asked about a token whose own claims are not checked.
            Err(json::Error::TooManyValues(_)) => return Err(Malformed::Values),
            read => read.ok().flatten(),
        };
        Ok(Self {
            text: Secret::new(text.to_owned()),
            unverified,
        })
    }

    /// Parses a signed message that is not an `id_token`, such as a security event. Its sender
    /// bounds its length.
    pub fn message(text: String) -> Option<Self> {
        let unverified = Some(Unverified::read(decode(&text)?).ok()?);
        Some(Self {
            text: Secret::new(text),
            unverified,
        })
    }

    /// Returns the token, for the one request that sends it to its provider.
    pub fn expose(&self) -> &str {
        self.text.expose()
    }

    pub fn unverified(&self) -> Option<&Unverified> {
        self.unverified.as_ref()
    }

    /// Returns the signed bytes and the signature (RFC 7515 §5.2), if the token is a JWT.
    pub fn signed(&self) -> Option<(&[u8], Vec<u8>)> {
        let (message, signature) = self.text.expose().rsplit_once('.')?;
        Some((message.as_bytes(), URL_SAFE_NO_PAD.decode(signature).ok()?))
    }

    /// Refuses, before any call, a token that the provider could not accept either.
    pub fn refuse_early(&self, format: Format, expected: &Expected<'_>) -> Result<(), Refusal> {
        match (&self.unverified, format) {
            (Some(unverified), _) => unverified.refuse_early(expected),
            (None, Format::Any) => Ok(()),
            (None, Format::Jwt) => Err(Refusal::new(
                Reason::InvalidToken,
                "the token's header or payload is not a JSON object",
            )),
        }
    }
}

impl Unverified {
    fn read([header, claims]: [Vec<u8>; 2]) -> Result<Self, json::Error> {
        Ok(Self {
            header: Object::parse(&header)?,
            claims: Object::told(&claims, MAX_VALUES)?,
        })
    }

    /// Returns a string claim, which must be shown as unverified.
    pub fn claimed(&self, name: &str) -> Option<&str> {
        self.claims.str(name)
    }

    /// Returns the claims, which the provider has yet to confirm.
    pub fn claims(&self) -> &Object {
        &self.claims
    }

    /// Returns the header and the claims, for the verification of their signature.
    pub(super) fn parts(&self) -> (&Object, &Object) {
        (&self.header, &self.claims)
    }

    fn refuse_early(&self, expected: &Expected<'_>) -> Result<(), Refusal> {
        let signed = self
            .header
            .str("alg")
            .is_some_and(|alg| !alg.eq_ignore_ascii_case("none"));
        if !signed {
            return Err(Refusal::new(
                Reason::InvalidToken,
                "the token is not signed (`alg`)",
            ));
        }
        kind::check_header(&self.header)?;
        kind::check_claims(&self.claims)?;
        // Only claims that are present are checked here. The provider's response, not the token,
        // has to be complete.
        if self.claims.get("iss").is_some() {
            claims::check_issuer(&self.claims, expected)?;
        }
        let mut client_id = "";
        if self.claims.get("aud").is_some() {
            client_id = claims::check_audience(&self.claims, expected)?;
        }
        if self.claims.get("exp").is_some() {
            claims::check_expiry(&self.claims, expected)?;
        }
        // Some endpoints do not return the nonce; without this check a thief could leave it out of
        // the request.
        if self.claims.get("nonce").is_some() {
            claims::check_nonce(&self.claims, client_id, expected)?;
        }
        Ok(())
    }
}

fn decode(text: &str) -> Option<[Vec<u8>; 2]> {
    let mut parts = text.splitn(4, '.');
    let mut next = || URL_SAFE_NO_PAD.decode(parts.next()?).ok();
    let header = next()?;
    let claims = next()?;
    let _signature = next()?;
    parts.next().is_none().then_some([header, claims])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_never_shows_in_debug_output() {
        let token = IdToken::parse("e30.e30.c2ln", Format::Jwt).unwrap();
        assert!(!format!("{token:?}").contains("c2ln"));
    }
}
