//! `vestibule check`, as an operator runs it before the service starts: one line for each check,
//! with a remedy for each problem, and no changes.

use std::process::Output;
use std::time::Instant;

use serde_json::{Value, json};
use time::format_description::well_known::Rfc2822;
use time::{Duration, OffsetDateTime};

use crate::support::app::App;
use crate::support::cluster::Database;
use crate::support::process::{SECRET_KEY, command, complete_settings, run};
use crate::support::provider::{Behaviour, Refusing};
use crate::support::tls::SelfSigned;
use crate::support::token::{ISSUER, claims, now};

/// The output of a check: exit code, lines with their state, and standard error.
struct Said {
    code: Option<i32>,
    lines: Vec<(String, String)>,
    error: String,
}

impl Said {
    /// Returns the only line with this state.
    #[track_caller]
    fn only(&self, state: &str) -> &str {
        let mut lines = self.lines.iter().filter(|(found, _)| found == state);
        let (Some((_, line)), None) = (lines.next(), lines.next()) else {
            panic!("not one line is {state}: {:#?}", self.lines)
        };
        line
    }

    fn has(&self, state: &str) -> bool {
        self.lines.iter().any(|(found, _)| found == state)
    }
}

/// Returns settings of a provider `other` at the test provider's URL.
fn other(app: &App, fields: &str) -> String {
    format!(
        "{{other={{issuer=\"{}\",client_id=\"x\",{fields}}}}}",
        app.provider.url()
    )
}

/// Runs a check with `other` as the only provider.
async fn check_other(app: &App, other: &str) -> Said {
    check(
        app,
        &[("IDP_ENABLED", "false"), ("ROCKET_PROVIDERS", other)],
    )
    .await
}

/// Runs a check in the release profile, with the service's settings and these changes.
async fn check(app: &App, changes: &[(&str, &str)]) -> Said {
    let endpoint = app.provider.tokeninfo_url();
    let complete = complete_settings(&app.database.url, &endpoint);
    let settings = [
        &complete[..],
        &[("IDP_CLIENT_SECRET", "hush-hush")],
        changes,
    ]
    .concat();
    let calls = app.provider.calls();
    let said = read(&run(&settings, &["check"]).await);
    let tokens = app.provider.requests().split_off(calls);
    for token in tokens.iter().filter_map(|call| {
        call.parameters()
            .into_iter()
            .find(|(name, _)| name.contains("token"))
    }) {
        assert_eq!(token.1.split('.').count(), 3, "it looks like a token");
        assert!(
            !said
                .lines
                .iter()
                .any(|(_, line)| line.contains(&token.1[..20])),
            "{:#?}",
            said.lines
        );
    }
    said
}

