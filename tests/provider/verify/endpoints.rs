//! Misbehaving endpoints for tokens, keys and metadata, with every preset. A token is rejected only
//! if the provider calls it invalid.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::presets::{PRESETS, Preset, preset};
use super::under_test::{NOW, ProviderUnderTest, class, opaque_of, unavailable, word};
use crate::support::provider::{Behaviour, End, Provider, Refusing, Silent, odd_bodies};
use crate::support::tls::SelfSigned;

/// The service promises five seconds. The rest allows for a busy machine, and is shorter than a
/// second attempt.
const PROMISED: Duration = Duration::from_millis(8_500);

/// The kinds of requests to a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Token,
    Keys,
    Metadata,
}

impl Asked {
    fn server(self, under_test: &ProviderUnderTest) -> &Provider {
        match self {
            Self::Token => &under_test.endpoint,
            Self::Keys => &under_test.keys,
            Self::Metadata => &under_test.metadata,
        }
    }

    /// The setting with its URL.
    fn setting(self) -> &'static str {
        match self {
            Self::Token => "tokeninfo_url",
            Self::Keys => "jwks_url",
            Self::Metadata => "issuer",
        }
    }
}

fn asked(preset: &Preset) -> Vec<Asked> {
    let all = [
        (Asked::Token, preset.asks),
        (Asked::Keys, preset.signs()),
        (Asked::Metadata, preset.discovers),
    ];
    all.into_iter()
        .filter(|(_, asked)| *asked)
        .map(|(asked, _)| asked)
        .collect()
}

/// Every endpoint of every preset.
fn points() -> impl Iterator<Item = (Preset, Asked)> {
    PRESETS
        .into_iter()
        .flat_map(|preset| asked(&preset).into_iter().map(move |asked| (preset, asked)))
}

/// A provider with sound endpoints, and a token that is valid there.
async fn sound(preset: Preset) -> (ProviderUnderTest, String) {
    let under_test = ProviderUnderTest::of(preset).await;
    let token = welcome(&under_test);
    (under_test, token)
}

/// Makes the endpoints respond correctly, and returns a token that is valid there.
fn welcome(under_test: &ProviderUnderTest) -> String {
    welcome_after(under_test, 0)
}

/// Does the same with a token that was issued that many seconds later.
fn welcome_after(under_test: &ProviderUnderTest, seconds: i64) -> String {
    let preset = under_test.preset;
    let mut claims = under_test.claims();
    for time in ["iat", "exp", "nbf", "auth_time"] {
        let later = match claims.get(time) {
            Some(Value::Number(at)) => json!(at.as_i64().unwrap() + seconds),
            Some(Value::String(at)) => json!((at.parse::<i64>().unwrap() + seconds).to_string()),
            _ => continue,
        };
        claims[time] = later;
    }
    under_test.vouch(&claims);
    preset.token(&claims)
}

