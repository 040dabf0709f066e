//! Claims that the product's backend sets for a user, at the top level of the user's access tokens.
//!
//! They never replace a claim that this service or a verifier gives a meaning to.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Serialize;
use serde_json::{Map, Number, Value};

use super::json::{self, Object};
use super::text::{is_control, is_ignorable};

/// Maximum size, in bytes of compact JSON.
const MAX_BYTES: usize = 1_000;

/// Maximum depth. Some parsers refuse more than 64 levels, and a token that they refuse locks its
/// user out.
const MAX_DEPTH: usize = 16;

/// The greatest integer that every parser reads exactly (RFC 8259 §6), 2⁵³ − 1.
const MAX_NUMBER: f64 = 9_007_199_254_740_991.0;

/// Claims with a meaning of their own: for this service, by RFC 7519 §4.1, by `OpenID` Connect Core 1.0, by RFC 9068 and
/// by other entries of IANA's registry of JWT claims from which verifiers conclude who the user is, what the token is or
/// what it allows; and header parameters, which some read from the claims (RFC 7519 §5.3). `roles`, `groups` and
/// `entitlements` (RFC 9068 §2.2.3.1) are free.
static RESERVED: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
    let rfc_7519 = "iss sub aud exp nbf iat jti typ alg kid jwk jku crit b64 x5u x5c";
    let rfc_9068 = "auth_time acr amr scope client_id sid";
    let openid = "nonce azp at_hash c_hash s_hash email email_verified phone_number phone_number_verified \
                  preferred_username _claim_names _claim_sources sub_jwk";
    // RFC 7662, 7800, 8055, 8225, 8417, 8485, 8693, 9396 and 9493, verifiable credentials, and
    // names by which clouds and libraries know the user and the tenant.
    let others = "active username token_type cnf orig events toe txn vot act may_act authorization_details sub_id \
                  vc vp scp scopes token_use upn oid tid uid user_id";
    [rfc_7519, rfc_9068, openid, others]
        .into_iter()
        .flat_map(|names| names.split(' '))
        .collect()
});

/// Members that every object of JavaScript has. In a program that merges claims into objects of its
/// own, they would change all of its objects.
const OF_OBJECTS: [&str; 3] = ["__proto__", "constructor", "prototype"];

/// The claims of one user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct CustomClaims(Map<String, Value>);

/// The reason why a text cannot be a user's claims.
#[derive(Debug, thiserror::Error)]
pub enum Mistake {
    /// The text is not one JSON object, or a member occurs twice in it.
    #[error("the claims must be one JSON object without duplicate members: {0}")]
    NotAnObject(#[from] json::Error),
    /// A claim, or a member at any depth, has a meaning of its own.
    #[error("the claim `{0}` is reserved: give it another name")]
    Reserved(String),
    /// The claims take too many bytes.
    #[error("the claims take {0} bytes, but at most {MAX_BYTES} are allowed")]
    TooLong(usize),
    /// Objects and arrays are nested too deeply.
    #[error("the claims are nested more deeply than {MAX_DEPTH} levels")]
    TooDeep,
    /// A number is beyond 2⁵³ − 1, or too small.
    #[error("the number {0} is not read alike by all programs: send it as a string")]
    Number(Number),
    /// A string contains U+0000.
    #[error("a string contains U+0000, which cannot be stored")]
    Nul,
}

impl CustomClaims {
    /// Parses the claims that a backend sets. Their size is the size of their compact form, which
    /// [`CustomClaims::json`] returns.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let claims = Value::Object(Object::parse(text.as_bytes())?.into());
        check(&claims, MAX_DEPTH)?;
        let length = claims.to_string().len();
        if length > MAX_BYTES {
            return Err(Mistake::TooLong(length));
        }
        let Value::Object(claims) = claims else {
            return Err(json::Error::NotAnObject.into());
        };
        match claims.keys().find(|name| is_reserved(name)) {
            Some(name) => Err(Mistake::Reserved(name.clone())),
            None => Ok(Self(claims)),
        }
    }

