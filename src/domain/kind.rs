//! Tells an `id_token` from the other tokens that a provider signs with the same keys (RFC 8725
//! §3.11 and §3.12, RFC 9068 §5). If access tokens were accepted here, any service that receives a
//! user's access token could sign in as that user.
//!
//! Some providers, such as Dex, issue access tokens with the same claims as their `id_token`s.
//! Those cannot be told apart.

use serde_json::Value;

use super::json::Object;
use super::refusal::{Reason, Refusal};

const ACCESS_TOKEN: Refusal = Refusal::new(
    Reason::InvalidToken,
    "this is an access token; send the id_token",
);
const OTHER: Refusal = Refusal::new(
    Reason::InvalidToken,
    "this is a token of another kind; send the id_token",
);

/// Members that only access tokens have: the scopes (RFC 9068 §2.2.3, Microsoft's `scp`), and the
/// client's authentication method (Microsoft).
const OF_ACCESS: [&str; 4] = ["scope", "scp", "azpacr", "appidacr"];

/// Refuses a JOSE header that names another kind of token, such as `at+jwt` (RFC 9068 §2.1) or
/// `logout+jwt`.
pub(super) fn check_header(header: &Object) -> Result<(), Refusal> {
    match of(header).as_deref() {
        None | Some("jwt") => Ok(()),
        Some("at+jwt") => Err(ACCESS_TOKEN),
        Some(_) => Err(OTHER),
    }
}

/// Returns `typ` in lower case, without the prefix that senders may leave out (RFC 7515 §4.1.9).
pub(super) fn of(header: &Object) -> Option<String> {
    let typ = header
        .get("typ")?
        .as_str()
        .unwrap_or_default()
        .to_ascii_lowercase();
    Some(
        typ.strip_prefix("application/")
            .map(str::to_owned)
            .unwrap_or(typ),
    )
}

/// Refuses the claims of another kind of token.
pub(super) fn check_claims(claims: &Object) -> Result<(), Refusal> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_ascii_lowercase();
    // Keycloak has `typ` in the payload; Google's endpoint adds the header's `typ` to the claims.
    match claims.get("typ").map(word).as_deref() {
        None | Some("id" | "jwt") => {}
        Some("bearer" | "dpop" | "at+jwt") => return Err(ACCESS_TOKEN),
        Some(_) => return Err(OTHER),
    }
    // Amazon Cognito has `token_use`.
    match claims.get("token_use").map(word).as_deref() {
        None | Some("id") => {}
        Some("access") => return Err(ACCESS_TOKEN),
        Some(_) => return Err(OTHER),
    }
    // Logout tokens (OpenID Connect Back-Channel Logout §2.4) and other security events (RFC 8417).
    if claims.get("events").is_some() {
        return Err(OTHER);
    }
    if OF_ACCESS.iter().any(|name| claims.get(name).is_some()) {
        Err(ACCESS_TOKEN)
    } else {
        Ok(())
    }
}
