//! Randomly changed responses and tokens: the service and the oracle give the same verdict.

use std::cell::Cell;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};
use vestibule::config;
use vestibule::domain::claims::{Expected, VerifiedClaims};
use vestibule::domain::id_token::{Format, IdToken};
use vestibule::domain::json::Object;
use vestibule::domain::jwk::KeySet;
use vestibule::domain::jws::Jws;

use super::oracle::{Members, Rules};
use super::presets::{CLIENT_ID, PRESETS, Preset};
use super::under_test::{NOW, read};
use crate::support::signer::{Signer, jwks};

const ANDROID: &str = "android.example";
const ISSUER: &str = "https://id.example.com/realms/people";

/// Names of claims that some provider, preset or rule uses.
const NAMES: &str = "iss aud azp sub exp iat nbf nonce tid client_id email email_verified xms_edov hd typ \
                     token_use scope scp events";

/// One change to a response.
#[derive(Clone, Debug)]
enum Change {
    Drop(Index),
    Replace(Index, Value),
    Repeat(Index, Value),
    /// Replaces one character of a text, or adds to a number.
    Nudge(Index, Index, char, i64),
    Add(&'static str, Value),
}

impl Change {
    fn apply(&self, members: &mut Members) {
        if members.is_empty() {
            return;
        }
        let count = members.len();
        match self {
            Self::Drop(at) => drop(members.remove(at.index(count))),
            Self::Replace(at, value) => members[at.index(count)].1 = value.clone(),
            Self::Repeat(at, value) => {
                members.push((members[at.index(count)].0.clone(), value.clone()));
            }
            Self::Nudge(at, place, character, by) => match &mut members[at.index(count)].1 {
                Value::String(text) => {
                    let mut characters: Vec<char> = text.chars().collect();
                    if !characters.is_empty() {
                        let place = place.index(characters.len());
                        characters[place] = *character;
                    }
                    *text = characters.into_iter().collect();
                }
                number => {
                    if let Some(seconds) = number.as_i64() {
                        *number = seconds.saturating_add(*by).into();
                    }
                }
            },
            Self::Add(name, value) => members.push(((*name).to_owned(), value.clone())),
        }
    }
}

/// Values that are similar to expected values, or that are unusual.
fn values() -> impl Strategy<Value = Value> {
    let texts = [
        CLIENT_ID,
        ANDROID,
        ISSUER,
        "",
        "true",
        "1",
        "accounts.google.com",
        "https://accounts.google.com",
        "https://access.line.me",
        "https://appleid.apple.com",
        "https://account.apple.com",
        "https://www.facebook.com",
        "2000000000",
        "9188040d-6c67-4c5b-b112-36a304b66dad",
        "ID",
        "JWT",
        "Bearer",
        "99999999999999999999",
        "https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0",
    ];
    let near = select(vec![0, 1, 59, 60, 61, 3600, 86_399, 86_400, 86_401]);
    let one = prop_oneof![
        4 => select(texts.to_vec()).prop_map(Value::from),
        2 => ".{0,8}".prop_map(Value::from),
        2 => (near, any::<bool>(), any::<bool>()).prop_map(|(by, later, text)| {
            let seconds = if later { NOW + by } else { NOW - by };
            if text { seconds.to_string().into() } else { seconds.into() }
        }),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => Just(json!(1_234_567_890)),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    one.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            2 => vec(inner.clone(), 0..3).prop_map(Value::from),
            1 => inner.prop_map(|value| json!({ "sub": value })),
        ]
    })
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        2 => any::<Index>().prop_map(Change::Drop),
        4 => (any::<Index>(), values()).prop_map(|(at, value)| Change::Replace(at, value)),
        1 => (any::<Index>(), values()).prop_map(|(at, value)| Change::Repeat(at, value)),
        3 => (any::<Index>(), any::<Index>(), any::<char>(), -200_000..200_000_i64)
            .prop_map(|(at, place, character, by)| Change::Nudge(at, place, character, by)),
        4 => (select(NAMES.split(' ').collect::<Vec<_>>()), values()).prop_map(|(name, value)| Change::Add(name, value)),
    ];
    vec(change, 0..4)
}

fn settings(preset: &Preset) -> config::Provider {
    let mut settings = (preset.settings)();
    settings["client_id"] = CLIENT_ID.into();
    settings["additional_client_ids"] = ANDROID.into();
    if preset.discovers {
        settings["issuer"] = ISSUER.into();
    } else if preset.asks {
        settings["tokeninfo_url"] = "https://id.example.com/tokeninfo".into();
    }
    read(&settings)
        .unwrap()
        .providers
        .remove("under-test")
        .unwrap()
}

