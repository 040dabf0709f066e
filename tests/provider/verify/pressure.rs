//! Protection of an endpoint: one call at a time per token, a bounded number of calls, and a
//! circuit breaker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rocket::futures::future::join_all;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use vestibule::provider::{Breaker, CallStats};

use super::presets::{PRESETS, preset};
use super::under_test::{NOW, ProviderUnderTest, class, opaque_of, unavailable, word};
use crate::support::provider::Behaviour;
use crate::support::signer::Signer;

/// A provider that is asked about every token and accepts each.
async fn under_test(more: Value) -> Arc<ProviderUnderTest> {
    let under_test = ProviderUnderTest::with(preset("google"), &more).await;
    welcome(&under_test);
    Arc::new(under_test)
}

fn welcome(under_test: &ProviderUnderTest) {
    under_test
        .endpoint
        .behave(Behaviour::Json(under_test.claims()));
}

fn call_stats(under_test: &ProviderUnderTest) -> CallStats {
    under_test.providers.call_stats()["under-test"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_sign_ins_with_a_token_share_the_call_not_verdicts() {
    let under_test = under_test(json!({})).await;
    under_test
        .endpoint
        .behave(Behaviour::Json(under_test.changed("nonce", "mine")));
    let token = opaque_of(1);
    let nonces = ["mine", "another's"].into_iter().cycle().take(40);
    let requests = nonces.map(|nonce| under_test.verify_with(&token, Some(nonce), NOW));
    for (number, verdict) in under_test
        .endpoint
        .holding(1, requests)
        .await
        .iter()
        .enumerate()
    {
        let expected = if number % 2 == 0 {
            "accepted"
        } else {
            "nonce_mismatch"
        };
        assert_eq!(word(verdict), expected, "{verdict:?}");
    }
    // A caller that arrived after the response has made its own call.
    let calls = under_test.endpoint.calls();
    assert!(calls < 10, "{calls}");
    under_test
        .verify_with(&opaque_of(1), Some("mine"), NOW)
        .await
        .unwrap();
    assert_eq!(under_test.endpoint.calls(), calls + 1, "nothing is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_calls_are_bounded_and_excess_callers_fail_fast() {
    let under_test = under_test(json!({ "max_calls": 3 })).await;
    let gate = under_test.endpoint.hold();
    let request = |number| {
        let under_test = under_test.clone();
        async move {
            let started = Instant::now();
            (
                under_test.verify(&opaque_of(number)).await,
                started.elapsed(),
            )
        }
    };
    let mut requests: JoinSet<_> = (0..100).map(request).collect();
    gate.arrived(3).await;
    for _ in 0..97 {
        let (verdict, took) = requests.join_next().await.unwrap().unwrap();
        assert_eq!(class(&verdict), "no_place");
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
    gate.release();
    for (verdict, _) in requests.join_all().await {
        assert_eq!(word(&verdict), "accepted");
    }
    assert_eq!(
        (
            under_test.endpoint.in_flight_max(),
            under_test.endpoint.calls()
        ),
        (3, 3)
    );
    let stats = call_stats(&under_test);
    assert_eq!(
        (stats.outcomes["answered"], stats.outcomes["no_place"]),
        (3, 97)
    );
    assert_eq!(
        stats.breaker,
        Breaker::Closed,
        "many requests are no outage"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn single_probes_find_a_recovered_provider_within_ten_seconds() {
    let under_test = under_test(json!({})).await;
    under_test.endpoint.behave(Behaviour::status(403));
    for number in 0..5 {
        assert_eq!(
            class(&under_test.verify(&opaque_of(number)).await),
            "status_4xx"
        );
    }
    assert_eq!(
        call_stats(&under_test).breaker,
        Breaker::Closed,
        "callers alone do not open it"
    );
    assert_eq!(
        class(&under_test.verify(&opaque_of(5)).await),
        "breaker_open",
        "a probe does"
    );
    assert_eq!(
        (call_stats(&under_test).breaker, under_test.endpoint.calls()),
        (Breaker::Open, 6)
    );
    let calls = under_test.endpoint.calls();
    for number in 0..500 {
        let verdict = under_test.verify(&opaque_of(number)).await;
        assert_eq!(class(&verdict), "breaker_open");
        assert!(
            (1..=7).contains(&unavailable(&verdict).retry_after),
            "{verdict:?}"
        );
    }
    assert_eq!(under_test.endpoint.calls(), calls, "nobody was asked");

    // Many phones retry, first while the provider fails and then after its recovery.
    let still_failing = Instant::now();
    while under_test.endpoint.calls() == calls {
        join_all((0..20).map(async |number| under_test.verify(&opaque_of(number)).await)).await;
        assert!(
            still_failing.elapsed() < Duration::from_secs(10),
            "it is never asked again"
        );
    }
    assert_eq!(under_test.endpoint.calls(), calls + 1, "one probe");
    welcome(&under_test);
    let recovered = Instant::now();
    let mut number = 0;
    while word(&under_test.verify(&opaque_of(number)).await) != "accepted" {
        number += 1;
        assert!(
            recovered.elapsed() < Duration::from_secs(10),
            "it is not found again"
        );
        tokio::task::yield_now().await;
    }
    assert_eq!(call_stats(&under_test).breaker, Breaker::Closed);
    assert_eq!(
        under_test.endpoint.calls(),
        calls + 3,
        "the next probe, and the call"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobodys_tokens_open_the_breaker_while_the_provider_answers_a_probe() {
    let under_test = under_test(json!({})).await;
    under_test
        .endpoint
        .behave(Behaviour::Json(under_test.claims()));
    for number in 0..200 {
        let code = if number % 2 == 0 { 403 } else { 503 };
        under_test
            .endpoint
            .behave_for(&opaque_of(number), Behaviour::status(code));
        assert_eq!(
            word(&under_test.verify(&opaque_of(number)).await),
            "unavailable"
        );
        let honest = under_test.verify(&opaque_of(1_000 + number)).await;
        assert_eq!(
            word(&honest),
            "accepted",
            "after {number} of another's: {honest:?}"
        );
    }
    for number in 0..200 {
        let verdict = under_test.verify(&opaque_of(number)).await;
        assert_ne!(class(&verdict), "breaker_open", "{number}");
    }
    assert_eq!(call_stats(&under_test).breaker, Breaker::Closed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_too_long_for_the_endpoint_is_an_invalid_token() {
    for preset in PRESETS.into_iter().filter(|preset| preset.asks) {
        let under_test = ProviderUnderTest::of(preset).await;
        let claims = under_test.claims();
        // With each of these statuses, the provider blames the length of the token.
        for code in [413, 414, 431] {
            under_test.endpoint.behave(Behaviour::status(code));
            for _ in 0..20 {
                let verdict = under_test.verify(&preset.token(&claims)).await;
                assert_eq!(
                    word(&verdict),
                    "invalid_token",
                    "{} {code}: {verdict:?}",
                    preset.name
                );
            }
        }
        under_test.vouch(&claims);
        let mut longest = 0;
        for length in (4_900..5_700).step_by(50) {
            let long = under_test.changed("filler", "x".repeat(length));
            let token = preset.signer.unwrap_or(Signer::Rsa).token(&long);
            if token.len() > 8_192 {
                break;
            }
            let calls = under_test.endpoint.calls();
            let accepted = word(&under_test.verify(&token).await) != "invalid_token";
            assert_eq!(
                accepted,
                under_test.endpoint.calls() > calls,
                "{}: {} bytes",
                preset.name,
                token.len()
            );
            if accepted {
                let request = under_test.endpoint.requests().pop().unwrap();
                longest = longest.max(request.path.len() + request.query.len());
            }
        }
        assert!(longest < 8_000, "{}: {longest}", preset.name);
    }
}

#[tokio::test]
async fn a_token_too_long_for_a_query_goes_in_a_form() {
    let under_test = under_test(json!({ "token_format": "any" })).await;
    let others = "/tokeninfo?id_token=".len();
    for (length, in_query) in [(8_000 - others, true), (8_001 - others, false)] {
        assert_eq!(
            word(&under_test.verify(&"t".repeat(length)).await),
            "accepted",
            "{length}"
        );
        let request = under_test.endpoint.requests().pop().unwrap();
        assert_eq!(request.query.is_empty(), !in_query, "{length}");
    }
    for name in [
        "google by its keys",
        "line",
        "rfc7662",
        "keycloak by introspection",
    ] {
        let under_test = ProviderUnderTest::of(preset(name)).await;
        under_test.vouch(&under_test.claims());
        let mut claims = under_test.without("scope");
        let mut token = |filler: usize| {
            claims["filler"] = "x".repeat(filler).into();
            under_test
                .preset
                .signer
                .unwrap_or(Signer::Rsa)
                .token(&claims)
        };
        let room = 8_100 - token(0).len();
        let token = token(room * 3 / 4);
        assert!(
            (8_001..=8_192).contains(&token.len()),
            "{name}: {}",
            token.len()
        );
        assert_eq!(word(&under_test.verify(&token).await), "accepted", "{name}");
    }
}

#[tokio::test]
async fn a_timed_out_call_is_counted_as_a_timeout() {
    let under_test = under_test(json!({})).await;
    under_test.endpoint.behave(Behaviour::NEVER_ANSWER);
    assert_eq!(class(&under_test.verify(&opaque_of(0)).await), "timeout");
    assert_eq!(call_stats(&under_test).outcomes["timeout"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_responses_and_rejected_tokens_never_open_the_breaker() {
    let under_test = under_test(json!({})).await;
    for number in 0..50 {
        under_test
            .endpoint
            .behave(Behaviour::body("application/json", "{"));
        assert_eq!(
            class(&under_test.verify(&opaque_of(number)).await),
            "not_json"
        );
    }
    under_test.endpoint.behave(Behaviour::status(400));
    for number in 0..50 {
        assert_eq!(
            word(&under_test.verify(&opaque_of(number)).await),
            "invalid_token"
        );
    }
    welcome(&under_test);
    assert_eq!(word(&under_test.verify(&opaque_of(0)).await), "accepted");
}