/// Asserts that every preset, while one of its endpoints misbehaves, reports in time that it is
/// unavailable, and works again as soon as the endpoint does.
async fn all_unavailable(behaviours: &[(&'static str, Behaviour)]) {
    let mut cases = JoinSet::new();
    for (preset, asked) in points() {
        // Too few failures to open the breaker.
        for behaviours in behaviours.chunks(4) {
            let (under_test, token) = sound(preset).await;
            let behaviours = behaviours.to_vec();
            cases.spawn(async move {
                let good = asked.server(&under_test);
                // The time between attempts suffices for a failed document to be fetched again.
                let mut now = NOW;
                for (what, behaviour) in behaviours {
                    good.behave(behaviour);
                    let started = Instant::now();
                    let verdict = under_test.verify_at(&token, now).await;
                    let took = started.elapsed();
                    let case = format!("{}, {asked:?}: {what}", preset.name);
                    assert_eq!(word(&verdict), "unavailable", "{case}: {verdict:?}");
                    assert!(took < PROMISED, "{case}: {took:?}");
                    now += 10;
                }
                under_test.recover();
                welcome(&under_test);
                let verdict = under_test.verify_at(&token, now).await;
                assert_eq!(
                    word(&verdict),
                    "accepted",
                    "{}, {asked:?}: {verdict:?}",
                    preset.name
                );
            });
        }
    }
    cases.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_not_clean_json_is_no_answer() {
    let claims = json!({ "sub": "ada", "exp": 2_000_003_600 });
    let mut behaviours = odd_bodies(&claims);
    // Valid, but without claims: the tests of claims cover such a response.
    behaviours.retain(|(what, _)| *what != "an empty object");
    behaviours.push(("an image", Behaviour::body("image/png", "{}")));
    behaviours.push((
        "a token",
        Behaviour::body("application/jwt", "e30.e30.c2ln"),
    ));
    all_unavailable(&behaviours).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_other_status_is_the_providers_own_fault() {
    let codes = [
        101, 201, 202, 203, 204, 206, 304, 402, 403, 404, 407, 408, 410, 418, 429, 451, 500, 501,
        502, 503, 504, 599,
    ];
    all_unavailable(&codes.map(|code| ("a status", Behaviour::status(code)))).await;
}

#[tokio::test]
async fn a_status_is_told_by_its_class() {
    let under_test = ProviderUnderTest::of(preset("google")).await;
    for (code, expected) in [
        (201, "status_other"),
        (404, "status_4xx"),
        (429, "status_429"),
        (501, "status_5xx"),
        (504, "status_5xx"),
    ] {
        under_test.endpoint.behave(Behaviour::status(code));
        assert_eq!(
            class(&under_test.verify(&opaque_of(code.into())).await),
            expected,
            "{code}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_huge_or_truncated_responses_are_abandoned_in_time() {
    let second = Duration::from_secs(1);
    let close = |text: String| Behaviour::Raw(text.into(), End::Close);
    let of_length = |length: u32| {
        close(format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{{}}"
        ))
    };
    let filler = |name: String, length| (name, "x".repeat(length));
    let padded = |headers| Behaviour::Status {
        code: 200,
        headers,
        body: b"{}".to_vec(),
    };
    let endless = End::Repeat(b"x-filler: xxxxxxxxxxxxxxxx\r\n".repeat(512));
    all_unavailable(&[
        (
            "one byte a second",
            Behaviour::Json(json!({ "x": "y".repeat(1000) })).trickled(second),
        ),
        ("never", Behaviour::NEVER_ANSWER),
        (
            "slow first byte",
            Behaviour::status(400).delayed(30 * second),
        ),
        (
            "long",
            Behaviour::body("application/json", vec![b' '; 1 << 20]),
        ),
        (
            "endless headers",
            Behaviour::Raw(b"HTTP/1.1 200 OK\r\n".to_vec(), endless),
        ),
        ("says more", of_length(100_000)),
        ("says less", of_length(1)),
        ("reset on connect", Behaviour::ResetOnConnect),
        ("reset before", Behaviour::RESET),
        ("closed before", Behaviour::CLOSE),
        (
            "200 headers",
            padded(
                (0..200)
                    .map(|number| filler(format!("x-filler-{number}"), 1))
                    .collect(),
            ),
        ),
        (
            "a large header",
            padded(vec![filler("x-filler".into(), 1 << 20)]),
        ),
        ("HTTP/0.9", close("{}".into())),
        ("TLS", close("\x15\x03\x01\x00\x02\x02\x46".into())),
    ])
    .await;
}

#[tokio::test]
async fn a_response_longer_than_64_kib_is_rejected() {
    let under_test = ProviderUnderTest::of(preset("google")).await;
    let claims = under_test.claims().to_string();
    let padded = |length| {
        Behaviour::body(
            "application/json",
            claims.clone() + &" ".repeat(length - claims.len()),
        )
    };
    under_test.endpoint.behave(padded(64 * 1024));
    assert_eq!(word(&under_test.verify(&opaque_of(1)).await), "accepted");
    under_test.endpoint.behave(padded(64 * 1024 + 1));
    assert_eq!(class(&under_test.verify(&opaque_of(2)).await), "too_large");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirection_is_not_followed() {
    for (preset, asked) in points() {
        let ((under_test, token), elsewhere) = (sound(preset).await, Provider::start().await);
        let server = asked.server(&under_test);
        for (code, now) in [301, 302, 303, 307, 308]
            .into_iter()
            .zip((NOW..).step_by(10))
        {
            server.behave(Behaviour::Redirect {
                code,
                to: format!("{}/", elsewhere.url()),
            });
            let calls = server.calls();
            let verdict = under_test.verify_at(&token, now).await;
            assert_eq!(class(&verdict), "status_3xx", "{} {asked:?}", preset.name);
            let there = elsewhere.calls();
            let here = server.calls();
            assert_eq!((there, here), (0, calls + 1), "{} {asked:?}", preset.name);
            // A discovered URL depends on the setting `issuer`.
            let setting = if preset.discovers {
                "issuer"
            } else {
                asked.setting()
            };
            let setting = format!("providers.under-test.{setting}");
            assert!(
                verdict.unwrap_err().to_string().contains(&setting),
                "{} {asked:?}",
                preset.name
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_transient_failures_are_retried_and_only_once() {
    for (preset, asked) in points() {
        for (behaviour, calls) in [
            (Behaviour::status(500), 2),
            (Behaviour::status(502), 2),
            (Behaviour::status(503), 2),
            (Behaviour::status(504), 2),
            (Behaviour::RESET, 2),
            (Behaviour::status(403), 1),
            (Behaviour::status(429), 1),
            (Behaviour::status(501), 1),
        ] {
            let (under_test, token) = sound(preset).await;
            let server = asked.server(&under_test);
            server.behave_once(behaviour.clone());
            let verdict = under_test.verify(&token).await;
            let expected = if calls == 2 {
                "accepted"
            } else {
                "unavailable"
            };
            let case = format!("{}, {asked:?}, {behaviour:?}", preset.name);
            assert_eq!(word(&verdict), expected, "{case}: {verdict:?}");
            assert_eq!(server.calls(), calls, "{case}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_are_asked_to_wait_no_longer_than_the_provider_asks() {
    for (preset, asked) in points() {
        let (under_test, token) = sound(preset).await;
        let cases = [("30", 30), ("0", 1), ("86400", 60), ("soon", 2)];
        for ((header, seconds), now) in cases.into_iter().zip((NOW..).step_by(10)) {
            let headers = vec![("Retry-After".to_owned(), header.to_owned())];
            asked.server(&under_test).behave(Behaviour::Status {
                code: 429,
                headers,
                body: Vec::new(),
            });
            let verdict = under_test.verify_at(&token, now).await;
            let told = unavailable(&verdict).retry_after;
            assert_eq!(told, seconds, "{} {asked:?} {header}", preset.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_the_provider_calls_invalid_is_invalid() {
    for preset in PRESETS.into_iter().filter(|preset| preset.asks) {
        let (under_test, token) = sound(preset).await;
        let refused = |code, body: Value| Behaviour::json(code, body.to_string());
        let mut behaviours = vec![
            refused(400, json!({ "error": "invalid_token" })),
            refused(401, json!({ "error": "invalid_token" })),
            refused(
                400,
                json!({ "error": "invalid_request", "error_description": "Invalid IdToken." }),
            ),
            Behaviour::status(400),
            Behaviour::Json(json!({ "error": "invalid_token", "active": true })),
        ];
        if preset.introspects() {
            behaviours.push(Behaviour::Json(json!({ "active": false })));
        } else {
            behaviours.push(Behaviour::status(401));
        }
        for behaviour in behaviours {
            under_test.endpoint.behave(behaviour.clone());
            let calls = under_test.endpoint.calls();
            let verdict = under_test.verify(&token).await;
            assert_eq!(
                word(&verdict),
                "invalid_token",
                "{} {behaviour:?}: {verdict:?}",
                preset.name
            );
            assert_eq!(
                under_test.endpoint.calls(),
                calls + 1,
                "{} {behaviour:?}",
                preset.name
            );
        }
        // The service does not cache a verdict.
        let claims = under_test.claims();
        under_test.endpoint.behave_once(under_test.answer(&claims));
        assert_eq!(
            word(&under_test.verify(&token).await),
            "accepted",
            "{}",
            preset.name
        );
        assert_eq!(
            word(&under_test.verify(&token).await),
            "invalid_token",
            "{}",
            preset.name
        );
    }
}

/// A provider with one of its endpoints at this address, and a token that would be valid there.
async fn astray(preset: Preset, asked: Asked, address: &str) -> (ProviderUnderTest, String) {
    let under_test = ProviderUnderTest::with(preset, &json!({ asked.setting(): address })).await;
    let mut claims = under_test.claims();
    if asked == Asked::Metadata {
        claims["iss"] = address.into();
    }
    under_test.vouch(&claims);
    (under_test, preset.token(&claims))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_untrusted_certificate_is_refused_before_anything_is_sent() {
    let tls = SelfSigned::start().await;
    for (preset, asked) in points() {
        let (under_test, token) = astray(preset, asked, &tls.url()).await;
        let verdict = under_test.verify(&token).await;
        assert_eq!(
            word(&verdict),
            "unavailable",
            "{} {asked:?}: {verdict:?}",
            preset.name
        );
        let told = verdict.unwrap_err().to_string();
        assert!(
            told.contains("UnknownIssuer; ") && told.contains("SSL_CERT_FILE"),
            "{told}"
        );
    }
    assert_eq!(tls.requests(), 0);
    assert!(tls.handshakes() > PRESETS.len(), "nobody came");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_idle_connection_is_replaced_without_a_failed_sign_in() {
    // Longer than the service caches any document, so that it fetches each again.
    const DAYS: i64 = 2 * 24 * 60 * 60;
    for (preset, asked) in points() {
        let mut reused = false;
        for _ in 0..50 {
            let under_test = ProviderUnderTest::of(preset).await;
            let server = asked.server(&under_test);
            for later in [0, DAYS] {
                let token = welcome_after(&under_test, later);
                under_test.recover();
                server.die_on_reuse();
                let verdict = under_test.verify_at(&token, NOW + later).await;
                assert_eq!(
                    word(&verdict),
                    "accepted",
                    "{} {asked:?}: {verdict:?}",
                    preset.name
                );
            }
            // The client pools a connection some time after the response. Until then it opens
            // another connection.
            reused = (server.connections(), server.calls()) == (2, 3);
            if reused {
                break;
            }
        }
        assert!(
            reused,
            "{} {asked:?}: no connection died when it was used again",
            preset.name
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_is_found_again_within_ten_seconds_of_an_outage() {
    let mut outages = JoinSet::new();
    for (preset, asked) in points() {
        outages.spawn(async move {
            let (under_test, token) = sound(preset).await;
            let server = asked.server(&under_test);
            server.behave(Behaviour::status(503));
            // Many clients retry; each second of the clock may allow another fetch of a document.
            for now in NOW..NOW + 300 {
                let verdict = under_test.verify_at(&token, now).await;
                assert_eq!(
                    word(&verdict),
                    "unavailable",
                    "{} {asked:?}: {verdict:?}",
                    preset.name
                );
            }
            let calls = server.calls();
            assert!(
                calls <= 120,
                "{} {asked:?}: {calls} calls in five minutes",
                preset.name
            );
            under_test.recover();
            welcome(&under_test);
            let recovered = Instant::now();
            let mut now = NOW + 300;
            while word(&under_test.verify_at(&token, now).await) != "accepted" {
                assert!(
                    recovered.elapsed() < Duration::from_secs(10),
                    "{} {asked:?}",
                    preset.name
                );
                tokio::task::yield_now().await;
                now = NOW + 300 + i64::try_from(recovered.elapsed().as_secs()).unwrap();
            }
            let calls = server.calls() - calls;
            assert!(
                calls <= 2,
                "{} {asked:?}: {calls} calls for one sign-in",
                preset.name
            );
        });
    }
    outages.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_cannot_be_reached_is_given_up_in_time() {
    let refusing = Refusing::reserve();
    let silent = Silent::start().await;
    let mut cases = JoinSet::new();
    for preset in ["google", "line", "apple", "rfc7662", "keycloak by both"].map(preset) {
        for address in [
            refusing.url(),
            silent.https_url(),
            "https://nowhere.invalid".to_owned(),
        ] {
            for asked in asked(&preset) {
                let (under_test, token) = astray(preset, asked, &address).await;
                let address = address.clone();
                cases.spawn(async move {
                    let started = Instant::now();
                    let verdict = under_test.verify(&token).await;
                    assert_eq!(
                        word(&verdict),
                        "unavailable",
                        "{} {address}: {verdict:?}",
                        preset.name
                    );
                    assert!(started.elapsed() < PROMISED, "{} {address}", preset.name);
                });
            }
        }
    }
    cases.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_do_not_cross_between_requests() {
    for name in ["google", "line", "no preset"] {
        let under_test = ProviderUnderTest::of(preset(name)).await;
        let tokens: Vec<_> = (0..50).map(opaque_of).collect();
        for (number, token) in tokens.iter().enumerate() {
            under_test
                .endpoint
                .accept(token, under_test.changed("sub", format!("person-{number}")));
        }
        let verdicts = under_test
            .endpoint
            .holding(50, tokens.iter().map(|token| under_test.verify(token)))
            .await;
        for (number, verdict) in verdicts.into_iter().enumerate() {
            assert_eq!(verdict.unwrap().subject, format!("person-{number}"));
        }
    }
}
