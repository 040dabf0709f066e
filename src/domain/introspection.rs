//! The response of a token introspection endpoint (RFC 7662 §2.2).

use serde_json::{Map, Value};

use super::claims::audience;
use super::presets::{Dialect, EMAIL_VERIFIED};
use super::{Email, Object, Reason, Refusal, issuer};

/// The error of an endpoint that does not introspect tokens of this kind (defined by RFC 7009
/// §2.2.1, also used for introspection).
pub const NOT_INTROSPECTED: &str = "unsupported_token_type";

/// The members that name the client that a token was issued to.
const PARTY: [&str; 2] = ["azp", "client_id"];

/// The members of the response that replace the token's own. They include the token's kind: `typ`
/// (Keycloak) and `token_use` (Cognito) have the same meaning as in a JWT. `token_type` does not:
/// it names the way to use a token (RFC 6749 §7.1), so an endpoint returns `Bearer` for any token.
const TOLD: [&str; 12] = [
    "exp",
    "iat",
    "nbf",
    "nonce",
    "typ",
    "token_use",
    "azp",
    "client_id",
    "email",
    "name",
    "picture",
    "hd",
];

/// Returns the claims of an active token, without the members that introspection adds. These
/// members would make every token look like an access token.
pub fn claims(mut answer: Object) -> Object {
    for name in ["active", "scope", "token_type", "username"] {
        answer.remove(name);
    }
    answer
}

/// Returns the member `active`; `None` if it is not a Boolean.
pub fn active(answer: &Object) -> Option<bool> {
    match answer.get("active") {
        Some(Value::Bool(active)) => Some(*active),
        _ => None,
    }
}

/// Returns the claims of an active JWT: the members of the response, and otherwise the token's own
/// claims. They have to pass the same checks as the token's own. The response must not contradict
/// the token's issuer, subject, audience, client, e-mail address or its verification.
pub fn confirmed(own: &Object, answer: &Object, dialect: Dialect) -> Result<Object, Refusal> {
    let refuse = |reason, detail| Err(Refusal::new(reason, detail));
    let differ = |name, same: fn(&Value, &Value) -> bool| {
        own.get(name)
            .zip(answer.get(name))
            .is_some_and(|(own, told)| !same(own, told))
    };
    if differ("iss", same_issuer) {
        return refuse(
            Reason::IssuerMismatch,
            "introspection names another `iss` than the token",
        );
    }
    if differ("sub", PartialEq::eq) {
        return refuse(
            Reason::InvalidToken,
            "introspection names another `sub` than the token",
        );
    }
    let audiences = !dialect.resource_audience && answer.get("aud").is_some();
    if audiences && audience(own) != audience(answer) {
        return refuse(
            Reason::AudienceMismatch,
            "introspection names another `aud` than the token",
        );
    }
    let party = |claims: &Object| {
        PARTY
            .map(|name| claims.get(name).cloned())
            .into_iter()
            .flatten()
    };
    if party(own).any(|own| party(answer).any(|told| told != own)) {
        return refuse(
            Reason::AudienceMismatch,
            "introspection names another client than the token's `azp`",
        );
    }
    if differ("email", same_email) {
        return refuse(
            Reason::InvalidToken,
            "introspection names another `email` than the token",
        );
    }
    let proof = dialect.email_proof;
    if proof
        .given(own)
        .zip(proof.given(answer))
        .is_some_and(|(own, told)| own != told)
    {
        return refuse(
            Reason::InvalidToken,
            "introspection and the token differ in `email_verified`",
        );
    }
    let mut claims: Map<_, _> = own.clone().into();
    if own.get("email").is_none() {
        // The token's claim is not about the address in the response.
        claims.remove(EMAIL_VERIFIED);
    }
    // A `null` is a statement here: the address is not verified.
    let verified = answer.members().find(|(name, _)| *name == EMAIL_VERIFIED);
    claims.extend(verified.map(|(name, value)| (name.to_owned(), value.clone())));
    claims.extend(
        TOLD.iter()
            .filter_map(|name| Some(((*name).to_owned(), answer.get(name)?.clone()))),
    );
    Ok(claims.into())
}

fn same_issuer(one: &Value, other: &Value) -> bool {
    one.as_str()
        .zip(other.as_str())
        .is_some_and(|(one, other)| issuer::same(one, other))
}

fn same_email(one: &Value, other: &Value) -> bool {
    let folded = |value: &Value| {
        value
            .as_str()
            .and_then(Email::parse)
            .map(|email| email.folded().to_owned())
    };
    one == other || folded(one).is_some_and(|one| folded(other) == Some(one))
}
