//! The claims of a provider, and the checks of OpenID Connect Core §3.1.3.7 on them.
//!
//! Providers send numbers as strings, Booleans as strings, and one audience or several. Each claim
//! is parsed into exactly one type here. A value that does not fit is refused if the claim is
//! required, and otherwise counts as absent.

use std::collections::BTreeMap;

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;

use super::email::Email;
use super::issuer::Issuers;
use super::json::Object;
use super::kind;
use super::presets::{Dialect, EmailProof};
use super::refusal::{Reason, Refusal, visible};
use super::text::{is_blank, is_control};

/// The tolerated difference between clocks, in seconds.
pub const LEEWAY: i64 = 60;

const MAX_SUBJECT_LENGTH: usize = 255;
/// The most characters of a name.
pub(crate) const MAX_NAME_CHARS: usize = 200;
const MAX_PICTURE_LENGTH: usize = 2048;

/// The last second that has a date (9999-12-31T23:59:59Z). A later time would never expire, or is
/// in milliseconds.
const LAST_DATE: i64 = 253_402_300_799;

/// The rule for the presence of a nonce.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, strum::VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum NonceRule {
    /// A nonce in the request or in the token requires one in the other.
    #[default]
    BothOrNeither,
    /// A nonce in the token alone is accepted, for SDKs that add one of their own.
    IfSent,
    /// The request and the token must both have a nonce.
    Always,
}

/// The form in which the token holds the request's nonce. Only one form is accepted: a service that
/// saw a token with the hash does not know the nonce, and must not be able to send the hash as the
/// nonce.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, strum::VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum NonceForm {
    /// The nonce itself.
    #[default]
    Raw,
    /// Its SHA-256 in lower-case hex.
    Sha256,
}

impl NonceForm {
    /// Returns the value that the token must hold for this nonce.
    pub fn of(self, nonce: &str) -> String {
        match self {
            Self::Raw => nonce.to_owned(),
            Self::Sha256 => sha256_hex(nonce),
        }
    }
}

/// The requirements on a nonce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NoncePolicy {
    /// The rule for its presence.
    pub rule: NonceRule,
    /// The form in the token.
    pub form: NonceForm,
}

/// A provider's policies for nonces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Nonces {
    /// The policy for clients without one of their own.
    pub usual: NoncePolicy,
    /// Policies by client id: the SDKs of different platforms differ.
    pub by_client: BTreeMap<String, NoncePolicy>,
}

impl Nonces {
    /// Returns the policy for tokens that were issued to this client.
    pub fn of(&self, client_id: &str) -> NoncePolicy {
        self.by_client.get(client_id).copied().unwrap_or(self.usual)
    }
}

/// The expected values: the provider's settings, this request's nonce and the time.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// Accepted values of `iss`.
    pub issuers: &'a Issuers,
    /// Client ids accepted in `aud` and `azp`.
    pub audiences: &'a [String],
    /// Audiences that the provider adds by itself, accepted in `aud` beside a client id.
    pub companions: &'a [String],
    /// If not empty, `hd` must be one of these (lower case).
    pub hosted_domains: &'a [String],
    /// The nonce in the request, unhashed.
    pub nonce: Option<&'a str>,
    /// The requirements on it.
    pub nonces: &'a Nonces,
    /// Oldest accepted `iat`, in seconds before now.
    pub max_age: i64,
    /// Treats an absent `email_verified` as true. `null` is not absent.
    pub trust_email: bool,
    /// Deviations of this provider's claims from the standard.
    pub dialect: Dialect,
    /// The current time, in seconds since 1970-01-01T00:00:00Z.
    pub now: i64,
}

/// Claims that a provider has confirmed: the only source of users and identities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedClaims {
    /// `sub`.
    pub subject: String,
    /// `email`, if it is exactly one e-mail address.
    pub email: Option<Email>,
    /// True if there is an e-mail address, and the provider confirms that it belongs to this user.
    pub email_verified: bool,
    /// `hd`, the organisation that manages the account.
    pub hosted_domain: Option<String>,
    pub name: Option<String>,
    pub picture: Option<String>,
    /// The application that the token was issued to: `azp`, otherwise the audience.
    pub client_id: String,
    /// `iat`.
    pub issued_at: OffsetDateTime,
    /// True if the first configured client id is in the audience.
    pub for_first: bool,
}

