//! Validation of a token's claims (OpenID Connect Core §3.1.3.7), for every preset.

use serde_json::{Value, json};
use vestibule::domain::claims::LEEWAY;
use vestibule::domain::email::Email;
use vestibule::domain::refusal::Reason;

use super::presets::{CLIENT_ID, PRESETS, Preset};
use super::under_test::{NOW, ProviderUnderTest, refusal, word};
use crate::support::provider::Behaviour;
use crate::support::signer::{Signer, base64, hs256, signed};
use crate::support::token::with;

const HOUR: i64 = 60 * 60;

/// Asserts the verdict on each of the claims, with every preset.
async fn expect(cases: impl Fn(&ProviderUnderTest) -> Vec<(Value, &'static str)>) {
    for preset in PRESETS {
        let under_test = ProviderUnderTest::of(preset).await;
        for (claims, expected) in cases(&under_test) {
            let verdict = under_test.says(&claims).await;
            assert_eq!(
                word(&verdict),
                expected,
                "{}: {claims}: {verdict:?}",
                preset.name
            );
        }
        assert_eq!(
            word(&under_test.says(&under_test.claims()).await),
            "accepted",
            "{}",
            preset.name
        );
    }
}

#[tokio::test]
async fn the_documented_answer_of_every_provider_is_accepted() {
    for preset in PRESETS {
        let under_test = ProviderUnderTest::of(preset).await;
        let claims = under_test.claims();
        let verified = under_test
            .says(&claims)
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", preset.name));
        assert_eq!(json!(verified.subject), claims["sub"], "{}", preset.name);
        assert_eq!(verified.client_id, CLIENT_ID, "{}", preset.name);
        let email = verified.email.as_ref().map(Email::as_given);
        assert_eq!(email, claims["email"].as_str(), "{}", preset.name);
        let vouched = !["line", "facebook", "rfc7662", "oidc"]
            .iter()
            .any(|name| preset.is_of(name));
        assert_eq!(verified.email_verified, vouched, "{}", preset.name);
        assert_eq!(
            verified.name.as_deref(),
            claims["name"].as_str(),
            "{}",
            preset.name
        );
    }
}

#[tokio::test]
async fn an_issuer_that_only_resembles_the_right_one_is_refused() {
    expect(|under_test| {
        let right = under_test.claims()["iss"].as_str().unwrap().to_owned();
        let bare = right.split_once("://").unwrap().1.to_owned();
        let mut wrong = vec![
            json!(format!("{right}/")),
            json!(format!("ftp://{bare}")),
            json!(right.to_uppercase()),
            json!(format!("{right}.evil.example")),
            json!(format!("https://evil.example#{bare}")),
            json!(format!("https://evil.example/{bare}")),
            json!(format!(" {right}")),
            json!([right]),
            json!(""),
            json!(1),
            Value::Null,
        ];
        if under_test.preset.is_of("google by") || under_test.preset.name == "google" {
            wrong.push(json!("http://accounts.google.com"));
        } else {
            wrong.push(json!(bare));
        }
        let mut cases: Vec<_> = wrong
            .into_iter()
            .map(|iss| (under_test.changed("iss", iss), "issuer_mismatch"))
            .collect();
        cases.push((under_test.without("iss"), "issuer_mismatch"));
        cases
    })
    .await;
}

#[tokio::test]
async fn a_token_for_another_application_is_refused() {
    expect(|under_test| {
        let numbers = if under_test.preset.is_of("line") {
            "accepted"
        } else {
            "audience_mismatch"
        };
        let foreign = "audience_mismatch";
        let cases = [
            (json!("0987654321"), foreign),
            (json!(format!("{CLIENT_ID} ")), foreign),
            (json!(format!("{CLIENT_ID},x")), foreign),
            (json!(""), foreign),
            (json!(null), foreign),
            (json!([]), foreign),
            (json!([""]), foreign),
            (json!([null]), foreign),
            (json!({ "aud": CLIENT_ID }), foreign),
            (json!(true), foreign),
            (json!([CLIENT_ID, "0987654321"]), foreign),
            (json!(["0987654321", CLIENT_ID]), foreign),
            (json!([[CLIENT_ID]]), foreign),
            (json!([CLIENT_ID]), "accepted"),
            (json!(CLIENT_ID), "accepted"),
            (json!(1_234_567_890), numbers),
            (json!([1_234_567_890]), numbers),
            (json!(1_234_567_891), foreign),
            (json!(-1_234_567_890), foreign),
            (json!(1_234_567_890.0), foreign),
        ];
        let cases = cases.map(|(aud, verdict)| (under_test.changed("aud", aud), verdict));
        let mut cases = Vec::from(cases);
        cases.push((under_test.without("aud"), foreign));
        cases
    })
    .await;
}

#[tokio::test]
async fn a_known_companion_is_accepted_beside_our_audience_and_never_instead() {
    let companions = json!({
        "additional_client_ids": "android.example",
        "additional_audiences": ["246361787010646019", "https://identity.oraclecloud.com/"],
    });
    for preset in PRESETS {
        let under_test = ProviderUnderTest::with(preset, &companions).await;
        let project = "246361787010646019";
        let tenant = "https://identity.oraclecloud.com/";
        for (audience, party, expected) in [
            (json!([CLIENT_ID, project]), Some(CLIENT_ID), "accepted"),
            (json!([project, CLIENT_ID]), Some(CLIENT_ID), "accepted"),
            (
                json!([tenant, project, "android.example"]),
                Some("android.example"),
                "accepted",
            ),
            (
                json!([CLIENT_ID, project]),
                Some(project),
                "audience_mismatch",
            ),
            (
                json!([CLIENT_ID, project]),
                Some("foreign.example"),
                "audience_mismatch",
            ),
            (
                json!([CLIENT_ID, project, "foreign.example"]),
                Some(CLIENT_ID),
                "audience_mismatch",
            ),
            (
                json!([CLIENT_ID, project, 7]),
                Some(CLIENT_ID),
                "audience_mismatch",
            ),
            (json!([project]), Some(CLIENT_ID), "audience_mismatch"),
            (json!(project), Some(CLIENT_ID), "audience_mismatch"),
            (
                json!([project, tenant]),
                Some(CLIENT_ID),
                "audience_mismatch",
            ),
            (json!([CLIENT_ID]), Some(project), "audience_mismatch"),
            (
                json!([CLIENT_ID, "android.example"]),
                Some(CLIENT_ID),
                "accepted",
            ),
        ] {
            let claims = with(
                under_test.claims(),
                &json!({ "aud": audience, "azp": party, "client_id": null }),
            );
            let verdict = under_test.says(&claims).await;
            assert_eq!(
                word(&verdict),
                expected,
                "{}: {audience} {party:?}: {verdict:?}",
                preset.name
            );
            if let Ok(verified) = verdict {
                assert_eq!(
                    Some(verified.client_id.as_str()),
                    party,
                    "{}: {audience}",
                    preset.name
                );
            }
        }
        // Without `azp` and `client_id`, such a token may be for its other audience.
        let nobody = json!({ "aud": [CLIENT_ID, project], "azp": null, "client_id": null });
        let verdict = under_test.says(&with(under_test.claims(), &nobody)).await;
        assert_eq!(
            word(&verdict),
            "audience_mismatch",
            "{}: {verdict:?}",
            preset.name
        );
    }
}

#[tokio::test]
async fn the_log_names_the_setting_that_would_allow_another_audience() {
    for (name, key) in [
        ("oidc", "providers.under-test.additional_audiences"),
        ("google by its keys", "additional_audiences"),
    ] {
        let under_test = ProviderUnderTest::of(super::presets::preset(name)).await;
        let claims = with(
            under_test.claims(),
            &json!({ "aud": [CLIENT_ID, "a-project"], "azp": CLIENT_ID }),
        );
        let refusal = refusal(under_test.says(&claims).await);
        let log = refusal.log.unwrap();
        assert!(log.contains(key) && log.contains("a-project"), "{log}");
        assert!(!refusal.detail.contains("a-project"), "{}", refusal.detail);
        // Without our audience it is another application's token, and no setting would allow it.
        let foreign = self::refusal(
            under_test
                .says(&under_test.changed("aud", "a-project"))
                .await,
        )
        .log
        .unwrap();
        assert!(!foreign.contains(key), "{foreign}");
    }
}

#[tokio::test]
async fn the_authorized_party_must_be_ours_too() {
    for preset in PRESETS {
        let under_test = ProviderUnderTest::with(
            preset,
            &json!({ "additional_client_ids": "android.example" }),
        )
        .await;
        for party in [
            json!("foreign.example"),
            json!(""),
            json!(1_234_567_890),
            json!([CLIENT_ID]),
        ] {
            let verdict = under_test.says(&under_test.changed("azp", party)).await;
            assert_eq!(
                word(&verdict),
                "audience_mismatch",
                "{}: {verdict:?}",
                preset.name
            );
        }
        let verified = under_test
            .says(&under_test.changed("azp", "android.example"))
            .await
            .unwrap();
        assert_eq!(verified.client_id, "android.example", "{}", preset.name);
        // Only introspection defines `client_id` (RFC 7662 §2.2); elsewhere it is ignored.
        let client = under_test
            .says(&under_test.changed("client_id", "foreign.example"))
            .await;
        let introspected = preset.is_of("rfc7662") || preset.discovers;
        let expected = if introspected {
            "audience_mismatch"
        } else {
            "accepted"
        };
        assert_eq!(word(&client), expected, "{}: {client:?}", preset.name);
    }
}

#[tokio::test]
async fn dates_are_read_in_either_spelling_and_held_against_one_clock() {
    expect(|under_test| {
        let mut cases = Vec::new();
        let mut date = |name: &str, seconds: i64, verdict| {
            cases.push((under_test.changed(name, seconds), verdict));
            cases.push((under_test.changed(name, seconds.to_string()), verdict));
        };
        for exp in [NOW + 1, NOW, NOW - LEEWAY + 1, 253_402_300_799] {
            date("exp", exp, "accepted");
        }
        for never in [253_402_300_800, NOW * 1000, 1 << 53, i64::MAX] {
            date("exp", never, "invalid_token");
        }
        for exp in [NOW - LEEWAY, NOW - LEEWAY - 1, NOW - HOUR, 0] {
            date("exp", exp, "token_expired");
        }
        for iat in [NOW + LEEWAY, NOW - 24 * HOUR] {
            date("iat", iat, "accepted");
        }
        date("iat", NOW + LEEWAY + 60, "invalid_token");
        date("iat", NOW - 25 * HOUR, "token_expired");
        date("nbf", NOW + LEEWAY, "accepted");
        date("nbf", NOW + HOUR, "invalid_token");
        for name in ["exp", "iat", "nbf"] {
            for odd in [
                json!("soon"),
                json!("1e9"),
                json!("0x7fffffff"),
                json!("9223372036854775808"),
                json!("2038-01-19T03:14:07Z"),
                json!(format!("+{NOW}")),
                json!(format!(" {NOW}")),
                json!(format!("{NOW}.0")),
                json!({ "seconds": NOW }),
                json!(true),
                json!([NOW]),
                json!(""),
                json!(1e30),
            ] {
                cases.push((under_test.changed(name, odd), "invalid_token"));
            }
        }
        for (exp, verdict) in [
            (json!(4_000_000_000.5), "accepted"),
            (json!(u64::MAX), "invalid_token"),
            (json!(-1e300), "token_expired"),
            (json!(f64::MIN_POSITIVE), "token_expired"),
        ] {
            cases.push((under_test.changed("exp", exp), verdict));
        }
        for name in ["exp", "iat"] {
            cases.push((under_test.without(name), "invalid_token"));
            cases.push((under_test.changed(name, Value::Null), "invalid_token"));
        }
        cases
    })
    .await;
}

#[tokio::test]
async fn subjects_are_bounded_printable_ascii_and_kept_byte_for_byte() {
    expect(|under_test| {
        let long = |length| json!("x".repeat(length));
        let accepted = [
            long(1),
            long(255),
            json!("AbC"),
            json!("a b"),
            json!("uid=jdoe,ou=People, dc=example"),
            json!("CN=Doe\\, John,OU=Sales & Co,DC=corp,DC=example"),
            json!("dlvyg+PkAtlCmoJtTqbT+W8AJ743J2PaovD5oe6mrHs="),
        ];
        let refused = [
            json!(null),
            json!(""),
            json!(" "),
            json!("   "),
            json!(" ".repeat(255)),
            json!("a\u{0}b"),
            json!("a\nb"),
            json!("a\tb"),
            json!("a\u{7f}b"),
            json!("a\u{a0}b"),
            json!("\u{1b}[31m"),
            json!("é"),
            json!(7),
            json!(["x"]),
            long(256),
            long(4_000),
        ];
        let mut cases: Vec<_> = accepted
            .into_iter()
            .map(|sub| (under_test.changed("sub", sub), "accepted"))
            .collect();
        cases.extend(
            refused
                .into_iter()
                .map(|sub| (under_test.changed("sub", sub), "invalid_token")),
        );
        cases.push((under_test.without("sub"), "invalid_token"));
        cases
    })
    .await;
    for preset in PRESETS {
        let under_test = ProviderUnderTest::of(preset).await;
        for subject in ["AbC", "aBc", "a b", "a  b", "a b ", " a b"] {
            assert_eq!(
                under_test
                    .says(&under_test.changed("sub", subject))
                    .await
                    .unwrap()
                    .subject,
                subject
            );
        }
    }
}

#[tokio::test]
async fn only_the_documented_claim_values_verify_an_address() {
    for preset in PRESETS {
        let under_test = ProviderUnderTest::of(preset).await;
        let microsoft = preset.is_of("microsoft");
        let (proof, other) = if microsoft {
            ("xms_edov", "email_verified")
        } else {
            ("email_verified", "xms_edov")
        };
        let mut claims = under_test.changed("email", "ada@example.com");
        claims.as_object_mut().unwrap().remove(proof);
        claims[other] = true.into();
        assert!(
            !under_test.says(&claims).await.unwrap().email_verified,
            "{}: absent",
            preset.name
        );
        for (word, vouched) in [
            (json!(true), true),
            (json!("true"), true),
            (json!(1), microsoft),
            (json!("1"), microsoft),
            (json!(false), false),
            (json!("false"), false),
            (json!("TRUE"), false),
            (json!("yes"), false),
            (json!(0), false),
            (json!([true]), false),
            (json!(null), false),
        ] {
            claims[proof] = word.clone();
            assert_eq!(
                under_test.says(&claims).await.unwrap().email_verified,
                vouched,
                "{}: {word}",
                preset.name
            );
        }
        // `trust_email` applies if the claim is absent, never if it is present.
        let trusting = ProviderUnderTest::with(preset, &json!({ "trust_email": true })).await;
        let mut claims = trusting.changed("email", "ada@example.com");
        for word in [json!("false"), json!(null), json!(""), json!([]), json!({})] {
            claims[proof] = word.clone();
            assert!(
                !trusting.says(&claims).await.unwrap().email_verified,
                "{}: {word}",
                preset.name
            );
        }
        claims.as_object_mut().unwrap().remove(proof);
        assert!(
            trusting.says(&claims).await.unwrap().email_verified,
            "{}",
            preset.name
        );
    }
}

#[tokio::test]
async fn only_a_nonempty_hd_claim_names_an_organisation() {
    for preset in PRESETS.into_iter().filter(|preset| preset.is_of("google")) {
        let under_test =
            ProviderUnderTest::with(preset, &json!({ "allowed_domains": "corp.example" })).await;
        let mut claims = under_test.changed("email", "ada@corp.example");
        assert_eq!(word(&under_test.says(&claims).await), "domain_not_allowed");
        for (domain, verdict) in [
            ("corp.example", "accepted"),
            ("Corp.Example", "accepted"),
            ("other.example", "domain_not_allowed"),
            ("corp.example.evil", "domain_not_allowed"),
            ("", "domain_not_allowed"),
        ] {
            claims["hd"] = domain.into();
            assert_eq!(
                word(&under_test.says(&claims).await),
                verdict,
                "{}: {domain}",
                preset.name
            );
        }
        let under_test = ProviderUnderTest::of(preset).await;
        for (hd, expected) in [
            ("", None),
            (" ", None),
            ("Corp.Example", Some("corp.example")),
        ] {
            let verified = under_test
                .says(&under_test.changed("hd", hd))
                .await
                .unwrap();
            assert_eq!(
                verified.hosted_domain.as_deref(),
                expected,
                "{}: {hd:?}",
                preset.name
            );
        }
    }
}

const RAW: &str = "n-0S6_WzA2Mj";

/// The hashed nonce that an app gives to its SDK: SHA-256 of [`RAW`] in hex.
fn hashed() -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, RAW.as_bytes());
    let digits = digest
        .as_ref()
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .map(|digit| char::from_digit(digit.into(), 16).unwrap())
        .collect()
}