    /// Reads stored claims, and drops claims that are reserved by now or were never checked. `None`
    /// stands for no claims.
    pub fn stored(text: Option<&str>) -> Result<Self, serde_json::Error> {
        let mut claims: Map<_, _> = text
            .map(serde_json::from_str)
            .transpose()?
            .unwrap_or_default();
        claims.retain(|name, _| !is_reserved(name));
        Ok(Self(claims))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the claims that another user has with another value, or lacks.
    pub fn unlike(&self, other: &Self) -> Self {
        let differs = |(name, value): &(&String, &Value)| other.0.get(*name) != Some(*value);
        Self(
            self.0
                .iter()
                .filter(differs)
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    }

    /// Returns these claims, and another user's claims whose names are missing here.
    pub fn with_missing(&self, other: &Self) -> Self {
        let mut both = other.0.clone();
        both.extend(self.0.clone());
        Self(both)
    }

    pub fn is_too_long(&self) -> bool {
        self.json().len() > MAX_BYTES
    }

    pub fn json(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }
}

/// Returns true if a name is reserved in any case, or with blanks around it, which some programs
/// cut off. Go's parser ignores case, and takes `ſ` for an `s` and the Kelvin sign for a `k`.
fn is_reserved(name: &str) -> bool {
    let name = seen(name);
    RESERVED.contains(name.to_uppercase().to_lowercase().as_str()) || is_of_objects(&name)
}

fn is_of_objects(name: &str) -> bool {
    OF_OBJECTS.contains(&seen(name).as_str())
}

/// Returns a name as people see it, and as programs that cut off U+FEFF (JavaScript's `trim`) or
/// drop such characters do.
fn seen(name: &str) -> String {
    let visible: String = name
        .chars()
        .filter(|c| !is_control(*c) && !is_ignorable(*c))
        .collect();
    visible.trim().to_owned()
}

/// Checks a value that may have `depth` levels.
fn check(value: &Value, depth: usize) -> Result<(), Mistake> {
    let inner = || depth.checked_sub(1).ok_or(Mistake::TooDeep);
    let text = |text: &str| {
        if text.contains('\0') {
            Err(Mistake::Nul)
        } else {
            Ok(())
        }
    };
    match value {
        Value::Null | Value::Bool(_) => Ok(()),
        Value::String(string) => text(string),
        // PostgreSQL writes the digits out that an exponent stands for.
        Value::Number(number) => {
            let exact = number
                .as_f64()
                .is_some_and(|number| number.abs() <= MAX_NUMBER);
            let short = !number.to_string().contains('e');
            if exact && short {
                Ok(())
            } else {
                Err(Mistake::Number(number.clone()))
            }
        }
        Value::Array(items) => {
            let inner = inner()?;
            items.iter().try_for_each(|item| check(item, inner))
        }
        Value::Object(members) => {
            let inner = inner()?;
            members.iter().try_for_each(|(name, value)| {
                if is_of_objects(name) {
                    return Err(Mistake::Reserved(name.clone()));
                }
                text(name).and_then(|()| check(value, inner))
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns claims whose compact form has that many bytes.
    fn sized(bytes: usize) -> String {
        format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - r#"{"a":""}"#.len()))
    }

    fn nested(levels: usize) -> String {
        format!(
            r#"{{"a":{}{}}}"#,
            "[".repeat(levels - 1),
            "]".repeat(levels - 1)
        )
    }

    #[test]
    fn what_every_program_reads_alike_is_accepted_and_kept() {
        let umlauts = format!(r#"{{"a":"{}"}}"#, "ü".repeat(496));
        for (text, kept) in [
            ("{}", "{}"),
            (
                r#" { "a" : [ 1 , -0.5 , null ] } "#,
                r#"{"a":[1,-0.5,null]}"#,
            ),
            (r#"{"roles":["admin"],"groups":[],"entitlements":{}}"#, ""),
            (r#"{"a":{"sub":"x","iss":{"aud":1}},"subs":1,"":2}"#, ""),
            (r#"{"a":{"b":1},"b":{"b":1}}"#, ""),
            (
                r#"{"a":9007199254740991,"b":-9007199254740991,"c":0.00001}"#,
                "",
            ),
            (r#"{"a":1e2}"#, r#"{"a":100.0}"#),
            (r#"{"\u0061":"\ud83d\ude00"}"#, r#"{"a":"😀"}"#),
            (&sized(1_000), ""),
            (
                &format!("{}{}", sized(1_000), " ".repeat(100)),
                &sized(1_000),
            ),
            (&umlauts, ""),
            (&nested(16), ""),
        ] {
            let claims =
                CustomClaims::parse(text).unwrap_or_else(|mistake| panic!("{text}: {mistake}"));
            let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            assert_eq!(
                value(&claims.json()),
                value(if kept.is_empty() { text } else { kept })
            );
            assert_eq!(CustomClaims::stored(Some(&claims.json())).unwrap(), claims);
        }
        assert!(CustomClaims::stored(None).unwrap().is_empty());
        assert!(CustomClaims::parse("{}").unwrap().is_empty());
    }

    #[test]
    fn hostile_claims_are_refused_with_the_reason() {
        let object = "must be one JSON object";
        let umlauts = format!(r#"{{"a":"{}"}}"#, "ü".repeat(497));
        for (text, reason) in [
            ("", object),
            ("null", object),
            ("[]", object),
            (r#""sub""#, object),
            ("1", object),
            ("{", object),
            ("{}{}", object),
            ("{\"a\":NaN}", object),
            ("{\"a\":1e400}", object),
            (r#"{"a":"\ud83d"}"#, object),
            (r#"{"a":1,"a":1}"#, "duplicate member"),
            (r#"{"a":1,"\u0061":2}"#, "duplicate member"),
            (r#"{"a":{"b":[{"c":1,"c":2}]}}"#, "duplicate member"),
            (&sized(1_001), "take 1001 bytes"),
            (&umlauts, "take 1002 bytes"),
            (&nested(17), "more deeply than 16"),
            (&nested(127), "more deeply than 16"),
            (&nested(100_000), object),
            (r#"{"a":9007199254740992}"#, "the number 9007199254740992"),
            (
                r#"{"a":[-9007199254740993]}"#,
                "the number -9007199254740993",
            ),
            (
                r#"{"a":{"b":123456789012345678901234567890}}"#,
                "send it as a string",
            ),
            (r#"{"a":1e300}"#, "the number 1e+300"),
            (r#"{"a":1e-300}"#, "the number 1e-300"),
            (r#"{"a":"\u0000"}"#, "U+0000"),
            (r#"{"a":{"\u0000":1}}"#, "U+0000"),
            (r#"{"__proto__":{}}"#, "`__proto__` is reserved"),
            (
                r#"{"a":[{"b":{"__proto__":{"admin":true}}}]}"#,
                "`__proto__` is reserved",
            ),
            (
                r#"{"a":{"constructor":{"prototype":1}}}"#,
                "`constructor` is reserved",
            ),
            (r#"{"a":{"prototype":1}}"#, "`prototype` is reserved"),
        ] {
            let mistake = CustomClaims::parse(text).expect_err(text).to_string();
            assert!(mistake.contains(reason), "{text:.40}: {mistake}");
        }
    }

    #[test]
    fn reserved_names_are_refused_in_any_spelling_and_dropped_if_stored() {
        assert_eq!(RESERVED.len(), 58);
        let spellings = [
            "SUB",
            "Sub",
            "ſub",
            "ISS",
            "\\u0073ub",
            "to\u{212a}en_use",
            " sub",
            "Oid\u{a0}",
            " __proto__",
        ];
        let unseen = [
            "sub\u{feff}",
            "\u{200b}sub",
            "s\u{34f}ub",
            "\u{202e}sub",
            "sub \u{200b}",
            "\u{feff}__proto__",
        ];
        for name in RESERVED.iter().copied().chain(spellings).chain(unseen) {
            for text in [
                format!(r#"{{"{name}":null}}"#),
                format!(r#"{{"{name}":1,"a":1,"z":1}}"#),
                format!(r#"{{"a":1,"{name}":[],"z":1}}"#),
                format!(r#"{{"a":1,"z":1,"{name}":{{}}}}"#),
            ] {
                let mistake = CustomClaims::parse(&text).expect_err(&text).to_string();
                assert!(mistake.contains("is reserved"), "{text}: {mistake}");
                let kept = CustomClaims::stored(Some(&text)).unwrap().json();
                assert!(kept == "{}" || kept == r#"{"a":1,"z":1}"#, "{text}: {kept}");
            }
        }
    }
}
