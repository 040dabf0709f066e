//! Fetching and caching of a provider's keys. Tests pass the time as a parameter; nothing sleeps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rocket::futures::future::join_all;
use serde_json::{Value, json};

use super::presets::preset;
use super::under_test::{NOW, ProviderUnderTest, class, refusal, unavailable, word};
use crate::support::provider::{Behaviour, odd_bodies};
use crate::support::signer::{Signer, base64, jwks};
use crate::support::token::with;

const HOUR: i64 = 60 * 60;

/// The behaviour that publishes keys with these headers.
fn published(keys: &[Value], headers: &[(&str, &str)]) -> Behaviour {
    let mut fields = vec![(
        "content-type".to_owned(),
        "application/jwk-set+json; charset=utf-8".to_owned(),
    )];
    fields.extend(
        headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    );
    Behaviour::Status {
        code: 200,
        headers: fields,
        body: jwks(keys).to_string().into_bytes(),
    }
}

/// A token with Apple's claims at that time, signed by that key.
fn token(under_test: &ProviderUnderTest, signer: Signer, now: i64) -> String {
    signer.token(&with(
        under_test.claims(),
        &json!({ "iat": now, "exp": now + HOUR }),
    ))
}

async fn sign_in(under_test: &ProviderUnderTest, signer: Signer, now: i64) -> &'static str {
    word(
        &under_test
            .verify_at(&token(under_test, signer, now), now)
            .await,
    )
}

async fn apple(keys: &[Value], headers: &[(&str, &str)]) -> ProviderUnderTest {
    let under_test = ProviderUnderTest::of(preset("apple")).await;
    under_test.keys.behave(published(keys, headers));
    under_test
}