/// The verdict on a token that holds one nonce and is sent with another.
async fn nonces(
    under_test: &ProviderUnderTest,
    held: Option<&str>,
    sent: Option<&str>,
) -> &'static str {
    let claims = with(under_test.claims(), &json!({ "nonce": held }));
    under_test.vouch(&claims);
    word(
        &under_test
            .verify_with(&under_test.preset.token(&claims), sent, NOW)
            .await,
    )
}

#[tokio::test]
async fn a_nonce_is_the_callers_in_the_one_form_that_counts() {
    let hashed = hashed();
    let mismatch = "nonce_mismatch";
    for preset in PRESETS {
        let relaxed = preset.is_of("line") || preset.is_of("facebook");
        let usual = if preset.is_of("apple") {
            "sha256"
        } else {
            "raw"
        };
        for form in [None, Some("raw"), Some("sha256")] {
            let settings = form.map_or(json!({}), |form| json!({ "nonce_form": form }));
            let under_test = ProviderUnderTest::with(preset, &settings).await;
            let expects_hash = form.unwrap_or(usual) == "sha256";
            let right = |right| if right { "accepted" } else { mismatch };
            for (held, sent, verdict) in [
                (None, None, "accepted"),
                (Some(RAW), Some(RAW), right(!expects_hash)),
                (Some(hashed.as_str()), Some(RAW), right(expects_hash)),
                // If a hash is expected, the hash itself fails: the token reveals it.
                (
                    Some(hashed.as_str()),
                    Some(hashed.as_str()),
                    right(!expects_hash),
                ),
                (Some(RAW), Some(hashed.as_str()), mismatch),
                (Some("another"), Some(RAW), mismatch),
                (None, Some(RAW), mismatch),
                (Some(RAW), None, if relaxed { "accepted" } else { mismatch }),
            ] {
                let here = nonces(&under_test, held, sent).await;
                assert_eq!(here, verdict, "{} {form:?}: {held:?} {sent:?}", preset.name);
            }
        }
    }
}

