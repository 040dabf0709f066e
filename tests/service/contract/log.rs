//! The log: misconfigured or failing providers, floods, and a reader that stalls.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::support::cluster::Database;
use crate::support::process::{Process, eventually, free_port, run, until};
use crate::support::provider::{Behaviour, Provider};
use crate::support::race::rounds;
use crate::support::staff_app::Browser;
use crate::support::token::{CLIENT_ID, claims, encode, now};

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_whose_tokens_have_no_address_is_told_of_once() {
    let database = Database::create().await;
    let provider = Provider::start().await;
    let issuer = provider.url();
    let settings = format!(
        "{{keycloak={{preset=\"keycloak\",issuer=\"{issuer}\",client_id=\"{CLIENT_ID}\",client_secret=\"hush\",\
         verify=\"tokeninfo\"}}}}"
    );
    let settings = [("ROCKET_PROVIDERS", settings.as_str())];
    let service = Process::ready(&database, &provider, &settings).await;
    let metadata = json!({ "issuer": issuer, "introspection_endpoint": provider.tokeninfo_url() });
    provider.behave_once(Behaviour::Json(metadata));
    let claims =
        json!({ "iss": issuer, "sub": "s", "aud": CLIENT_ID, "iat": now(), "exp": now() + 300 });
    let mut answer = claims.clone();
    answer["active"] = true.into();
    provider.behave(Behaviour::Json(answer));
    let body = json!({ "id_token": encode(r#"{"alg":"RS256"}"#, &claims.to_string()) });
    for _ in 0..3 {
        let answer = service.sign_in("keycloak", &body).await;
        assert!(
            answer.status.is_success(),
            "{} {}",
            answer.text,
            service.log()
        );
    }
    let log = service.tells("\"outcome\"", 3).await;
    let lines: Vec<_> = log
        .lines()
        .filter(|line| line.contains("id_token has no `email`"))
        .collect();
    let [line] = lines[..] else { panic!("{log}") };
    assert!(line.contains("keycloak") && line.contains("WARN"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_with_unknown_keys_do_not_count_as_provider_failures() {
    let database = Database::create().await;
    let provider = Provider::start().await;
    let issuer = provider.url();
    let settings =
        format!("{{other={{preset=\"oidc\",issuer=\"{issuer}\",client_id=\"{CLIENT_ID}\"}}}}");
    let settings = [("ROCKET_PROVIDERS", settings.as_str())];
    let service = Process::ready(&database, &provider, &settings).await;
    let keys: Value = serde_json::from_str(&service.answers("/.well-known/jwks.json", 200).await)
        .expect("a key set");
    provider.behave_once(Behaviour::Json(
        json!({ "issuer": issuer, "jwks_uri": format!("{issuer}/jwks") }),
    ));
    provider.behave(Behaviour::Json(keys));
    let claims =
        json!({ "iss": issuer, "sub": "s", "aud": CLIENT_ID, "iat": now(), "exp": now() + 300 });
    let body =
        json!({ "id_token": encode(r#"{"alg":"ES256","kid":"made-up"}"#, &claims.to_string()) });
    for status in [401, 503, 503] {
        let answer = service.sign_in("other", &body).await;
        assert_eq!(
            answer.status.as_u16(),
            status,
            "{} {}",
            answer.text,
            service.log()
        );
    }
    let metrics = service.answers("/metrics", 200).await;
    let counted = |outcome: &str| {
        format!("vestibule_sign_ins_total{{provider=\"other\",outcome=\"{outcome}\"}}")
    };
    assert!(
        metrics.contains(&format!("{} 2\n", counted("no_verdict"))),
        "{metrics}"
    );
    assert!(
        metrics.contains(&format!("{} 0\n", counted("provider_unavailable"))),
        "{metrics}"
    );
    let log = service.tells("\"outcome\"", 3).await;
    let lines: Vec<_> = log
        .lines()
        .filter(|line| line.contains("unknown_key"))
        .collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(lines.iter().all(|line| line.contains("INFO")), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_never_contains_a_cookies_token() {
    let database = Database::create().await;
    let provider = Provider::start().await;
    let settings = [
        ("ROCKET_WEB", r#"{origins=["https://app.example.com"]}"#),
        ("ROCKET_LOG_LEVEL", "debug"),
    ];
    let service = Process::ready(&database, &provider, &settings).await;
    let page = "https://app.example.com";
    let id_token = provider.token(claims("ada", "ada@example.com"));
    let body = json!({ "id_token": id_token, "session": "cookie" });
    let post = async |path: &str, origin: &str, cookie: &str| {
        service
            .post(
                &format!("/api/v1/auth/{path}"),
                &[("Origin", origin), ("Cookie", cookie)],
                &body,
            )
            .await
    };
    let mut cookies = Vec::new();
    for path in ["oauth/idp", "refresh", "refresh"] {
        let cookie = cookies.last().map_or("", String::as_str);
        let answer = post(path, page, cookie).await;
        cookies.push(
            answer
                .header("Set-Cookie")
                .unwrap()
                .split(';')
                .next()
                .unwrap()
                .to_owned(),
        );
    }
    for (origin, cookie, status) in [
        ("https://evil.example", &cookies[2], 403),
        (page, &cookies[0], 401),
    ] {
        assert_eq!(
            post("refresh", origin, cookie).await.status.as_u16(),
            status
        );
    }
    let log = service.tells("/api/v1/auth/", 5).await;
    for cookie in &cookies {
        let (_, token) = cookie.split_once('=').unwrap();
        assert!(token.len() > 80 && !log.contains(token), "{log}");
    }
}

/// Starts a service where staff sign in at this provider.
async fn with_staff(database: &Database, provider: &Provider) -> Process {
    let authorize = format!("{}/authorize", provider.url());
    let token = format!("{}/token", provider.url());
    let settings = [
        ("IDP_CLIENT_SECRET", "hush"),
        ("IDP_AUTHORIZATION_URL", &authorize),
        ("IDP_TOKEN_URL", &token),
    ];
    Process::ready(database, provider, &settings).await
}

/// Begins a sign-in, and returns its `state`.
async fn begun(browser: &mut Browser) -> String {
    let asked = browser.begin().await;
    let (_, state) = asked
        .query_pairs()
        .find(|(name, _)| name == "state")
        .unwrap();
    state.into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_staff_sign_ins_provider_error_is_logged_but_never_shown() {
    let database = Database::create().await;
    let provider = Provider::start().await;
    let service = with_staff(&database, &provider).await;
    let mut browser = Browser::new(&service.url);
    for (number, (error, told)) in [
        (
            "invalid_scope",
            "idp: the provider answers with an error: invalid_scope",
        ),
        (
            "%3Csvg%3E",
            "idp: the provider answers with an error: no known reason",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let state = begun(&mut browser).await;
        let answer = format!(
            "/admin/sign-in/callback?error={error}&error_description=invented&state={state}"
        );
        let another = Browser::new(&service.url).get(&answer).await;
        assert_eq!(another.status.as_u16(), 400);
        service
            .tells("/admin/sign-in/callback", 2 * number + 1)
            .await;
        assert!(
            !service.log().contains(told),
            "anybody can make up a link: {}",
            service.log()
        );
        let page = browser.get(&answer).await;
        assert_eq!(page.status.as_u16(), 400, "{}", page.text);
        for never in ["invalid_scope", "svg>", "invented"] {
            assert!(!page.text.contains(never), "{}", page.text);
        }
        service.tells(told, 1).await;
    }
    assert!(
        !service.log().contains("invented") && !service.log().contains("svg"),
        "{}",
        service.log()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_staff_client_is_shown_generically_and_logged_with_settings() {
    let database = Database::create().await;
    let provider = Provider::start().await;
    let service = with_staff(&database, &provider).await;
    let mut browser = Browser::new(&service.url);
    let says = |code, error: &str| {
        Behaviour::json(
            code,
            json!({ "error": error, "error_description": "a description" }).to_string(),
        )
    };
    for (behaviour, words) in [
        (
            says(401, "invalid_client"),
            "the operator has to correct them",
        ),
        (Behaviour::status(404), "the operator has to correct them"),
        (Behaviour::RESET, "Try again in a minute"),
    ] {
        provider.behave(behaviour);
        let state = begun(&mut browser).await;
        let page = browser
            .get(&format!(
                "/admin/sign-in/callback?code=a-code&state={state}"
            ))
            .await;
        assert_eq!(page.status.as_u16(), 503, "{}", page.text);
        assert!(
            page.text.contains(words) && page.text.contains("Request ID: "),
            "{}",
            page.text
        );
        assert!(!page.text.contains("IDP_"), "{}", page.text);
    }
    let log = service.tells("idp: no usable response", 3).await;
    let told =
        |cause: &str| -> Vec<&str> { log.lines().filter(|line| line.contains(cause)).collect() };
    let wrong_secret =
        "client_authentication (the provider's error is invalid_client); check `IDP_CLIENT_ID`";
    for (cause, setting) in [
        (wrong_secret, "IDP_CLIENT_SECRET"),
        ("status_4xx", "IDP_TOKEN_URL"),
    ] {
        let [named, request] = told(cause)[..] else {
            panic!("{cause}: {log}")
        };
        assert!(
            named.contains("\"staff_sign_in_misconfigured\"") && named.contains("WARN"),
            "{named}"
        );
        assert!(
            request.contains("idp: no usable response") && request.contains("provider_unavailable"),
            "{request}"
        );
        assert!(
            named.contains(setting) && request.contains(setting),
            "{log}"
        );
    }
    assert!(
        !log.contains("hush") && !log.contains("a description"),
        "{log}"
    );
    let metrics = service.answers("/metrics", 200).await;
    assert!(
        metrics.contains("vestibule_problems_total{error=\"internal_error\"} 0\n"),
        "{metrics}"
    );
    assert!(
        log.contains("idp: no usable response from the provider: connection"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_instance_writes_nothing_about_the_probes_that_it_answers() {
    let database = Database::create().await;
    let provider = Provider::start().await;
    let service = Process::ready(&database, &provider, &[]).await;
    let lines = || {
        service
            .log()
            .lines()
            .filter(|line| line.contains("\"request\""))
            .count()
    };
    service.answers("/nowhere", 404).await;
    service.tells("not_found", 1).await;
    let before = lines();
    for _ in 0..200 {
        for path in ["/livez", "/readyz", "/metrics"] {
            service.answers(path, 200).await;
        }
    }
    assert_eq!(lines(), before, "{}", service.log());

    // The log reports once that a probe begins to fail, changes its cause or succeeds again.
    database
        .run("UPDATE _sqlx_migrations SET success = false")
        .await;
    for _ in 0..20 {
        service.answers("/readyz", 503).await;
    }
    database
        .run("UPDATE _sqlx_migrations SET success = true")
        .await;
    for _ in 0..20 {
        service.answers("/readyz", 200).await;
    }
    let log = service.tells("\"request\"", before + 2).await;
    let told: Vec<_> = log
        .lines()
        .filter(|line| line.contains("\"request\""))
        .skip(before)
        .collect();
    let [failed, over] = told[..] else {
        panic!("{log}")
    };
    assert!(
        failed.contains("WARN") && failed.contains("migrations: missing"),
        "{failed}"
    );
    assert!(
        over.contains("INFO") && over.contains("\"status\":200"),
        "{over}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_level_of_the_log_decides_which_lines_there_are() {
    let database = Database::create().await;
    let provider = Provider::start().await;
    // The lines of a probe, of a request, and of a provider failure.
    for (level, expected) in [
        ("debug", [true, true, true]),
        ("info", [false, true, true]),
        ("warn", [false, false, true]),
        ("error", [false, false, false]),
    ] {
        let settings = [("ROCKET_LOG_LEVEL", level), ("RUST_LOG", "trace")];
        let service = Process::ready(&database, &provider, &settings).await;
        service.answers("/livez", 200).await;
        service.answers("/nowhere", 404).await;
        provider.behave_once(Behaviour::status(404));
        let body = json!({ "id_token": encode(r#"{"alg":"RS256"}"#, &claims("ada", "ada@example.com").to_string()) });
        assert_eq!(service.sign_in("idp", &body).await.status, 503);
        until(&format!("the log has the lines of {level}"), async || {
            let log = service.log();
            let found =
                ["/livez", "not_found", "provider_unavailable"].map(|words| log.contains(words));
            found == expected
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_logged_by_network_and_without_addresses() {
    let database = Database::create().await;
    let provider = Provider::start().await;
    let settings = [
        ("ROCKET_TRUSTED_PROXIES", "127.0.0.1"),
        ("ROCKET_RATE_LIMIT", "{sign_in_per_minute=1}"),
    ];
    let service = Process::ready(&database, &provider, &settings).await;
    for (address, network) in [
        ("192.0.2.77", "192.0.2.0/24"),
        ("2001:db8:7:8::9", "2001:db8:7::/48"),
    ] {
        for limited in [false, true] {
            let forwarded = [("X-Forwarded-For", address)];
            let answer = service
                .post("/api/v1/auth/oauth/idp", &forwarded, &json!({}))
                .await;
            assert_eq!(answer.status == 429, limited);
        }
        let log = service.tells(network, 1).await;
        let line = log
            .lines()
            .rfind(|line| line.contains("rate_limited"))
            .unwrap_or_else(|| panic!("{log}"));
        assert!(
            line.contains(&format!("\"network\":\"{network}\"")),
            "{line}"
        );
        assert!(!log.contains(address), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_issuer_is_logged_with_its_setting_but_not_returned() {
    let database = Database::create().await;
    let provider = Provider::start().await;
    let service = Process::ready(&database, &provider, &[]).await;
    let mut claims = claims("ada", "ada@example.com");
    claims["iss"] = "https://elsewhere.example\nFORGED".into();
    let body = json!({ "id_token": encode(r#"{"alg":"RS256"}"#, &claims.to_string()) });
    assert!(
        !service
            .sign_in("idp", &body)
            .await
            .text
            .contains("elsewhere")
    );
    let log = service.tells("issuer_mismatch", 1).await;
    let line: Value = serde_json::from_str(
        log.lines()
            .rfind(|line| line.contains("issuer_mismatch"))
            .expect(&log),
    )
    .unwrap();
    let cause = line["cause"].as_str().unwrap();
    for words in [
        "received iss=\"https://elsewhere.example",
        "`IDP_ISSUERS` / `idp.issuers`",
    ] {
        assert!(cause.contains(words), "{line}");
    }
    assert_eq!(
        (&line["provider"], &line["outcome"]),
        (&json!("idp"), &json!("issuer_mismatch"))
    );
}

/// Sends a thousand requests on one connection, and asserts the status of each response.
async fn ask(service: &Process, path: &str, status: u16) {
    let mut stream = TcpStream::connect(service.url.strip_prefix("http://").unwrap())
        .await
        .unwrap();
    let ask = |more: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: vestibule\r\nAuthorization: Bearer e30.e30.e30\r\n{more}\r\n"
        )
    };
    let all = ask("").repeat(999) + &ask("Connection: close\r\n");
    let (mut answers, mut requests) = stream.split();
    let mut text = String::new();
    let both = async {
        tokio::join!(
            requests.write_all(all.as_bytes()),
            answers.read_to_string(&mut text)
        )
    };
    timeout(Duration::from_mins(1), both)
        .await
        .expect("all are answered")
        .1
        .unwrap();
    assert_eq!(
        text.matches(&format!("HTTP/1.1 {status} ")).count(),
        1000,
        "{text:.200}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_log_reader_blocks_nothing_and_gets_the_dropped_count() {
    let database = Database::create().await;
    let provider = Provider::start().await;
    // At this level each probe is logged.
    let settings = [("ROCKET_LOG_LEVEL", "debug")];
    let (mut service, pipe) = Process::start_piped(
        free_port(),
        &database.url,
        &provider.tokeninfo_url(),
        &settings,
    );
    service.answers("/readyz", 200).await;
    let dropped = async || -> u64 {
        let metrics = service.answers("/metrics", 200).await;
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix("vestibule_log_lines_dropped_total "));
        line.map_or(0, |number| number.parse().unwrap())
    };
    let mut asked = 0;
    while dropped().await == 0 {
        ask(&service, "/livez", 200).await;
        asked += 1000;
        assert!(asked < 100_000, "the lines wait somewhere");
    }
    let (caught_up, told) = oneshot::channel();
    let read = std::thread::spawn(move || {
        let mut caught_up = Some(caught_up);
        let mut lines = Vec::new();
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let line: Value = serde_json::from_str(&line).expect(&line);
            if line["lines"].is_u64() {
                caught_up.take().map(|caught_up| caught_up.send(()));
            }
            lines.push(line);
        }
        lines
    });
    timeout(Duration::from_mins(1), told)
        .await
        .expect("it is told")
        .unwrap();
    let dropped = dropped().await;
    service.terminate();
    assert!(service.ended().await.success());
    let lines = read.join().unwrap();
    let mut told = 0;
    for line in &lines {
        let Some(number) = line["lines"].as_u64() else {
            continue;
        };
        told += number;
        let words = format!("{number} lines were not written: whoever reads the log is too slow");
        assert_eq!(line["message"], words);
    }
    let written = lines
        .iter()
        .filter(|line| line["route"] == "/livez")
        .count() as u64;
    assert!(
        told == dropped && written < asked && written + told >= asked,
        "{asked} {written} {told} {dropped}"
    );
    let stopped = lines
        .iter()
        .filter(|line| line["message"].as_str().unwrap().starts_with("shutdown"));
    assert_eq!(stopped.count(), 1, "its last lines are there");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_process_loses_no_line() {
    for _ in 0..rounds() {
        let ended = run(&[("ROCKET_PROFILE", "release")], &[]).await;
        let log = String::from_utf8(ended.stderr).unwrap();
        assert!(
            log.lines()
                .last()
                .is_some_and(|line| line.contains("configuration: ")),
            "{log:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_gets_few_lines_in_the_log() {
    let database = Database::create().await;
    let provider = Provider::start().await;
    let settings = [
        ("ROCKET_RATE_LIMIT", "{staff_pages_per_minute=10}"),
        ("ROCKET_DRAIN", "0"),
    ];
    let mut service = Process::ready(&database, &provider, &settings).await;
    ask(&service, "/nowhere", 404).await;
    ask(&service, "/api/v1/me", 401).await;
    ask(&service, "/admin", 303).await;
    ask(&service, "/.well-known/jwks.json", 200).await;
    service.terminate();
    assert!(service.ended().await.success());
    let log = service.log();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    for (kind, status) in [
        ("not_found", 404),
        ("invalid_access_token", 401),
        ("redirect", 303),
    ] {
        let written = lines.iter().filter(|line| line["status"] == status).count() as u64;
        let told = lines.iter().filter(|line| line["kind"] == kind);
        let unlogged: u64 = told.filter_map(|line| line["unlogged"].as_u64()).sum();
        assert_eq!(
            written + unlogged,
            1000,
            "{kind}: each has a line or is counted in one"
        );
        // Each further ten seconds allow another hundred lines.
        assert!((100..=500).contains(&written), "{kind}: {written}");
    }
    let served = lines
        .iter()
        .filter(|line| line["route"] == "/.well-known/jwks.json")
        .count();
    assert_eq!(served, 1000, "what is served is told");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_event_log_starts_at_the_first_start_with_it() {
    let database = Database::create().await;
    let provider = Provider::start().await;
    let settings = [("ROCKET_EVENTS", "{log=true}")];
    let _service = Process::ready(&database, &provider, &settings).await;
    let begun =
        "SELECT place BETWEEN first_id(now() - interval '1 hour') AND first_id(now()) FROM cursors
                 WHERE walk = 'logged_events'";
    until("it has begun", async || database.value(begun).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_is_logged_once_across_instances_and_restarts() {
    let database = Database::create().await;
    let provider = Provider::start().await;
    run!(
        &database.pool,
        "UPDATE cursors SET place = first_id(now() - interval '1 hour') WHERE walk = 'logged_events'"
    );
    let write = async |minutes: i32, count: i32| {
        run!(
            &database.pool,
            r#"INSERT INTO events (id, kind, email, actor, ip, detail)
               SELECT overlay(first_id(now() - make_interval(mins => $1))::text PLACING '7' || lpad(n::text, 3, '0') FROM 15 FOR 4)::uuid,
                      'users_viewed', 'ada@example.com', 'desk@example.com', '192.0.2.1',
                      '{"reason": "a call", "search": {"q": "Ada"}}'
               FROM generate_series(1, $2) AS n"#,
            minutes,
            count,
        );
    };
    write(70, 9).await;
    // More events than one step logs.
    write(50, 900).await;
    let settings = [("ROCKET_EVENTS", "{log=true}")];
    let two = [(); 2].map(|()| {
        Process::start(
            free_port(),
            &database.url,
            &provider.tokeninfo_url(),
            &settings,
        )
    });
    let lines = |services: &[Process]| -> Vec<Value> {
        let logs = services.iter().map(Process::log).collect::<String>();
        let lines = logs
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        lines
            .filter(|line: &Value| line["message"] == "event")
            .collect()
    };
    let enough = async |count: usize| {
        eventually("they are logged", async || {
            (lines(&two).len() >= count).then(|| lines(&two))
        })
        .await
    };
    let events = enough(900).await;
    assert_eq!(events.len(), 900, "none from before the place");
    for (name, value) in [
        ("kind", "users_viewed"),
        ("actor", "desk@example.com"),
        ("ip", "192.0.2.1"),
        ("detail", r#"{"reason":"a call"}"#),
    ] {
        assert_eq!(events[0][name], value, "{}", events[0]);
    }
    let at = events[0]["event_at"].as_str().unwrap();
    assert!(OffsetDateTime::parse(at, &Rfc3339).is_ok(), "{at}");
    assert!(
        !events[0].to_string().contains("Ada") && !events[0].to_string().contains("ada@"),
        "{}",
        events[0]
    );

    drop(two);
    write(40, 7).await;
    let collector = Provider::start().await;
    collector.behave(Behaviour::Status {
        code: 200,
        headers: Vec::new(),
        body: Vec::new(),
    });
    let sent = [
        settings[0],
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url()),
        ("OTEL_TRACES_EXPORTER", "none"),
    ];
    let mut next = Process::ready(&database, &provider, &sent).await;
    until("the next ones are logged", async || {
        let events = lines(std::slice::from_ref(&next));
        events.len() == 7
    })
    .await;
    next.terminate();
    assert!(next.ended().await.success());
    let sent = collector.requests();
    assert!(
        sent.iter().all(|request| request.path == "/v1/logs"),
        "{sent:?}"
    );
    let bodies: String = sent
        .iter()
        .map(|request| String::from_utf8_lossy(&request.body).into_owned())
        .collect();
    assert_eq!(bodies.matches("users_viewed").count(), 7, "{bodies}");
    assert!(!bodies.contains("Ada"), "{bodies}");
}