fn read(output: &Output) -> Said {
    let out = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    for secret in [SECRET_KEY, "hush-hush"] {
        assert!(
            !out.contains(secret) && !error.contains(secret),
            "{out}{error}"
        );
    }
    let lines = out.lines().map(|line| line.split_once(' ').expect(line));
    let lines = lines.map(|(state, rest)| (state.to_owned(), rest.trim().to_owned()));
    Said {
        code: output.status.code(),
        lines: lines.collect(),
        error: error.trim().to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_setup_is_all_well_and_nothing_is_changed() {
    let app = App::start().await;
    let said = check(&app, &[]).await;
    assert_eq!(
        (said.code, said.error.as_str()),
        (Some(0), ""),
        "{:#?}",
        said.lines
    );
    assert!(
        said.lines.iter().all(|(state, _)| state == "ok"),
        "{:#?}",
        said.lines
    );
    let all: Vec<_> = said.lines.iter().map(|(_, line)| line.as_str()).collect();
    for (line, words) in all.iter().zip([
        "settings: are valid",
        "database: PostgreSQL ",
        "its clock: ",
        "schema: all ",
        "its disk: has space for a test write, ",
        "signing keys: 1 can be decrypted",
        "staff: nobody, and the admin pages are not set up",
        "provider idp, endpoint (127.0.0.1): rejects an invalid token as expected (400), ",
    ]) {
        assert!(line.starts_with(words), "{line}");
    }
    assert_eq!((all.len(), app.provider.calls()), (8, 1));
    assert_eq!(app.database.rows().await, [0; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn check_tests_the_staff_client_secret_with_an_invalid_code() {
    let app = App::start().await;
    let token_url = format!("{}/token", app.provider.url());
    let page = "https://provider.example/authorize";
    let settings = [
        ("IDP_TOKEN_URL", token_url.as_str()),
        ("IDP_AUTHORIZATION_URL", page),
    ];
    let says = |code, error: &str| Behaviour::json(code, json!({ "error": error }).to_string());
    app.provider.behave(says(400, "invalid_grant"));
    let said = check(&app, &settings).await;
    let line = "provider idp, staff sign-in (127.0.0.1): rejects an invalid code as expected (invalid_grant), ";
    assert!(
        said.lines.last().unwrap().1.starts_with(line),
        "{:#?}",
        said.lines
    );
    assert_eq!(
        (said.code, said.has("wrong")),
        (Some(0), false),
        "{:#?}",
        said.lines
    );
    let asked = app.provider.requests().pop().unwrap().parameters();
    let back = "http://127.0.0.1:8000/admin/sign-in/callback";
    assert!(
        asked.contains(&("redirect_uri".to_owned(), back.to_owned())),
        "{asked:?}"
    );

    for (code, error) in [(401, "invalid_client"), (400, "invalid_client"), (401, "")] {
        app.provider.behave(says(code, error));
        let said = check(&app, &settings).await;
        let wrong = said.only("wrong");
        assert!(
            wrong.starts_with("provider idp, staff sign-in (127.0.0.1): rejects the client"),
            "{wrong}"
        );
        let name = if error.is_empty() {
            "no known reason"
        } else {
            error
        };
        assert!(wrong.contains(&format!("credentials ({name})")), "{wrong}");
        assert!(
            wrong.contains("IDP_CLIENT_SECRET") && wrong.contains("IDP_TOKEN_AUTH"),
            "{wrong}"
        );
    }

    for (behaviour, words) in [
        (
            says(400, "unsupported_grant_type"),
            "does not support the authorization-code grant",
        ),
        (
            Behaviour::Json(json!({ "id_token": "x" })),
            "accepts an invalid code",
        ),
        (Behaviour::status(429), "responds with 429"),
        (Behaviour::status(404), "responds with 404"),
    ] {
        app.provider.behave(behaviour);
        // The tokeninfo endpoint is called before the token endpoint.
        app.provider.behave_once(says(400, "invalid_token"));
        let said = check(&app, &settings).await;
        assert!(said.only("wrong").contains(words), "{:#?}", said.lines);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_reports_a_wrong_tokeninfo_endpoint_with_its_setting() {
    let app = App::start().await;
    let elsewhere = "https://sign-in.example.com/?id_token=never-shown".to_owned();
    let page = Behaviour::body(
        "text/html; charset=utf-8",
        "<!doctype html><title>Sign in</title>",
    );
    let cases = [
        (Behaviour::status(403), "responds with 403"),
        (Behaviour::status(404), "responds with 404"),
        (Behaviour::status(405), "responds with 405"),
        (Behaviour::status(503), "fails (503)"),
        (page, "an HTML page"),
        (
            Behaviour::body("text/plain", "no"),
            "does not respond with JSON",
        ),
        (
            Behaviour::body("application/json", "{"),
            "an unusable response (not_json)",
        ),
        (
            Behaviour::Redirect {
                code: 302,
                to: elsewhere,
            },
            "redirects to sign-in.example.com (302)",
        ),
        (
            Behaviour::Redirect {
                code: 307,
                to: "/elsewhere".into(),
            },
            "redirects to the same host",
        ),
        (
            Behaviour::Json(claims("subject", "ada@example.com")),
            "accepts an unsigned token",
        ),
        (
            Behaviour::Json(json!({ "active": false })),
            "set `IDP_PRESET` / `idp.preset` to \"rfc7662\"",
        ),
        (Behaviour::NEVER_ANSWER, "did not respond in time"),
    ];
    for (behaviour, words) in cases {
        app.provider.behave(behaviour);
        let calls = app.provider.calls();
        let said = check(&app, &[]).await;
        let line = said.only("wrong");
        assert_eq!(
            (said.code, said.error.as_str()),
            (Some(1), "vestibule: 1 check failed"),
            "{line}"
        );
        assert!(
            line.contains(words) && line.contains("`IDP_TOKENINFO_URL` / `idp.tokeninfo_url`"),
            "{line}"
        );
        assert!(!line.contains("never-shown"), "{line}");
        assert_eq!(app.provider.calls(), calls + 1, "{words}: asked once");
    }
    app.provider.behave(Behaviour::Usual);
    let said = check(
        &app,
        &[(
            "IDP_TOKENINFO_URL",
            &format!("{}/nowhere", app.provider.url()),
        )],
    )
    .await;
    assert!(
        said.only("wrong").contains("responds with 404"),
        "{:#?}",
        said.lines
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_down_is_named_with_the_cause() {
    let app = App::start().await;
    let refusing = Refusing::reserve();
    let said = check(&app, &[("IDP_TOKENINFO_URL", &refusing.url())]).await;
    let line = said.only("wrong");
    assert!(
        line.contains("is unreachable (Connection refused") && line.contains("IDP_TOKENINFO_URL"),
        "{line}"
    );
    assert_eq!(said.code, Some(1));
    let said = check(
        &app,
        &[
            ("IDP_TOKENINFO_URL", &refusing.url()),
            ("IDP_ENABLED", "false"),
        ],
    )
    .await;
    assert_eq!(
        said.code,
        Some(0),
        "one that is switched off is not asked: {:#?}",
        said.lines
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn check_reports_an_untrusted_certificate_with_its_own_remedy() {
    let app = App::start().await;
    let tls = SelfSigned::start().await;
    let said = check(&app, &[("IDP_TOKENINFO_URL", &tls.url())]).await;
    let line = said.only("wrong");
    assert!(
        line.contains("certificate: UnknownIssuer") && line.contains("SSL_CERT_FILE"),
        "{line}"
    );
    assert!(
        !line.contains("can reach") && !line.contains("IDP_TOKENINFO_URL"),
        "{line}"
    );
    assert_eq!((said.code, tls.requests()), (Some(1), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn check_warns_of_clocks_over_half_a_minute_apart() {
    let app = App::start().await;
    for (ahead, words) in [
        (0, ""),
        (20, ""),
        (120, "s behind the provider's"),
        (-120, "s ahead of the provider's"),
    ] {
        let begun = Instant::now();
        let told = OffsetDateTime::from_unix_timestamp(now()).unwrap() + Duration::seconds(ahead);
        let headers = [
            ("date", told.format(&Rfc2822).unwrap()),
            ("content-type", "application/json".into()),
        ];
        let headers = headers
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec();
        app.provider.behave(Behaviour::Status {
            code: 400,
            headers,
            body: b"{}".to_vec(),
        });
        let said = check(&app, &[]).await;
        assert_eq!(
            (said.code, said.error.as_str()),
            (Some(0), ""),
            "{ahead}: {:#?}",
            said.lines
        );
        if words.is_empty() {
            assert!(!said.has("warn"), "{ahead}: {:#?}", said.lines);
            assert!(
                said.lines.last().unwrap().1.contains("its clock: "),
                "{ahead}: {:#?}",
                said.lines
            );
        } else {
            let line = said.only("warn");
            assert!(line.contains(words) && line.contains("NTP"), "{line}");
            let seconds = line
                .split("clock is ")
                .nth(1)
                .and_then(|rest| rest.split(' ').next())
                .unwrap();
            // The service reads its clock later than this test did.
            let later = begun.elapsed().as_secs() + 2;
            assert!(
                seconds.parse::<u64>().unwrap().abs_diff(120) <= later,
                "{line}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_names_an_unreachable_database_and_still_tests_providers() {
    let app = App::start().await;
    let said = check(
        &app,
        &[("DATABASE_URL", "postgres://u:hush-hush@127.0.0.1:1/v")],
    )
    .await;
    let line = said.only("wrong");
    assert!(
        line.starts_with("database: the connection failed") && line.contains("check DATABASE_URL"),
        "{line}"
    );
    assert_eq!(said.code, Some(1));
    assert!(
        said.lines.last().unwrap().1.starts_with("provider idp"),
        "{:#?}",
        said.lines
    );
    let nowhere = app.database.url.replace("/test_", "/never_made_");
    let said = check(&app, &[("DATABASE_URL", &nowhere)]).await;
    assert!(
        said.only("wrong").contains("does not exist"),
        "{:#?}",
        said.lines
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn check_reports_a_foreign_schema_and_does_not_change_it() {
    let app = App::start().await;
    let bare = Database::bare().await;
    let said = check(&app, &[("DATABASE_URL", &bare.url)]).await;
    let line = said.only("warn").to_owned();
    assert!(
        line.contains("migrations are not applied") && line.contains("when it starts"),
        "{line}"
    );
    assert_eq!(said.code, Some(0), "the first start applies them");
    assert!(
        !said
            .lines
            .iter()
            .any(|(_, line)| line.starts_with("signing keys")),
        "there is no table of them"
    );
    assert_eq!(
        bare.count("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
            .await,
        0
    );

    let last = "(SELECT max(version) FROM _sqlx_migrations)";
    let changes = [
        (
            "DELETE FROM _sqlx_migrations WHERE version = ",
            "warn",
            "1 of ",
        ),
        (
            "UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = ",
            "wrong",
            "with different content",
        ),
        (
            "UPDATE _sqlx_migrations SET success = false WHERE version = ",
            "wrong",
            "only in part",
        ),
    ];
    for (change, state, words) in changes {
        let database = Database::create().await;
        sqlx::query(sqlx::AssertSqlSafe(format!("{change}{last}")))
            .execute(&database.pool)
            .await
            .unwrap();
        let said = check(&app, &[("DATABASE_URL", &database.url)]).await;
        assert_eq!(
            said.code,
            Some(i32::from(state == "wrong")),
            "{:#?}",
            said.lines
        );
        let line = said.only(state);
        assert!(
            line.starts_with("schema: ") && line.contains(words),
            "{line}"
        );
    }
    let newer =
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (99991231000000, 'later', true, '\\x00', 0)";
    app.database.run(newer).await;
    let said = check(&app, &[]).await;
    assert_eq!(said.code, Some(0), "{:#?}", said.lines);
    assert!(
        said.lines
            .iter()
            .any(|(_, line)| line.contains("and 1 of a newer release")),
        "{:#?}",
        said.lines
    );
    app.database
        .run("UPDATE oldest_version SET version = '1.0.0'")
        .await;
    let said = check(&app, &[]).await;
    assert!(
        said.only("wrong")
            .contains("migration 99991231000000 belongs to a newer release"),
        "{:#?}",
        said.lines
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_another_secret_key_are_named() {
    let app = App::start().await;
    let said = check(
        &app,
        &[(
            "ROCKET_SECRET_KEY",
            "another key, of more than 32 characters",
        )],
    )
    .await;
    let line = said.only("wrong");
    assert!(
        line.starts_with("signing keys: ") && line.contains("`secret_key`"),
        "{line}"
    );
    assert!(
        line.contains("--new-secret-key") && !line.contains("another key, of"),
        "{line}"
    );
    assert_eq!(said.code, Some(1));
    let new = Database::create().await;
    let said = check(&app, &[("DATABASE_URL", &new.url)]).await;
    assert_eq!(
        said.code,
        Some(0),
        "before the first start there are none: {:#?}",
        said.lines
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn check_expects_introspection_to_authenticate_us_and_reject_the_token() {
    let app = App::start().await;
    for (behaviour, words) in [
        (Behaviour::Json(json!({ "active": false })), ""),
        (Behaviour::json(400, r#"{"error":"invalid_token"}"#), ""),
        (Behaviour::status(401), "client_secret"),
        (
            Behaviour::json(400, r#"{"error":"invalid_client"}"#),
            "client_secret",
        ),
        (
            Behaviour::json(400, r#"{"error":"invalid_request"}"#),
            "idp.tokeninfo_url",
        ),
        (
            Behaviour::json(400, r#"{"error":"unsupported_token_type"}"#),
            "idp.verify",
        ),
        (
            Behaviour::Json(json!({ "active": true })),
            "accepts an unsigned token",
        ),
        (Behaviour::Json(json!({ "sub": "x" })), "idp.preset"),
    ] {
        app.provider.behave(behaviour);
        let said = check(&app, &[("IDP_PRESET", "rfc7662")]).await;
        if words.is_empty() {
            assert_eq!(said.code, Some(0), "{:#?}", said.lines);
        } else {
            assert!(said.only("wrong").contains(words), "{:#?}", said.lines);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whether_any_provider_introspects_id_tokens_is_not_taken_for_granted() {
    let app = App::start().await;
    let issuer = app.provider.url();
    for (preset, doubts) in [("oidc", 1), ("keycloak", 0)] {
        let fields = format!("preset=\"{preset}\",client_secret=\"hush\",verify=\"tokeninfo\"");
        let other = other(&app, &fields);
        let metadata =
            json!({ "issuer": issuer, "introspection_endpoint": app.provider.tokeninfo_url() });
        app.provider.behave_once(Behaviour::Json(metadata.clone()));
        app.provider
            .behave_once(Behaviour::Json(json!({ "active": false })));
        let said = check_other(&app, &other).await;
        assert_eq!(said.code, Some(0), "{:#?}", said.lines);
        let about = |line: &&(String, String)| {
            line.0 == "warn" && line.1.contains("providers.other.verify")
        };
        assert_eq!(
            said.lines.iter().filter(about).count(),
            doubts,
            "{preset} {:#?}",
            said.lines
        );
        // The check must not assume either that every client may introspect.
        app.provider.behave_once(Behaviour::Json(metadata));
        app.provider.behave_once(Behaviour::status(403));
        let said = check_other(&app, &other).await;
        for words in [
            "providers.other.issuer",
            "a confidential client",
            "providers.other.client_secret",
        ] {
            assert!(
                said.only("wrong").contains(words),
                "{words}: {:#?}",
                said.lines
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_and_keys_are_fetched_where_signatures_are_verified() {
    let app = App::start().await;
    let issuer = app.provider.url();
    let other = other(&app, "preset=\"oidc\"");
    let metadata = json!({ "issuer": issuer, "jwks_uri": format!("{issuer}/jwks") });
    let keys: Value = app.get("", "/.well-known/jwks.json").await.json();
    let answers = |documents: &[&Value]| {
        for document in documents {
            app.provider
                .behave_once(Behaviour::Json((*document).clone()));
        }
    };
    answers(&[&metadata, &keys]);
    let said = check_other(&app, &other).await;
    assert_eq!(said.code, Some(0), "{:#?}", said.lines);
    let paths: Vec<_> = app
        .provider
        .requests()
        .into_iter()
        .map(|call| call.path)
        .collect();
    assert_eq!(paths, ["/.well-known/openid-configuration", "/jwks"]);
    assert!(
        said.lines
            .last()
            .unwrap()
            .1
            .contains("keys (127.0.0.1): 1 usable")
    );

    for (documents, words) in [
        (&[][..], "discovery (127.0.0.1): responds with 404"),
        (
            &[&json!({ "issuer": "https://other.example" })],
            "discovery (127.0.0.1): `issuer` is https://other.example, which is not the configured one",
        ),
        (&[&json!({ "issuer": issuer })], "has no `jwks_uri`"),
        (&[&metadata], "keys (127.0.0.1): responds with 404"),
        (
            &[&metadata, &json!({ "keys": [] })],
            "keys (127.0.0.1): contain no usable key",
        ),
    ] {
        answers(documents);
        let said = check_other(&app, &other).await;
        let line = said.only("wrong");
        assert!(
            line.contains(words) && line.contains("providers.other."),
            "{line}"
        );
        assert_eq!(said.code, Some(1));
    }
    for (behaviour, words) in [
        (
            Behaviour::body("text/html", "<!doctype html>"),
            "responds with an HTML page",
        ),
        (
            Behaviour::body("application/json", "{"),
            "returns an unusable response (not_json)",
        ),
    ] {
        app.provider.behave_once(behaviour);
        let said = check_other(&app, &other).await;
        assert!(said.only("wrong").contains(words), "{:#?}", said.lines);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_warns_of_unusable_published_metadata_by_name() {
    let app = App::start().await;
    let issuer = app.provider.url();
    let other = other(&app, "preset=\"oidc\"");
    let keys: Value = app.get("", "/.well-known/jwks.json").await.json();
    let metadata = json!({
        "issuer": issuer, "jwks_uri": format!("{issuer}/jwks"), "revocation_endpoint": "", "userinfo_endpoint": "/me",
        "end_session_endpoint": 7,
    });
    app.provider.behave_once(Behaviour::Json(metadata));
    app.provider.behave_once(Behaviour::Json(keys));
    let said = check_other(&app, &other).await;
    let line = said.only("warn");
    assert!(
        line.contains("`revocation_endpoint`") && line.contains("`userinfo_endpoint`"),
        "{line}"
    );
    assert!(
        !line.contains("end_session") && !line.contains("jwks_uri"),
        "{line}"
    );
    assert_eq!(said.code, Some(0), "{:#?}", said.lines);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_for_staff_that_cannot_be_discovered_is_missed() {
    let app = App::start().await;
    let other = other(&app, "preset=\"oidc\",client_secret=\"hush-hush\"");
    let settings = [
        ("IDP_ENABLED", "false"),
        ("ROCKET_PROVIDERS", &*other),
        ("ROCKET_ADMIN", "{provider=other}"),
    ];
    let said = check(&app, &settings).await;
    let (state, line) = said.lines.last().unwrap();
    let words = "provider other, staff sign-in (127.0.0.1): cannot be called: ";
    assert!(
        state == "wrong" && line.starts_with(words),
        "{:#?}",
        said.lines
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_others_reach_without_a_proxy_is_warned_of() {
    let app = App::start().await;
    let others = ("ROCKET_ADDRESS", "0.0.0.0");
    let said = check(&app, &[others]).await;
    let line = said.only("warn");
    assert!(
        line.contains("0.0.0.0") && line.contains("`trusted_proxies` is empty"),
        "{line}"
    );
    assert_eq!(said.code, Some(0), "it runs all the same");
    assert!(
        !check(&app, &[others, ("ROCKET_TRUSTED_PROXIES", "10.0.0.10")])
            .await
            .has("warn")
    );
}

#[test]
fn the_help_of_check_tells_the_exit_codes() {
    let help =
        String::from_utf8(command(&[], &["check", "--help"]).output().unwrap().stdout).unwrap();
    assert!(
        help.contains("Exit codes: 0") && help.contains("Example:"),
        "{help}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_of_staff_that_was_left_at_google_is_named() {
    let app = App::start().await;
    let own = format!("{}/own", app.provider.url());
    let google = ("IDP_PRESET", "google");
    for (settings, setting) in [
        (
            &[google, ("IDP_TOKEN_URL", own.as_str())][..],
            "IDP_AUTHORIZATION_URL",
        ),
        (&[google, ("IDP_AUTHORIZATION_URL", &own)], "IDP_TOKEN_URL"),
    ] {
        // The responses of the other endpoints do not matter, and Google is not called.
        let settings = [
            settings,
            &[("IDP_CLIENT_SECRET", ""), ("IDP_SSF_URL", own.as_str())],
        ]
        .concat();
        let settings: Vec<_> = settings
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect();
        let said = check(&app, &settings).await;
        let page = |line: &&(String, String)| line.1.contains("staff sign-in page");
        let (state, line) = said
            .lines
            .iter()
            .find(page)
            .unwrap_or_else(|| panic!("{:#?}", said.lines));
        assert!(
            state == "wrong" && line.contains("is Google's, but the tokens come from elsewhere"),
            "{line}"
        );
        assert!(line.contains(&format!("set `{setting}`")), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_prints_where_to_register_events_and_tests_their_keys() {
    let app = App::start().await;
    let url = format!("{}/ssf-configuration", app.provider.url());
    let settings = [("IDP_SSF_URL", url.as_str())];
    let about = |said: &Said| {
        let lines = said
            .lines
            .iter()
            .filter(|(_, line)| line.contains("events"));
        lines
            .map(|(state, line)| format!("{state} {line}"))
            .collect::<Vec<_>>()
    };
    let place = "ok provider idp, events: are received at http://127.0.0.1:8000/api/v1/providers/idp/events; ";
    // One response serves as both documents.
    let mut document: Value = app.get("", "/.well-known/jwks.json").await.json();
    document["issuer"] = ISSUER.into();
    document["jwks_uri"] = url.as_str().into();
    app.provider.behave(Behaviour::Json(document));
    let lines = about(&check(&app, &settings).await);
    let [document, keys, where_to] = &lines[..] else {
        panic!("{lines:#?}")
    };
    assert!(
        document.starts_with("ok provider idp, events (127.0.0.1): states the issuer"),
        "{document}"
    );
    assert!(
        keys.starts_with("ok provider idp, keys of events (127.0.0.1): 1 usable"),
        "{keys}"
    );
    assert!(where_to.starts_with(place), "{where_to}");

    app.provider.behave(Behaviour::Json(
        json!({ "issuer": ISSUER, "jwks_uri": "http://keys.example" }),
    ));
    let lines = about(&check(&app, &settings).await);
    assert!(
        lines[0].starts_with("wrong ") && lines[0].contains("IDP_SSF_URL"),
        "{lines:#?}"
    );
    app.provider.behave(Behaviour::Usual);
    assert!(about(&check(&app, &[]).await).is_empty());

    for (secret, words) in [
        ("", "warn provider facebook, events: cannot be verified"),
        (
            ", client_secret=\"hush-hush\"",
            "/providers/facebook/data-deletion as its data deletion request URL",
        ),
    ] {
        let keys = format!("jwks_url=\"{url}\"{secret}");
        let facebook = format!("{{facebook={{preset=\"facebook\", client_id=\"1\", {keys}}}}}");
        let lines = about(&check(&app, &[("ROCKET_PROVIDERS", &facebook)]).await);
        assert!(lines.len() == 1 && lines[0].contains(words), "{lines:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_warns_of_admin_pages_without_staff_or_without_settings() {
    let app = App::start().await;
    let [page, token] = ["authorize", "token"].map(|path| format!("{}/{path}", app.provider.url()));
    let set_up = [
        ("IDP_AUTHORIZATION_URL", page.as_str()),
        ("IDP_TOKEN_URL", &token),
    ];
    let about_staff = |said: Said| {
        let line = said
            .lines
            .into_iter()
            .find(|(_, line)| line.starts_with("staff: "));
        line.expect("there is a line")
    };
    let (state, line) = about_staff(check(&app, &set_up).await);
    assert!(
        state == "warn" && line.contains("nobody is staff yet"),
        "{state} {line}"
    );
    assert!(
        line.contains("`vestibule staff add EMAIL --role admin`"),
        "{line}"
    );
    let member = "INSERT INTO staff (id, email, role) VALUES (gen_random_uuid(), 'ada@example.com', 'admin')";
    app.database.run(member).await;
    let (state, line) = about_staff(check(&app, &set_up).await);
    assert_eq!(
        (state.as_str(), line.as_str()),
        ("ok", "staff: 1 on the list")
    );
    let (state, line) = about_staff(check(&app, &[]).await);
    assert!(
        state == "warn" && line.contains("IDP_AUTHORIZATION_URL"),
        "{state} {line}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_who_has_seen_enough_ends_a_command_quietly() {
    let app = App::start().await;
    let database = app.database.url.clone();
    let endpoint = app.provider.tokeninfo_url();
    tokio::task::spawn_blocking(move || {
        for arguments in [
            &["check"][..],
            &["keys", "list"],
            &["prune"],
            &["completions", "bash"],
        ] {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let mut command = command(&complete_settings(&database, &endpoint), arguments);
            let output = command.stdout(writer).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(
                (output.status.code(), &*said),
                (Some(141), ""),
                "{arguments:?}"
            );
        }
    })
    .await
    .unwrap();
}