#[tokio::test]
async fn only_the_log_says_that_an_app_hashed_its_nonce() {
    for preset in PRESETS {
        let under_test = ProviderUnderTest::with(preset, &json!({ "nonce_form": "raw" })).await;
        for (held, hint) in [(hashed().as_str(), true), ("another", false)] {
            let claims = under_test.changed("nonce", held);
            under_test.vouch(&claims);
            let verdict = under_test
                .verify_with(&preset.token(&claims), Some(RAW), NOW)
                .await;
            let refusal = refusal(verdict);
            let log = refusal.log.unwrap_or_default();
            assert_eq!(
                log.contains("SHA-256") && log.contains("nonce_form"),
                hint,
                "{}: {log}",
                preset.name
            );
            assert!(
                !refusal.detail.contains("SHA-256") && !log.contains(RAW) && !log.contains(held),
                "{log}"
            );
        }
    }
}

#[tokio::test]
async fn a_nonce_that_is_always_demanded_is_on_both_sides() {
    for preset in PRESETS {
        let under_test =
            ProviderUnderTest::with(preset, &json!({ "nonce": "always", "nonce_form": "raw" }))
                .await;
        for (held, sent, verdict) in [
            (None, None, "nonce_mismatch"),
            (Some(RAW), None, "nonce_mismatch"),
            (None, Some(RAW), "nonce_mismatch"),
            (Some(RAW), Some(RAW), "accepted"),
        ] {
            assert_eq!(
                nonces(&under_test, held, sent).await,
                verdict,
                "{}: {held:?} {sent:?}",
                preset.name
            );
        }
    }
}

