//! The provider misbehaves: not the user's fault, answered within five seconds, nothing written.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::app::{Answer, App};
use crate::support::provider::{Behaviour, Refusing, Silent, odd_bodies};
use crate::support::token::{claims, with};

/// Five seconds are promised. The others are for a busy machine, and fewer than a second attempt takes.
const PROMISED: Duration = Duration::from_millis(8_500);

async fn timed(app: &App) -> (Answer, Duration) {
    let started = Instant::now();
    let answer = app.sign_in(&claims("subject", "ada@example.com")).await;
    (answer, started.elapsed())
}

async fn assert_unavailable(app: &App, what: &str) {
    let (answer, took) = timed(app).await;
    assert_eq!((answer.status.as_u16(), answer.error().as_str()), (503, "provider_unavailable"), "{what}");
    let seconds: u32 = answer.header("retry-after").expect(what).parse().expect(what);
    assert!((1..=60).contains(&seconds), "{what}: {seconds}");
    assert!(took < PROMISED, "{what}: {took:?}");
    assert_eq!(app.database.rows().await, [0; 3], "{what}");
}

/// Failures in a row that leave the breaker closed.
const FEW: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_not_clean_json_is_no_answer() {
    let app = App::start().await;
    for (what, behaviour) in odd_bodies(&claims("subject", "ada@example.com")) {
        app.provider.behave(behaviour);
        if what == "an empty object" {
            // Clean, but without a single claim: the token's fault, like any missing claim.
            assert_eq!(timed(&app).await.0.error(), "issuer_mismatch");
        } else {
            assert_unavailable(&app, what).await;
        }
    }
    app.provider.behave(Behaviour::Usual);
    assert_eq!(timed(&app).await.0.outcome(), "created");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_status_but_200_400_and_401_is_the_providers_own_fault() {
    let codes = [
        101, 201, 202, 203, 204, 206, 304, 402, 403, 404, 407, 408, 410, 418, 429, 451, 500, 501, 502, 503,
        504, 599,
    ];
    for few in codes.chunks(FEW) {
        let app = App::start().await;
        for code in few {
            app.provider.behave(Behaviour::status(*code));
            assert_unavailable(&app, &code.to_string()).await;
        }
    }
    let app = App::start().await;
    for code in [400, 401] {
        app.provider.behave(Behaviour::status(code));
        let (answer, _) = timed(&app).await;
        assert_eq!((answer.status.as_u16(), answer.error().as_str()), (401, "invalid_token"), "{code}");
    }
    for code in [301, 302, 303, 307, 308] {
        let app = App::start().await;
        let elsewhere = app.provider.tokeninfo_url();
        app.provider.behave(Behaviour::Redirect { code, to: elsewhere });
        let calls = app.provider.calls();
        assert_unavailable(&app, &code.to_string()).await;
        assert_eq!(app.provider.calls(), calls + 1, "a redirect is not followed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_slow_huge_or_cut_is_given_up_in_time() {
    let body = claims("subject", "ada@example.com").to_string().into_bytes();
    let second = Duration::from_secs(1);
    let cases = [
        ("slow first byte", Behaviour::Usual.delayed(30 * second)),
        ("one byte a second", Behaviour::Usual.trickled(second)),
        ("never", Behaviour::NeverAnswer),
        ("stalled", Behaviour::StallAfterHalf),
        ("huge", Behaviour::Huge(100 << 20)),
        ("endless", Behaviour::EndlessChunked),
        ("endless headers", Behaviour::EndlessHeaders),
        ("bomb", Behaviour::GzipBomb(8 << 20)),
        ("says more", Behaviour::LyingContentLength { claimed: 100_000, body: body.clone() }),
        ("says less", Behaviour::LyingContentLength { claimed: 10, body }),
        ("reset on connect", Behaviour::ResetOnConnect),
        ("reset before", Behaviour::ResetBeforeAnswer),
        ("reset amid", Behaviour::ResetMidBody),
        ("closed before", Behaviour::CloseBeforeAnswer),
        ("closed amid", Behaviour::CloseAfterHalf),
        ("200 headers", Behaviour::ManyHeaders(200)),
        ("a large header", Behaviour::HugeHeader(1 << 20)),
        ("HTTP/0.9", Behaviour::Http09),
    ];
    for few in cases.chunks(FEW) {
        let app = App::start().await;
        for (what, behaviour) in few {
            app.provider.behave(behaviour.clone());
            assert_unavailable(&app, what).await;
        }
        app.provider.behave(Behaviour::Usual);
        assert_eq!(timed(&app).await.0.outcome(), "created", "and the next one is fine");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_cannot_be_reached_is_given_up_in_time() {
    let (refusing, silent) = (Refusing::reserve(), Silent::start().await);
    let addresses = [refusing.url(), silent.https_url(), "https://nowhere.invalid/".into()];
    for address in addresses {
        let app = App::start_with(|figment| figment.merge(("idp.tokeninfo_url", &address))).await;
        assert_unavailable(&app, &address).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let tls = crate::support::tls::SelfSigned::start().await;
    let app = App::start_with(|figment| figment.merge(("idp.tokeninfo_url", tls.url()))).await;
    assert_unavailable(&app, "self-signed").await;
    assert!(tls.handshakes() > 0, "nobody came");
    assert_eq!(tls.requests(), 0, "the token is not sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_failure_that_may_pass_is_tried_once_more_and_no_other() {
    let passing = [
        Behaviour::status(500),
        Behaviour::status(502),
        Behaviour::status(503),
        Behaviour::status(504),
        Behaviour::ResetBeforeAnswer,
        Behaviour::CloseBeforeAnswer,
    ];
    let app = App::start().await;
    for behaviour in passing {
        let what = format!("{behaviour:?}");
        let calls = app.provider.calls();
        app.provider.behave_once(behaviour.clone());
        let (answer, _) = timed(&app).await;
        assert!(answer.status.is_success(), "{what}: {}", answer.text);
        assert_eq!(app.provider.calls(), calls + 2, "{what}");

        app.provider.behave(behaviour);
        assert_eq!(timed(&app).await.0.error(), "provider_unavailable", "{what}");
        assert_eq!(app.provider.calls(), calls + 4, "{what}: no storm");
        app.provider.behave(Behaviour::Usual);
    }
    for code in [400, 401, 403, 404, 429, 501] {
        let calls = app.provider.calls();
        app.provider.behave_once(Behaviour::status(code));
        assert!(!timed(&app).await.0.status.is_success(), "{code}");
        assert_eq!(app.provider.calls(), calls + 1, "{code}");
    }
    assert_eq!(app.database.rows().await[..2], [1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_wait_no_longer_than_the_provider_asks_for() {
    let app = App::start().await;
    for (asked, told) in [("30", "30"), ("0", "1"), ("86400", "60"), ("Sun, 06 Nov 1994 08:49:37 GMT", "2")] {
        let headers = vec![("Retry-After".to_owned(), asked.to_owned())];
        app.provider.behave(Behaviour::Status { code: 429, headers, body: Vec::new() });
        assert_eq!(timed(&app).await.0.header("retry-after"), Some(told), "{asked}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_inside_a_200_is_never_a_success() {
    let app = App::start().await;
    let sound = claims("subject", "ada@example.com");
    for (error, status, name) in [
        (json!("invalid_token"), 401, "invalid_token"),
        (json!({ "code": 400 }), 401, "invalid_token"),
        (json!("server_error"), 503, "provider_unavailable"),
        (json!("temporarily_unavailable"), 503, "provider_unavailable"),
    ] {
        app.provider.behave(Behaviour::Json(with(sound.clone(), &json!({ "error": error }))));
        let (answer, _) = timed(&app).await;
        assert_eq!((answer.status.as_u16(), answer.error().as_str()), (status, name), "{error}");
    }
    assert_eq!(app.database.rows().await, [0; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_the_provider_has_closed_is_replaced_unseen() {
    let app = App::start().await;
    for behaviour in
        [Behaviour::CloseIdleSilently, Behaviour::CloseAfterEachAnswer, Behaviour::Usual.dead_on_reuse()]
    {
        app.provider.behave(behaviour.clone());
        for _ in 0..10 {
            let (answer, _) = timed(&app).await;
            assert!(answer.status.is_success(), "{behaviour:?}: {}", answer.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_kept_and_the_token_is_the_one_parameter() {
    let app = App::start_with(|figment| figment.merge(("providers.second.tokeninfo_method", "post"))).await;
    for number in 0..10 {
        let subject = format!("subject-{number}");
        app.sign_in(&claims(&subject, &format!("{subject}@example.com"))).await;
    }
    assert_eq!(app.provider.connections(), 1);
    let elsewhere = with(claims("posted", "posted@example.com"), &json!({ "iss": "https://second.example" }));
    assert_eq!(app.sign_in_at("second", &elsewhere).await.outcome(), "created");

    let requests = app.provider.requests();
    let (posted, got) = requests.split_last().unwrap();
    assert!(
        got.iter().all(|call| call.method == "GET" && call.body.is_empty() && call.parameters().len() == 1)
    );
    assert_eq!((posted.method.as_str(), posted.query.as_str(), posted.parameters().len()), ("POST", "", 1));
    assert!(requests.iter().all(|call| call.token().is_some() && call.header("referer").is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_is_not_remembered() {
    let app = App::start().await;
    let token = app.token(&claims("subject", "ada@example.com"));
    let body = json!({ "id_token": token });
    assert_eq!(app.post("idp", &body).await.outcome(), "created");
    assert_eq!(app.post("idp", &body).await.outcome(), "signed_in");
    app.provider.revoke(&token);
    assert_eq!(app.post("idp", &body).await.error(), "invalid_token");
}