#[tokio::test]
async fn keys_are_cached_for_the_providers_lifetime_within_bounds() {
    for (headers, lifetime) in [
        (&[("cache-control", "max-age=3600")][..], HOUR),
        (&[("expires", "0")], 60),
        (&[], 600),
    ] {
        let under_test = apple(&[Signer::Rsa.jwk()], headers).await;
        // No fetch before four fifths of the lifetime, and one at its end.
        for at in [NOW, NOW + 1, NOW + lifetime * 4 / 5 - 1] {
            assert_eq!(
                sign_in(&under_test, Signer::Rsa, at).await,
                "accepted",
                "{headers:?}"
            );
            assert_eq!(under_test.keys.calls(), 1, "{headers:?} at {}", at - NOW);
        }
        assert_eq!(
            sign_in(&under_test, Signer::Rsa, NOW + lifetime).await,
            "accepted",
            "{headers:?}"
        );
        assert_eq!(under_test.keys.calls(), 2, "{headers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_refreshed_before_expiry_in_the_background() {
    let under_test = apple(&[Signer::Rsa.jwk()], &[("cache-control", "max-age=3600")]).await;
    assert_eq!(sign_in(&under_test, Signer::Rsa, NOW).await, "accepted");
    let gate = under_test.keys.hold();
    under_test.keys.behave(published(
        &[Signer::OtherRsa.jwk()],
        &[("cache-control", "max-age=3600")],
    ));
    let late = NOW + HOUR * 4 / 5;
    for _ in 0..20 {
        assert_eq!(
            sign_in(&under_test, Signer::Rsa, late).await,
            "accepted",
            "by the keys that are still good"
        );
    }
    gate.arrived(1).await;
    assert_eq!(under_test.keys.calls(), 2, "one fetch, whoever comes");
    gate.release();
    under_test.keys.until(|counts| counts.answered == 2).await;
    // The new set counts once it is read; until then sign-ins use the old one without waiting.
    let answered = Instant::now();
    while sign_in(&under_test, Signer::Rsa, late).await == "accepted" {
        assert!(
            answered.elapsed() < Duration::from_secs(10),
            "the new keys are not read"
        );
        tokio::task::yield_now().await;
    }
    assert_eq!(
        sign_in(&under_test, Signer::OtherRsa, late).await,
        "accepted"
    );
    assert_eq!(
        under_test.keys.calls(),
        3,
        "and one for the key that is gone"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_need_the_keys_at_once_fetch_them_once() {
    let under_test = apple(&[Signer::Rsa.jwk()], &[]).await;
    // No keys yet; then expired keys; then an unknown key.
    for (signer, now, calls) in [
        (Signer::Rsa, NOW, 1),
        (Signer::Rsa, NOW + HOUR, 2),
        (Signer::OtherRsa, NOW + HOUR + 20, 3),
    ] {
        under_test.keys.behave(published(&[signer.jwk()], &[]));
        for verdict in under_test
            .keys
            .holding(1, (0..100).map(|_| sign_in(&under_test, signer, now)))
            .await
        {
            assert_eq!(verdict, "accepted", "{signer:?}");
        }
        assert_eq!(under_test.keys.calls(), calls, "{signer:?}");
        assert_eq!(under_test.keys.in_flight_max(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_gives_up_takes_the_keys_from_nobody() {
    let under_test = Arc::new(apple(&[Signer::Rsa.jwk()], &[]).await);
    let gate = under_test.keys.hold();
    let first = tokio::spawn({
        let under_test = Arc::clone(&under_test);
        async move { sign_in(&under_test, Signer::Rsa, NOW).await }
    });
    gate.arrived(1).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    gate.release();
    assert_eq!(sign_in(&under_test, Signer::Rsa, NOW).await, "accepted");
    assert_eq!(under_test.keys.calls(), 1);
}

#[tokio::test]
async fn an_unknown_key_is_looked_up_once_in_ten_seconds() {
    let under_test = apple(&[Signer::Rsa.jwk()], &[("cache-control", "max-age=86400")]).await;
    assert_eq!(sign_in(&under_test, Signer::Rsa, NOW).await, "accepted");
    for (at, calls) in [
        (NOW, 2),
        (NOW + 9, 2),
        (NOW + 10, 3),
        (NOW + 11, 3),
        (NOW + 19, 3),
        (NOW + 20, 4),
    ] {
        // The sign-in that causes a fetch learns that the key does not exist; for the others that
        // is still unknown.
        let looked = under_test.keys.calls() < calls;
        assert_eq!(
            sign_in(&under_test, Signer::OtherRsa, at).await,
            if looked {
                "invalid_token"
            } else {
                "unavailable"
            }
        );
        for _ in 0..10 {
            let verdict = under_test
                .verify_at(&token(&under_test, Signer::OtherRsa, at), at)
                .await;
            assert_eq!(class(&verdict), "unknown_key");
            let next = NOW + (at - NOW) / 10 * 10 + 10;
            assert_eq!(i64::from(unavailable(&verdict).retry_after), next - at);
        }
        assert_eq!(under_test.keys.calls(), calls, "at {}", at - NOW);
        assert_eq!(
            sign_in(&under_test, Signer::Rsa, at).await,
            "accepted",
            "others do not suffer"
        );
    }
    // The provider publishes the new key.
    under_test
        .keys
        .behave(published(&[Signer::OtherRsa.jwk()], &[]));
    assert_eq!(
        sign_in(&under_test, Signer::OtherRsa, NOW + 30).await,
        "accepted"
    );
    assert_eq!(
        sign_in(&under_test, Signer::Rsa, NOW + 40).await,
        "invalid_token",
        "and the old key is gone"
    );
}

#[tokio::test]
async fn a_failed_key_lookup_is_repeated_after_ten_seconds() {
    let under_test = apple(&[Signer::Rsa.jwk()], &[("cache-control", "max-age=86400")]).await;
    assert_eq!(sign_in(&under_test, Signer::Rsa, NOW).await, "accepted");
    under_test.keys.behave(Behaviour::status(403));
    for (at, calls) in [(NOW, 2), (NOW + 1, 2), (NOW + 9, 2), (NOW + 10, 3)] {
        let verdict = under_test
            .verify_at(&token(&under_test, Signer::OtherRsa, at), at)
            .await;
        assert_eq!(
            (class(&verdict), under_test.keys.calls()),
            ("status_4xx", calls),
            "at {}",
            at - NOW
        );
    }
    under_test
        .keys
        .behave(published(&[Signer::OtherRsa.jwk()], &[]));
    assert_eq!(
        sign_in(&under_test, Signer::OtherRsa, NOW + 20).await,
        "accepted"
    );
}

#[tokio::test]
async fn a_new_key_is_found_even_while_cached_keys_are_fresh() {
    let under_test = apple(&[Signer::Rsa.jwk()], &[]).await;
    assert_eq!(sign_in(&under_test, Signer::Rsa, NOW).await, "accepted");
    under_test
        .keys
        .behave(published(&[Signer::Rsa.jwk(), Signer::OtherRsa.jwk()], &[]));
    assert_eq!(
        sign_in(&under_test, Signer::OtherRsa, NOW + 1).await,
        "accepted"
    );
    // A second new key seconds later: the service says "retry later" instead of rejecting the
    // token.
    under_test.keys.behave(published(&[Signer::Pss.jwk()], &[]));
    assert_eq!(
        sign_in(&under_test, Signer::Pss, NOW + 2).await,
        "unavailable"
    );
    assert_eq!(
        sign_in(&under_test, Signer::Pss, NOW + 11).await,
        "accepted"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_that_started_before_a_token_does_not_refuse_it() {
    let under_test = apple(&[Signer::Rsa.jwk()], &[]).await;
    assert_eq!(sign_in(&under_test, Signer::Rsa, NOW).await, "accepted");
    let requests = (0..20).map(|_| sign_in(&under_test, Signer::OtherRsa, NOW + 1));
    let verdicts = under_test.keys.holding(1, requests).await;
    assert_eq!(
        verdicts
            .iter()
            .filter(|verdict| **verdict == "invalid_token")
            .count(),
        1,
        "{verdicts:?}"
    );
    assert_eq!(
        verdicts
            .iter()
            .filter(|verdict| **verdict == "unavailable")
            .count(),
        19,
        "{verdicts:?}"
    );
    assert_eq!(under_test.keys.calls(), 2);
}

#[tokio::test]
async fn a_wrong_signature_is_no_reason_to_fetch_anything() {
    let under_test = apple(&[Signer::Rsa.jwk()], &[("cache-control", "max-age=86400")]).await;
    assert_eq!(sign_in(&under_test, Signer::Rsa, NOW).await, "accepted");
    let claims = under_test.claims();
    for at in [NOW + 60, NOW + 120] {
        let forged = Signer::OtherRsa.token_with(&Signer::Rsa.header(), &claims);
        assert_eq!(
            word(&under_test.verify_at(&forged, at).await),
            "invalid_token"
        );
        let confused = Signer::Ec.token_with(&json!({ "alg": "ES256", "kid": "rsa-1" }), &claims);
        assert_eq!(
            word(&under_test.verify_at(&confused, at).await),
            "invalid_token"
        );
    }
    assert_eq!(under_test.keys.calls(), 1);
}

#[tokio::test]
async fn an_unsupported_published_key_is_logged_and_causes_no_fetch() {
    let unusable = [
        json!({ "kid": "ed-448", "kty": "OKP", "crv": "Ed448", "use": "sig", "x": base64([7; 57]) }),
        json!({ "kid": "short", "kty": "RSA", "use": "sig", "n": base64([255; 128]), "e": "AQAB" }),
    ];
    let keys = [&[Signer::Rsa.jwk()], &unusable[..]].concat();
    let under_test = apple(&keys, &[("cache-control", "max-age=86400")]).await;
    for (at, kid, alg) in [
        (NOW, "ed-448", "EdDSA"),
        (NOW + 1, "ed-448", "EdDSA"),
        (NOW + 11, "short", "RS256"),
    ] {
        let header = json!({ "alg": alg, "typ": "JWT", "kid": kid });
        let verdict = under_test
            .verify_at(&Signer::Ed.token_with(&header, &under_test.claims()), at)
            .await;
        let refusal = refusal(verdict);
        let log = refusal.log.unwrap_or_default();
        assert_eq!(refusal.reason.to_string(), "invalid_token", "{kid}");
        assert!(
            log.contains("not supported") && log.contains("2048") && log.contains("Ed25519"),
            "{log}"
        );
    }
    assert_eq!(under_test.keys.calls(), 1);
    // A supported key with the same name takes precedence.
    let namesake = with(Signer::OtherRsa.jwk(), &json!({ "kid": "short" }));
    let under_test = apple(&[unusable[1].clone(), namesake], &[]).await;
    let header = json!({ "alg": "RS256", "typ": "JWT", "kid": "short" });
    let token = Signer::OtherRsa.token_with(&header, &under_test.claims());
    assert_eq!(word(&under_test.verify_at(&token, NOW).await), "accepted");
}

#[tokio::test]
async fn a_single_key_without_a_name_can_be_replaced() {
    let nameless = |signer: Signer| with(signer.jwk(), &json!({ "kid": null }));
    let under_test = apple(
        &[nameless(Signer::Rsa)],
        &[("cache-control", "max-age=86400")],
    )
    .await;
    let token =
        |signer: Signer| signer.token_with(&json!({ "alg": "RS256" }), &under_test.claims());
    assert_eq!(
        word(&under_test.verify_at(&token(Signer::Rsa), NOW).await),
        "accepted"
    );
    under_test
        .keys
        .behave(published(&[nameless(Signer::OtherRsa)], &[]));
    assert_eq!(
        word(
            &under_test
                .verify_at(&token(Signer::OtherRsa), NOW + 10)
                .await
        ),
        "accepted"
    );
    assert_eq!(
        word(&under_test.verify_at(&token(Signer::Rsa), NOW + 20).await),
        "invalid_token"
    );
    assert_eq!(under_test.keys.calls(), 3);
}

#[tokio::test]
async fn keys_serve_on_for_a_bounded_time_while_their_endpoint_fails() {
    let under_test = apple(&[Signer::Rsa.jwk()], &[("cache-control", "max-age=3600")]).await;
    assert_eq!(sign_in(&under_test, Signer::Rsa, NOW).await, "accepted");
    under_test.keys.behave(Behaviour::status(503));
    let expired = NOW + HOUR;
    // Only the first sign-in calls the failing endpoint.
    for at in [expired, expired + 1, expired + 4] {
        assert_eq!(sign_in(&under_test, Signer::Rsa, at).await, "accepted");
        assert_eq!(under_test.keys.calls(), 3, "one fetch of two attempts");
    }
    assert_eq!(
        sign_in(&under_test, Signer::Rsa, expired + 4 * HOUR - 1).await,
        "accepted"
    );
    under_test.keys.until(|counts| counts.answered >= 5).await;
    assert_eq!(
        sign_in(&under_test, Signer::Rsa, expired + 4 * HOUR).await,
        "unavailable"
    );
    // The endpoint recovers.
    under_test.keys.behave(published(&[Signer::Rsa.jwk()], &[]));
    assert_eq!(
        sign_in(&under_test, Signer::Rsa, expired + 4 * HOUR + 70).await,
        "accepted"
    );
}

#[tokio::test]
async fn a_document_without_a_usable_key_never_replaces_a_good_one() {
    let claims = json!({ "keys": [Signer::OtherRsa.jwk()] });
    let mut broken = odd_bodies(&claims);
    let enc = with(Signer::OtherRsa.jwk(), &json!({ "use": "enc" }));
    for keys in [json!([]), json!({}), json!(null), json!([{}]), json!([enc])] {
        broken.push(("no keys", Behaviour::Json(json!({ "keys": keys }))));
    }
    broken.push((
        "twice",
        Behaviour::body(
            "application/json",
            format!(r#"{{"keys":[],{}"#, &claims.to_string()[1..]),
        ),
    ));
    for (what, behaviour) in broken {
        let under_test = apple(&[Signer::Rsa.jwk()], &[("cache-control", "max-age=60")]).await;
        assert_eq!(sign_in(&under_test, Signer::Rsa, NOW).await, "accepted");
        under_test.keys.behave(behaviour.clone());
        assert_eq!(
            sign_in(&under_test, Signer::Rsa, NOW + 600).await,
            "accepted",
            "{what}"
        );
        assert_eq!(under_test.keys.calls(), 2, "{what}: it was seen");
        assert_eq!(
            sign_in(&under_test, Signer::OtherRsa, NOW + 601).await,
            "unavailable",
            "{what}: nobody knows"
        );
        let under_test = apple(&[], &[]).await;
        under_test.keys.behave(behaviour);
        assert_eq!(
            sign_in(&under_test, Signer::Rsa, NOW).await,
            "unavailable",
            "{what}: and alone it is none"
        );
    }
}

#[tokio::test]
async fn without_keys_a_failing_endpoint_is_retried_after_five_seconds() {
    let under_test = apple(&[Signer::Rsa.jwk()], &[]).await;
    under_test.keys.behave(Behaviour::status(403));
    for (at, calls) in [(NOW, 1), (NOW + 1, 1), (NOW + 4, 1), (NOW + 5, 2)] {
        let verdict = under_test
            .verify_at(&token(&under_test, Signer::Rsa, at), at)
            .await;
        assert_eq!(class(&verdict), "status_4xx");
        assert_eq!(under_test.keys.calls(), calls, "at {}", at - NOW);
    }
    under_test.keys.behave(published(&[Signer::Rsa.jwk()], &[]));
    assert_eq!(
        sign_in(&under_test, Signer::Rsa, NOW + 10).await,
        "accepted",
        "ten seconds after its recovery"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_rotated_under_load_without_a_refusal() {
    let under_test = apple(&[Signer::Rsa.jwk()], &[("cache-control", "max-age=86400")]).await;
    assert_eq!(sign_in(&under_test, Signer::Rsa, NOW).await, "accepted");
    // The provider publishes the new key beside the old key, and signs with both.
    under_test.keys.behave(published(
        &[Signer::Rsa.jwk(), Signer::OtherRsa.jwk()],
        &[("cache-control", "max-age=86400")],
    ));
    let signers = [Signer::Rsa, Signer::OtherRsa]
        .into_iter()
        .cycle()
        .take(200);
    for verdict in join_all(signers.map(|signer| sign_in(&under_test, signer, NOW + 60))).await {
        assert_eq!(verdict, "accepted");
    }
    assert_eq!(under_test.keys.calls(), 2);
}