#[tokio::test]
async fn one_clients_nonces_may_differ_from_the_others() {
    for preset in PRESETS {
        let settings = json!({
            "additional_client_ids": "ios.example", "nonce": "both_or_neither", "nonce_form": "raw",
            "clients": { "ios.example": { "nonce": "if_sent", "nonce_form": "sha256" } },
        });
        let under_test = ProviderUnderTest::with(preset, &settings).await;
        let hashed = hashed();
        for (party, held, sent, verdict) in [
            (CLIENT_ID, RAW, Some(RAW), "accepted"),
            (CLIENT_ID, RAW, None, "nonce_mismatch"),
            ("ios.example", RAW, None, "accepted"),
            ("ios.example", &hashed, Some(RAW), "accepted"),
            ("ios.example", RAW, Some(RAW), "nonce_mismatch"),
        ] {
            let claims = with(under_test.claims(), &json!({ "azp": party, "nonce": held }));
            under_test.vouch(&claims);
            let here = under_test
                .verify_with(&preset.token(&claims), sent, NOW)
                .await;
            assert_eq!(
                word(&here),
                verdict,
                "{}: {party} {held} {sent:?}",
                preset.name
            );
        }
    }
}

#[tokio::test]
async fn a_tokens_nonce_counts_even_if_tokeninfo_omits_it() {
    for preset in PRESETS
        .into_iter()
        .filter(|preset| preset.asks && !preset.introspects())
    {
        let under_test =
            ProviderUnderTest::with(preset, &json!({ "nonce": "both_or_neither" })).await;
        under_test
            .endpoint
            .behave(Behaviour::Json(under_test.claims()));
        let token = Signer::Rsa.token(&under_test.changed("nonce", RAW));
        for sent in [None, Some("another")] {
            let verdict = under_test.verify_with(&token, sent, NOW).await;
            assert_eq!(word(&verdict), "nonce_mismatch", "{} {sent:?}", preset.name);
        }
        assert_eq!(
            under_test.calls(),
            0,
            "{}: nobody had to be asked",
            preset.name
        );
    }
}