impl VerifiedClaims {
    /// Validates a provider's claims.
    ///
    /// # Errors
    /// Returns the first check that fails.
    pub fn validate(claims: &Object, expected: &Expected<'_>) -> Result<Self, Refusal> {
        kind::check_claims(claims)?;
        check_issuer(claims, expected)?;
        let client_id = check_audience(claims, expected)?.to_owned();
        check_expiry(claims, expected)?;
        let issued_at = check_age(claims, expected)?;
        check_nonce(claims, &client_id, expected)?;
        let subject = subject(claims)?.to_owned();
        let hosted_domain = check_hosted_domain(claims, expected)?;
        let email = claims.str("email").and_then(Email::parse);
        let vouched = expected
            .dialect
            .email_proof
            .given(claims)
            .unwrap_or(expected.trust_email);
        Ok(Self {
            subject,
            email_verified: email.is_some() && vouched,
            email,
            hosted_domain,
            name: claims.str("name").and_then(display_name),
            picture: claims.str("picture").and_then(picture),
            client_id,
            issued_at: OffsetDateTime::from_unix_timestamp(issued_at)
                .unwrap_or(OffsetDateTime::UNIX_EPOCH),
            for_first: expected
                .audiences
                .first()
                .is_some_and(|first| has_audience(claims, first)),
        })
    }
}

impl VerifiedClaims {
    /// Adds the e-mail address of another response of the provider about the same subject. If the
    /// claims have an address already, the response can only prove that address.
    pub fn completed_by(self, answer: &Object, proof: EmailProof, trust_email: bool) -> Self {
        let Some(email) = answer.str("email").and_then(Email::parse) else {
            return self;
        };
        if self
            .email
            .as_ref()
            .is_some_and(|own| own.folded() != email.folded())
        {
            return self;
        }
        let email_verified = proof.given(answer).unwrap_or(trust_email);
        Self {
            email: Some(email),
            email_verified,
            ..self
        }
    }
}

/// Checks that `iss` is one of the provider's (OpenID Connect Core §3.1.3.7, 2).
pub(super) fn check_issuer(claims: &Object, expected: &Expected<'_>) -> Result<(), Refusal> {
    if expected.issuers.issued(claims) {
        return Ok(());
    }
    let received = received(claims, &["iss", "tid"]);
    let detail = "`iss` is missing or is not an issuer of this provider";
    Err(Refusal::new(Reason::IssuerMismatch, detail).logged(received))
}

/// The refusal of an audience beside one of our client ids.
pub(crate) const UNKNOWN_COMPANION: &str = "`aud` must hold only client ids that are configured for this provider, and known companions of them";

/// Checks that `aud` holds a configured client id, and beside such ids only known companions, and
/// that `azp`, if present, is a configured client id (OpenID Connect Core §3.1.3.7, 3 to 5). With a
/// companion, the token must name its authorized party: otherwise it may have been issued to the
/// companion. Returns the client that the token was issued to.
pub(super) fn check_audience<'e>(
    claims: &Object,
    expected: &Expected<'e>,
) -> Result<&'e str, Refusal> {
    let mismatch =
        |detail| Refusal::new(Reason::AudienceMismatch, detail).logged(received(claims, AUDIENCE));
    let ours = |value: &Value| match value {
        Value::String(id) => configured(id, expected),
        Value::Number(number) if expected.dialect.numeric_audience => number
            .as_u64()
            .and_then(|number| configured(&number.to_string(), expected)),
        _ => None,
    };
    let audience = match claims.get("aud") {
        Some(Value::Array(several)) => several.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    let foreign = "`aud` must hold only client ids that are configured for this provider";
    let first = audience
        .iter()
        .find_map(ours)
        .ok_or_else(|| mismatch(foreign))?;
    let mut others = audience.iter().filter(|one| ours(one).is_none()).peekable();
    let has_companion = others.peek().is_some();
    let is_known = |other: &Value| {
        expected
            .companions
            .iter()
            .any(|companion| other == companion)
    };
    if !others.all(is_known) {
        return Err(mismatch(UNKNOWN_COMPANION));
    }
    let introspected = check_client_id(claims, expected)?;
    let party = match claims.get("azp") {
        None => introspected,
        Some(party) => {
            let party = party.as_str().and_then(|id| configured(id, expected));
            let foreign = "`azp` is not a client id that is configured for this provider";
            Some(party.ok_or_else(|| mismatch(foreign))?)
        }
    };
    if has_companion && party.is_none() {
        return Err(mismatch(
            "`azp` is missing, although `aud` holds more than client ids of ours",
        ));
    }
    Ok(party.unwrap_or(first))
}

