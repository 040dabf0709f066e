//! Failures of the provider: the service responds 503 within five seconds and writes nothing.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::provider::{Behaviour, End};
use crate::support::token::{claims, with};

/// Five seconds are promised. The rest is for a busy machine, and shorter than a second attempt.
const PROMISED: Duration = Duration::from_millis(8_500);

async fn timed(app: &App) -> (Answer, Duration) {
    let started = Instant::now();
    let answer = app.sign_in(&claims("subject", "ada@example.com")).await;
    (answer, started.elapsed())
}

async fn assert_unavailable(app: &App, what: &str) {
    let (answer, took) = timed(app).await;
    assert_eq!(answer.error(), "provider_unavailable", "{what}");
    assert_problem(&answer, 503, "provider_unavailable");
    assert!(took < PROMISED, "{what}: {took:?}");
    assert_eq!(app.database.rows().await, [0; 3], "{what}");
}

/// Compresses with the system's program, to save the tests a library.
fn gzip(text: &[u8]) -> Vec<u8> {
    let gzip = Command::new("gzip")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut gzip = gzip.expect("gzip starts");
    // The compressed output is small enough to wait in the pipe.
    gzip.stdin.take().unwrap().write_all(text).unwrap();
    gzip.wait_with_output().unwrap().stdout
}

// `tests/provider/verify/endpoints.rs` has the other failures, for each endpoint of each provider.
#[tokio::test(flavor = "multi_thread")]
async fn a_failing_provider_yields_503_in_time_and_writes_nothing() {
    let sound = claims("subject", "ada@example.com").to_string();
    let block = b" ".repeat(64 << 10);
    let padded = sound.clone() + &" ".repeat(8 << 20);
    let head = |header: &str| {
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{header}\r\n\r\n")
    };
    let chunk = |body: &[u8]| [format!("{:x}\r\n", body.len()).as_bytes(), body, b"\r\n"].concat();
    let chunked = [
        head("transfer-encoding: chunked").as_bytes(),
        &chunk(sound.as_bytes()),
    ]
    .concat();
    let zipped = [
        ("content-type", "application/json"),
        ("content-encoding", "gzip"),
    ];
    let headers = zipped
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
    for behaviours in [
        [
            ("nothing", Behaviour::NEVER_ANSWER),
            ("a status", Behaviour::status(404)),
            ("HTML", Behaviour::body("text/html", "<!doctype html>")),
        ],
        [
            ("half, closed", Behaviour::Half(End::Close)),
            ("half, reset", Behaviour::Half(End::Reset)),
            ("half", Behaviour::Half(End::Hang)),
        ],
        [
            (
                "100 megabytes",
                Behaviour::Raw(
                    (head("content-length: 100000000") + &sound).into(),
                    End::Repeat(block.clone()),
                ),
            ),
            (
                "endless chunks",
                Behaviour::Raw(chunked, End::Repeat(chunk(&block))),
            ),
            (
                "gzip",
                Behaviour::Status {
                    code: 200,
                    headers,
                    body: gzip(padded.as_bytes()),
                },
            ),
        ],
    ] {
        let app = App::start().await;
        for (what, behaviour) in behaviours {
            app.provider.behave(behaviour);
            assert_unavailable(&app, what).await;
        }
        app.provider.behave(Behaviour::Usual);
        assert_eq!(timed(&app).await.0.outcome(), "created");
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
        (
            json!("temporarily_unavailable"),
            503,
            "provider_unavailable",
        ),
    ] {
        app.provider.behave(Behaviour::Json(with(
            sound.clone(),
            &json!({ "error": error }),
        )));
        let (answer, _) = timed(&app).await;
        assert_eq!(
            (answer.status.as_u16(), answer.error().as_str()),
            (status, name),
            "{error}"
        );
    }
    assert_eq!(app.database.rows().await, [0; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_kept_and_the_token_is_the_one_parameter() {
    let app = App::start().await;
    for number in 0..10 {
        let subject = format!("subject-{number}");
        app.sign_in(&claims(&subject, &format!("{subject}@example.com")))
            .await;
    }
    assert_eq!(app.provider.connections(), 1);
    let requests = app.provider.requests();
    assert!(
        requests.iter().all(|call| call.method == "GET"
            && call.body.is_empty()
            && call.parameters().len() == 1)
    );
    assert!(
        requests
            .iter()
            .all(|call| call.token().is_some() && call.header("referer").is_none())
    );
}