#[tokio::test]
async fn an_answer_that_says_a_thing_twice_is_not_believed() {
    for preset in PRESETS {
        let under_test = ProviderUnderTest::of(preset).await;
        let sound = under_test.claims().to_string();
        // Duplicate claims make a signed token invalid, and an endpoint's response useless.
        let expected = if preset.judges_token() {
            "invalid_token"
        } else {
            "unavailable"
        };
        for member in [
            r#""sub":"other""#,
            r#""aud":"other""#,
            r#""\u0073ub":"other""#,
            r#""x":{"a":1,"a":2}"#,
        ] {
            for text in [
                sound.replacen('{', &format!("{{{member},"), 1),
                format!("{},{member}}}", &sound[..sound.len() - 1]),
            ] {
                let verdict = under_test.says_text(&text).await;
                assert_eq!(
                    word(&verdict),
                    expected,
                    "{}: {member}: {verdict:?}",
                    preset.name
                );
            }
        }
    }
}

#[tokio::test]
async fn a_token_that_is_not_signed_goes_nowhere() {
    for preset in PRESETS {
        let under_test = ProviderUnderTest::of(preset).await;
        let claims = under_test.claims().to_string();
        for alg in ["none", "None", "NONE", "noNE"] {
            let header = json!({ "alg": alg, "typ": "JWT" }).to_string();
            for signature in ["", "c2ln"] {
                let token = format!("{}.{}.{signature}", base64(&header), base64(&claims));
                let verdict = under_test.verify(&token).await;
                assert_eq!(
                    word(&verdict),
                    "invalid_token",
                    "{} {alg}: {verdict:?}",
                    preset.name
                );
            }
        }
        assert_eq!(
            under_test.calls(),
            0,
            "{}: nobody had to be asked",
            preset.name
        );
        // An HMAC with a shared secret is not the provider's signature. Endpoints reject it, too.
        under_test.endpoint.behave(Behaviour::status(400));
        let token = signed(r#"{"alg":"HS256","typ":"JWT"}"#, &claims, |message| {
            hs256(CLIENT_ID.as_bytes(), message)
        });
        assert_eq!(
            word(&under_test.verify(&token).await),
            "invalid_token",
            "{}",
            preset.name
        );
    }
}