fn has_audience(claims: &Object, client_id: &str) -> bool {
    match claims.get("aud") {
        Some(Value::Array(several)) => several.iter().any(|one| one == client_id),
        Some(one) => one == client_id,
        None => false,
    }
}

/// Returns the audience as a sorted list. A token may have one or several, as text or as numbers.
pub fn audience(claims: &Object) -> Vec<String> {
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let mut clients: Vec<_> = match claims.get("aud") {
        None => Vec::new(),
        Some(Value::Array(several)) => several.iter().map(text).collect(),
        Some(one) => vec![text(one)],
    };
    clients.sort_unstable();
    clients.dedup();
    clients
}

/// Returns the client that a token was issued to, according to introspection (RFC 7662 §2.2).
fn check_client_id<'e>(
    claims: &Object,
    expected: &Expected<'e>,
) -> Result<Option<&'e str>, Refusal> {
    let Some(party) = claims
        .get("client_id")
        .filter(|_| expected.dialect.client_id)
    else {
        return Ok(None);
    };
    party
        .as_str()
        .and_then(|id| configured(id, expected))
        .map(Some)
        .ok_or_else(|| {
            let detail = "`client_id` is not a client id that is configured for this provider";
            Refusal::new(Reason::AudienceMismatch, detail).logged(received(claims, AUDIENCE))
        })
}

/// Returns the configured client id that equals this text.
fn configured<'e>(id: &str, expected: &Expected<'e>) -> Option<&'e str> {
    expected
        .audiences
        .iter()
        .map(String::as_str)
        .find(|known| *known == id && !id.is_empty())
}

/// The claims that name the audience.
const AUDIENCE: &[&str] = &["aud", "azp", "client_id"];

/// Describes these claims of the token, for the log.
fn received(claims: &Object, names: &[&str]) -> String {
    let mut line = String::new();
    for name in names {
        if let Some(value) = claims.get(name) {
            line.extend([name, "=", &visible(&value.to_string()), " "]);
        }
    }
    if line.is_empty() {
        format!("without `{}`", names[0])
    } else {
        line.trim_end().to_owned()
    }
}

/// Checks that `exp` has not passed (OpenID Connect Core §3.1.3.7, 9).
pub(super) fn check_expiry(claims: &Object, expected: &Expected<'_>) -> Result<(), Refusal> {
    let exp = numeric_date(claims, "exp")?
        .ok_or(Refusal::new(Reason::InvalidToken, "`exp` is missing"))?;
    if expected.now >= exp.saturating_add(LEEWAY) {
        return Err(Refusal::new(Reason::TokenExpired, "`exp` has passed"));
    }
    Ok(())
}

/// Checks that `iat` and `nbf` are not in the future, and that `iat` is not too old (§3.1.3.7, 10).
/// Returns `iat`.
fn check_age(claims: &Object, expected: &Expected<'_>) -> Result<i64, Refusal> {
    let refuse = |detail| Err(Refusal::new(Reason::InvalidToken, detail));
    let latest = expected.now.saturating_add(LEEWAY);
    let Some(iat) = numeric_date(claims, "iat")? else {
        return refuse("`iat` is missing");
    };
    if iat > latest {
        return refuse(
            "`iat` is in the future: the clock of the provider or of this service is wrong",
        );
    }
    if iat < expected.now.saturating_sub(expected.max_age) {
        return Err(Refusal::new(Reason::TokenExpired, "`iat` is too old"));
    }
    if numeric_date(claims, "nbf")?.is_some_and(|nbf| nbf > latest) {
        return refuse(
            "`nbf` is in the future: the clock of the provider or of this service is wrong",
        );
    }
    Ok(iat)
}

const HASHED: &str = "the token's nonce is the SHA-256 of the request's nonce, but `nonce_form` is \"raw\"; let the app pass \
     the raw nonce to the provider, or set `nonce_form` to \"sha256\"";

