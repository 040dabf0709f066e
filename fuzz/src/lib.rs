//! The program's own parsers, compiled for fuzzing without the rest: fuzzing needs neither the
//! server nor the database, and a build takes one minute instead of many.

#[path = "../../src/domain/mod.rs"]
pub mod domain;
#[path = "../../src/secret.rs"]
pub mod secret;

use std::sync::LazyLock;

use domain::claims::{Expected, NoncePolicy, NonceRule, Nonces, VerifiedClaims};
use domain::issuer::Issuers;
use domain::json::{MAX_VALUES, Object};
use domain::presets::microsoft::Tenants;
use domain::presets::{Dialect, EmailProof};

/// The current time of all targets.
pub const NOW: i64 = 2_000_000_000;

const CLIENT_ID: &str = "1234567890";

/// An additional audience that a provider adds.
static COMPANIONS: LazyLock<[String; 1]> =
    LazyLock::new(|| ["https://accounts.google.com".to_owned()]);

static NONCES: LazyLock<Nonces> = LazyLock::new(|| Nonces {
    usual: NoncePolicy {
        rule: NonceRule::IfSent,
        ..NoncePolicy::default()
    },
    ..Nonces::default()
});

/// Validates claims with the rules of each kind of provider, and asserts invariants of accepted
/// claims.
pub fn judge(claims: &Object) {
    let listed = |issuer: &str| Issuers::Listed(vec![issuer.to_owned()]);
    let kinds = [
        (listed("https://accounts.google.com"), Dialect::STANDARD),
        (
            listed("https://access.line.me"),
            Dialect {
                numeric_audience: true,
                ..Dialect::STANDARD
            },
        ),
        (
            listed("https://server.example.com/"),
            Dialect {
                client_id: true,
                ..Dialect::STANDARD
            },
        ),
        (
            Issuers::Tenants(Tenants::Any),
            Dialect {
                email_proof: EmailProof::DomainOwnerVerified,
                ..Dialect::STANDARD
            },
        ),
    ];
    let audiences = [CLIENT_ID.to_owned()];
    for (issuers, dialect) in &kinds {
        if let Ok(verified) =
            VerifiedClaims::validate(claims, &expected(issuers, &audiences, *dialect))
        {
            assert!((1..=255).contains(&verified.subject.len()));
            assert!(
                verified
                    .subject
                    .bytes()
                    .all(|b| b == b' ' || b.is_ascii_graphic())
            );
            assert!(verified.subject.bytes().any(|b| b != b' '));
            assert_eq!(verified.client_id, CLIENT_ID);
            assert!(verified.email.is_some() || !verified.email_verified);
            assert!(
                verified
                    .name
                    .is_none_or(|name| !name.is_empty() && !name.contains(char::is_control))
            );
            assert!(
                verified
                    .picture
                    .is_none_or(|picture| picture.starts_with("https://"))
            );
            assert!(claims.str("iss").is_some_and(|iss| issuers.include(iss)));
            assert!(
                claims.get("scope").is_none() && claims.get("scp").is_none(),
                "an access token"
            );
        }
    }
}

/// The expectations for claims of a provider.
pub fn expected<'a>(
    issuers: &'a Issuers,
    audiences: &'a [String],
    dialect: Dialect,
) -> Expected<'a> {
    Expected {
        issuers,
        audiences,
        companions: &*COMPANIONS,
        hosted_domains: &[],
        nonce: None,
        nonces: &NONCES,
        max_age: 86_400,
        trust_email: false,
        dialect,
        now: NOW,
    }
}

/// Parses a response. Asserts that every accepted text is valid JSON for `serde_json`, except texts
/// with lone surrogates.
pub fn object(data: &[u8]) -> Option<Object> {
    let told = Object::told(data, MAX_VALUES).ok();
    let Ok(object) = Object::parse(data) else {
        return told;
    };
    assert!(told.is_some(), "what is whole needs no mending");
    assert!(serde_json::from_slice::<serde_json::Value>(data).is_ok_and(|value| value.is_object()));
    Some(object)
}