#[tokio::test]
async fn an_unverified_tokens_claims_can_refuse_it_but_never_sign_in() {
    for preset in PRESETS {
        let under_test = ProviderUnderTest::of(preset).await;
        let signer = preset.signer.unwrap_or(Signer::Rsa);
        for (name, value, verdict) in [
            ("iss", json!("https://evil.example"), "issuer_mismatch"),
            ("aud", json!("foreign.example"), "audience_mismatch"),
            ("exp", json!(NOW - HOUR), "token_expired"),
        ] {
            let token = signer.token(&with(
                under_test.changed(name, value),
                &json!({ "scope": null }),
            ));
            assert_eq!(
                word(&under_test.verify(&token).await),
                verdict,
                "{}: {name}",
                preset.name
            );
        }
        assert_eq!(
            under_test.calls(),
            0,
            "{}: nobody had to be asked",
            preset.name
        );
        if preset.asks && !preset.signs() && !preset.introspects() {
            // The token claims one person, the provider knows another.
            under_test.vouch(&under_test.changed("sub", "the-provider-s"));
            let verified = under_test
                .verify(&signer.token(&under_test.changed("sub", "the-token-s")))
                .await
                .unwrap();
            assert_eq!(verified.subject, "the-provider-s", "{}", preset.name);
        }
    }
}