/// Checks that the token's nonce is the request's, in the client's form (§3.1.3.7, 11).
pub(super) fn check_nonce(
    claims: &Object,
    client_id: &str,
    expected: &Expected<'_>,
) -> Result<(), Refusal> {
    let refuse = |detail| Err(Refusal::new(Reason::NonceMismatch, detail));
    let NoncePolicy { rule, form } = expected.nonces.of(client_id);
    match (expected.nonce, claims.get("nonce")) {
        (None, None) if rule == NonceRule::Always => {
            refuse("this provider's settings require a nonce in the token and the request")
        }
        (None, None) => Ok(()),
        (None, Some(_)) if rule == NonceRule::IfSent => Ok(()),
        (None, Some(_)) => refuse("the token has a nonce, but the request has none"),
        (Some(_), None) => refuse("the request has a nonce, but the token has none"),
        (Some(sent), Some(Value::String(held))) if *held == form.of(sent) => Ok(()),
        (Some(sent), Some(held)) => {
            let refusal = Refusal::new(
                Reason::NonceMismatch,
                "the nonces of the token and the request differ",
            );
            let hashed = form == NonceForm::Raw
                && held
                    .as_str()
                    .is_some_and(|held| held == NonceForm::Sha256.of(sent));
            Err(if hashed {
                refusal.logged(HASHED.to_owned())
            } else {
                refusal
            })
        }
    }
}

/// Returns `sub`, byte for byte.
fn subject(claims: &Object) -> Result<&str, Refusal> {
    let detail = "`sub` must be 1 to 255 ASCII characters, at least one of them visible and none a control character";
    claims
        .str("sub")
        .filter(|sub| is_subject(sub))
        .ok_or(Refusal::new(Reason::InvalidToken, detail))
}

/// Returns true if a text can be a `sub`: at most 255 ASCII characters (OpenID Connect Core §2).
/// Directories write blanks into it (`uid=ada,ou=People, dc=example`). Control characters, and
/// blanks alone, identify no account.
pub(crate) fn is_subject(text: &str) -> bool {
    let is_text = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    text.len() <= MAX_SUBJECT_LENGTH
        && text.bytes().all(is_text)
        && text.bytes().any(|byte| byte != b' ')
}

/// Checks `hd`, which names the account's organisation. The domain of the e-mail address does not.
fn check_hosted_domain(
    claims: &Object,
    expected: &Expected<'_>,
) -> Result<Option<String>, Refusal> {
    // An empty `hd` counts as absent, because it names no organisation.
    let domain = claims
        .str("hd")
        .map(str::to_ascii_lowercase)
        .filter(|hd| !hd.trim().is_empty());
    let allowed = expected.hosted_domains.is_empty()
        || domain
            .as_ref()
            .is_some_and(|domain| expected.hosted_domains.contains(domain));
    allowed.then_some(domain).ok_or(Refusal::new(
        Reason::DomainNotAllowed,
        "`hd` is missing or is not an allowed domain",
    ))
}

/// Reads a `NumericDate` (RFC 7519 §2), as a number or as a string of digits.
fn numeric_date(claims: &Object, name: &'static str) -> Result<Option<i64>, Refusal> {
    let Some(value) = claims.get(name) else {
        return Ok(None);
    };
    let seconds = match value {
        // The RFC allows a fraction. The cast saturates, beyond the last date.
        #[expect(clippy::cast_possible_truncation, reason = "saturating is intended")]
        Value::Number(number) => number
            .as_i64()
            .or_else(|| number.as_f64().map(|seconds| seconds as i64)),
        Value::String(text) if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    };
    seconds
        .filter(|seconds| *seconds <= LAST_DATE)
        .map(Some)
        .ok_or(Refusal::new(
            Reason::InvalidToken,
            match name {
                "exp" => "`exp` is not a number of seconds",
                "iat" => "`iat` is not a number of seconds",
                _ => "`nbf` is not a number of seconds",
            },
        ))
}

/// Cleans a name for display: no control characters, no replacement characters, no surrounding
/// blanks, limited length. Returns `None` if no visible character remains.
pub(crate) fn display_name(text: &str) -> Option<String> {
    let sound = |c: &char| !is_control(*c) && *c != char::REPLACEMENT_CHARACTER;
    let clean: String = text.chars().filter(sound).collect();
    let short: String = clean.trim_start().chars().take(MAX_NAME_CHARS).collect();
    let name = short.trim_end();
    (!is_blank(name)).then(|| name.to_owned())
}

/// Returns the URL of a picture, if it can be put into a page.
pub(crate) fn picture(text: &str) -> Option<String> {
    let sound = text.starts_with("https://")
        && text.len() <= MAX_PICTURE_LENGTH
        && text.bytes().all(|b| b.is_ascii_graphic());
    sound.then(|| text.to_owned())
}

fn sha256_hex(text: &str) -> String {
    use std::fmt::Write;
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    digest
        .as_ref()
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}