fn rules(preset: &Preset) -> Rules {
    let is_of = |name| preset.is_of(name);
    let issuers: &[&str] = match preset.name {
        "microsoft" => &[],
        "no preset" => &["https://accounts.google.com"],
        _ if is_of("google") => &["https://accounts.google.com", "accounts.google.com"],
        _ if is_of("line") => &["https://access.line.me"],
        _ if is_of("apple") => &["https://appleid.apple.com", "https://account.apple.com"],
        _ if is_of("facebook") => &["https://www.facebook.com"],
        _ if is_of("rfc7662") => &["https://server.example.com/"],
        _ => &[ISSUER],
    };
    let yes = vec![json!(true), json!("true")];
    let microsoft = [yes.clone(), vec![json!(1), json!("1")]].concat();
    Rules {
        issuers: (!issuers.is_empty())
            .then(|| issuers.iter().map(|&issuer| issuer.to_owned()).collect()),
        clients: vec![CLIENT_ID.to_owned(), ANDROID.to_owned()],
        numbers_are_audiences: is_of("line"),
        client_id_counts: is_of("rfc7662") || preset.discovers,
        stray_nonce: is_of("line") || is_of("facebook"),
        proof: if is_of("microsoft") {
            ("xms_edov", microsoft)
        } else {
            ("email_verified", yes)
        },
    }
}

/// The JSON text of a response, with its duplicate members.
fn text(members: &Members) -> String {
    let members: Vec<_> = members
        .iter()
        .map(|(name, value)| format!("{}:{value}", json!(name)))
        .collect();
    format!("{{{}}}", members.join(","))
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    })
}

#[test]
fn the_validator_and_the_oracle_agree_on_random_claims() {
    for preset in PRESETS {
        let provider = settings(&preset);
        let rules = rules(&preset);
        let expected = Expected {
            issuers: &provider.issuers,
            audiences: &provider.client_ids,
            companions: &provider.additional_audiences,
            hosted_domains: &provider.allowed_domains,
            nonce: None,
            nonces: &provider.nonces,
            max_age: provider.max_token_age.into(),
            trust_email: provider.trust_email,
            dialect: provider.dialect(),
            now: NOW,
        };
        let sound: Map<_, _> = {
            let mut claims = (preset.claims)();
            if preset.discovers {
                claims["iss"] = ISSUER.into();
            }
            let mut claims = claims.as_object().unwrap().clone();
            // The service removes this member of introspection before it validates claims.
            claims.remove("scope");
            claims
        };
        let verdicts = Cell::new((0, 0));
        let outcome = runner(600).run(&changes(), |changes| {
            let mut members: Members = sound.clone().into_iter().collect();
            for change in &changes {
                change.apply(&mut members);
            }
            let text = text(&members);
            let parsed = Object::parse(text.as_bytes()).ok();
            let verdict =
                parsed.and_then(|claims| VerifiedClaims::validate(&claims, &expected).ok());
            prop_assert_eq!(verdict.is_some(), rules.accept(&members), "{}", text);
            let (accepted, refused) = verdicts.get();
            if let Some(claims) = verdict {
                verdicts.set((accepted + 1, refused));
                let vouched = rules.vouches(&members) && claims.email.is_some();
                prop_assert_eq!(claims.email_verified, vouched, "{}", text);
            } else {
                verdicts.set((accepted, refused + 1));
            }
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{}: {error}", preset.name));
        let (accepted, refused) = verdicts.get();
        assert!(
            accepted > 60 && refused > 60,
            "{}: {accepted} accepted, {refused} refused",
            preset.name
        );
    }
}

#[test]
fn no_other_text_carries_a_tokens_signature() {
    let keys = Signer::ALL.map(Signer::jwk);
    let keys = KeySet::read(&Object::parse(jwks(&keys).to_string().as_bytes()).unwrap()).unwrap();
    let provider = settings(&PRESETS[5]);
    let verified = |text: &str| {
        let token = IdToken::parse(text, Format::Jwt).ok()?;
        let jws = Jws::read(&token).ok()?;
        jws.verify(&keys, &provider.issuers).ok().map(drop)
    };
    let claims = (PRESETS[5].claims)();
    for signer in Signer::ALL {
        let token = signer.token(&claims);
        assert!(verified(&token).is_some(), "{signer:?}");
        let change = (any::<Index>(), "[A-Za-z0-9._=-]{0,3}", 0_usize..3);
        let outcome = runner(200).run(&change, |(at, inserted, removed)| {
            let at = at.index(token.len());
            let end = (at + removed).min(token.len());
            let changed = format!("{}{inserted}{}", &token[..at], &token[end..]);
            prop_assert_eq!(
                verified(&changed).is_some(),
                changed == token,
                "{}",
                changed
            );
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{signer:?}: {error}"));
    }
}