/// Presets whose tokens come from different issuers.
fn is_family(one: &Preset, other: &Preset) -> bool {
    let family = |preset: &Preset| match preset.name {
        "no preset" => "google".to_owned(),
        name => name.split(' ').next().unwrap().to_owned(),
    };
    family(one) == family(other)
}

#[tokio::test]
async fn a_token_of_one_provider_is_refused_at_every_other() {
    for preset in PRESETS {
        let under_test = ProviderUnderTest::of(preset).await;
        for other in PRESETS.iter().filter(|other| !is_family(&preset, other)) {
            let verdict = under_test.says(&(other.claims)()).await;
            // RFC 7662 claims contain a scope, which only introspection accepts.
            let scope = other.is_of("rfc7662");
            let expected = if scope {
                "invalid_token"
            } else {
                "issuer_mismatch"
            };
            assert_eq!(
                word(&verdict),
                expected,
                "{} at {}: {verdict:?}",
                other.name,
                preset.name
            );
        }
        // Google's response about an access token.
        let access = json!({
            "azp": CLIENT_ID, "aud": CLIENT_ID, "sub": "110169484474386276334", "scope": "openid email",
            "exp": (NOW + 3600).to_string(), "expires_in": "3600", "email": "testuser@gmail.com",
            "email_verified": "true", "access_type": "online",
        });
        let expected = if preset.is_of("rfc7662") {
            "issuer_mismatch"
        } else {
            "invalid_token"
        };
        assert_eq!(
            word(&under_test.says(&access).await),
            expected,
            "{}",
            preset.name
        );
    }
}

#[tokio::test]
async fn an_access_token_is_no_id_token_whatever_vouches_for_it() {
    let access = [
        // Keycloak, Spring Authorization Server, Microsoft, Amazon Cognito.
        json!({ "typ": "Bearer" }),
        json!({ "typ": "DPoP", "cnf": { "jkt": "x" } }),
        json!({ "scope": ["openid", "email"] }),
        json!({ "scope": "" }),
        json!({ "scp": "User.Read" }),
        json!({ "azpacr": "1" }),
        json!({ "token_use": "access" }),
    ];
    let other = [
        json!({ "typ": "Refresh" }),
        json!({ "typ": "Logout" }),
        json!({ "typ": 7 }),
        json!({ "token_use": "refresh" }),
        json!({ "events": { "http://schemas.openid.net/event/backchannel-logout": {} } }),
    ];
    let kinds = access
        .iter()
        .map(|members| (members, "this is an access token; send the id_token"))
        .chain(other.iter().map(|members| {
            (
                members,
                "this is a token of another kind; send the id_token",
            )
        }));
    for preset in PRESETS {
        let under_test = ProviderUnderTest::of(preset).await;
        for (members, detail) in kinds.clone() {
            let claims = with(under_test.claims(), members);
            under_test.vouch(&claims);
            // A readable access token is rejected without a call, an opaque one by the endpoint's
            // response.
            let calls = under_test.calls();
            let shown = preset.signer.unwrap_or(Signer::Rsa).token(&claims);
            for (token, unasked) in [
                (shown, true),
                (preset.token(&claims), preset.judges_token()),
            ] {
                let introspected =
                    preset.is_of("rfc7662") && !unasked && members.get("scope").is_some();
                let verdict = under_test.verify(&token).await;
                if introspected {
                    // Introspection of a token that is not a JWT shows no kind of token.
                    assert_eq!(word(&verdict), "accepted", "{members}");
                    continue;
                }
                let refusal = refusal(verdict);
                assert_eq!(
                    (refusal.reason.into(), refusal.detail),
                    ("invalid_token", detail),
                    "{members}"
                );
                assert!(
                    !unasked || under_test.calls() == calls,
                    "{} {members}",
                    preset.name
                );
            }
        }
    }
}

#[tokio::test]
async fn a_header_that_names_another_kind_of_token_is_refused_unasked() {
    for preset in PRESETS {
        let under_test = ProviderUnderTest::of(preset).await;
        let signer = preset.signer.unwrap_or(Signer::Rsa);
        for (typ, kind) in [
            ("at+jwt", "an access token"),
            ("application/at+jwt", "an access token"),
            ("AT+JWT", "an access token"),
            ("logout+jwt", "a token of another kind"),
            ("secevent+jwt", "a token of another kind"),
            ("dpop+jwt", "a token of another kind"),
        ] {
            let header = signer.header_with(&json!({ "typ": typ }));
            let refusal = refusal(
                under_test
                    .verify(&signer.token_with(&header, &under_test.claims()))
                    .await,
            );
            let detail = format!("this is {kind}; send the id_token");
            assert_eq!(
                (refusal.reason, refusal.detail),
                (Reason::InvalidToken, &*detail),
                "{typ}"
            );
        }
        assert_eq!(under_test.calls(), 0, "{}", preset.name);
    }
}

#[tokio::test]
async fn half_a_character_in_a_name_keeps_nobody_out() {
    for preset in PRESETS {
        let under_test = ProviderUnderTest::of(preset).await;
        let mut claims = under_test.claims();
        for name in ["name", "email", "picture", "locale"] {
            claims[name] = "@@".into();
        }
        let text = claims.to_string();
        let text = text
            .replace(r#""name":"@@""#, r#""name":"Ada \ud83d""#)
            .replace("@@", r"ada\ud83d@x.example");
        let verified = under_test
            .says_text(&text)
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", preset.name));
        assert_eq!(verified.name.as_deref(), Some("Ada"), "{}", preset.name);
        assert_eq!(
            (verified.email, verified.picture),
            (None, None),
            "{}",
            preset.name
        );
        let text = under_test
            .changed("sub", "@@")
            .to_string()
            .replace("@@", r"\ud83d");
        assert_eq!(
            word(&under_test.says_text(&text).await),
            "invalid_token",
            "{}",
            preset.name
        );
    }
}
