//! Staff sign in by the authorization-code flow; all other accounts are refused.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};
use vestibule::admin::staff::sign_in::store as staff;
use vestibule::admin::staff::sign_in::store::{Candidate, Stranger};
use vestibule::admin::staff::store::{Changed, remove, reset};
use vestibule::domain::actor::{Actor, Author, Origin};
use vestibule::domain::staff::Role;

use crate::support::provider::{Behaviour, Provider, Recorded};
use crate::support::signer::{Signer, jwks};
use crate::support::staff_app::{Browser, StaffApp};
use crate::support::token::{CLIENT_ID, now, with};

pub const SESSION: &str = "__Host-vestibule-staff";

#[tokio::test(flavor = "multi_thread")]
async fn the_authorization_request_has_standard_parameters_and_nothing_from_the_caller() {
    let staff_app = StaffApp::open().await;
    let mut browser = Browser::new(&staff_app.app.url);
    let request = browser.request(
        Method::POST,
        "/admin/sign-in?next=/admin/audit&login_hint=x&prompt=none&redirect_uri=x",
    );
    let begun = browser
        .send(
            request
                .header("Host", "evil.example")
                .header("X-Forwarded-Host", "evil.example"),
        )
        .await;
    let address = reqwest::Url::parse(begun.header("location").unwrap()).unwrap();
    let query: BTreeMap<String, String> = address.query_pairs().into_owned().collect();
    assert_eq!(
        query["redirect_uri"],
        format!("{}/admin/sign-in/callback", staff_app.app.url)
    );
    assert_eq!(
        (
            query["response_type"].as_str(),
            query["code_challenge_method"].as_str()
        ),
        ("code", "S256")
    );
    let names: Vec<_> = query.keys().map(String::as_str).collect();
    let expected = [
        "client_id",
        "code_challenge",
        "code_challenge_method",
        "nonce",
        "redirect_uri",
        "response_type",
        "scope",
        "state",
    ];
    assert_eq!(names, expected);
    let cookie = begun.header("set-cookie").unwrap();
    for attribute in [
        "__Host-vestibule-sign-in=",
        "; HttpOnly",
        "; SameSite=Lax",
        "; Secure",
        "; Path=/",
    ] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_sign_in_and_out_and_everyone_else_stays_outside() {
    let staff_app = StaffApp::open().await;
    staff_app.appoint("ada@example.com", Role::Admin).await;
    let mut browser = staff_app.signed_in("Ada@Example.com").await;
    assert_eq!(browser.get("/admin/users").await.status, 200);
    let mut elsewhere = staff_app.signed_in("ada@example.com").await;

    let mut stranger = Browser::new(&staff_app.app.url);
    let refused = stranger.sign_in("grace@example.com").await;
    assert_eq!(refused.status, 403);
    assert!(!stranger.cookies.contains_key(SESSION));
    let untold = stranger
        .sign_in_with(&[("sub", "somebody-without-an-address")])
        .await;
    assert_eq!(untold.status, 403);
    assert!(
        untold.text.contains("did not say your e-mail address"),
        "{}",
        untold.text
    );
    assert_eq!(
        staff_app.app.database.rows().await,
        [0; 3],
        "looking after users makes nobody a user"
    );

    assert_eq!(
        browser
            .submit("/admin/sign-out", &[("everywhere", "yes")])
            .await
            .status,
        303
    );
    for browser in [&mut browser, &mut elsewhere] {
        assert_eq!(browser.get("/admin/users").await.status, 303);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_sign_in_at_a_provider_that_tells_its_endpoints_itself() {
    let staff_app =
        StaffApp::open_altered(|figment| figment.merge(("admin.provider", "discovered"))).await;
    staff_app.appoint("ada@example.com", Role::Admin).await;
    let mut browser = Browser::new(&staff_app.app.url);
    let page = browser.get("/admin/sign-in").await;
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains(&format!("form-action 'self' {}", staff_app.app.url)),
        "{policy}"
    );
    let mut browser = staff_app.signed_in("ada@example.com").await;
    assert_eq!(browser.get("/admin/users").await.status, 200);
    assert_eq!(
        staff_app.app.provider.calls(),
        0,
        "no tokens were asked about"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_sign_in_where_the_providers_tokens_hold_the_nonces_hash() {
    for rule in ["both_or_neither", "always"] {
        let staff_app = StaffApp::open_altered(|figment| {
            figment
                .merge(("idp.nonce_form", "sha256"))
                .merge(("idp.nonce", rule))
        })
        .await;
        staff_app.appoint("ada@example.com", Role::Admin).await;
        let mut browser = staff_app.signed_in("ada@example.com").await;
        assert_eq!(browser.get("/admin/users").await.status, 200, "{rule}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_works_once_within_ten_minutes_in_the_same_browser() {
    let staff_app = StaffApp::open().await;
    staff_app.appoint("ada@example.com", Role::Admin).await;
    let mut browser = Browser::new(&staff_app.app.url);
    let authorize = browser.begin().await;
    let callback = browser.choose(&authorize, "ada@example.com").await;

    let mut other = Browser::new(&staff_app.app.url);
    other.begin().await;
    assert_eq!(other.get(&callback).await.status, 400, "another browser");
    let cookies = browser.cookies.clone();
    assert_eq!(browser.get(&callback).await.status, 303);
    browser.cookies = cookies;
    assert_eq!(browser.get(&callback).await.status, 400, "twice");

    let authorize = browser.begin().await;
    let callback = browser.choose(&authorize, "ada@example.com").await;
    staff_app
        .app
        .database
        .run("UPDATE staff_sign_ins SET created_at = now() - interval '11 minutes'")
        .await;
    assert_eq!(browser.get(&callback).await.status, 400, "too late");

    let authorize = browser.begin().await;
    let callback = browser.choose(&authorize, "ada@example.com").await;
    let foreign = callback.replace("iss=http", "iss=https");
    assert_ne!(foreign, callback);
    assert_eq!(browser.get(&foreign).await.status, 400, "another issuer");

    let opened = "SELECT count(*) FROM staff_sessions";
    assert_eq!(staff_app.app.database.count(opened).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_staff_session_ends_when_idle_too_old_or_revoked() {
    let staff_app = StaffApp::open().await;
    staff_app.appoint("ada@example.com", Role::Admin).await;
    staff_app.appoint("grace@example.com", Role::Support).await;
    for sql in [
        "UPDATE staff_sessions SET last_used_at = now() - interval '31 minutes'",
        "UPDATE staff_sessions SET created_at = now() - interval '12 hours'",
        "DELETE FROM staff WHERE email = 'grace@example.com'",
    ] {
        let mut browser = staff_app.signed_in("grace@example.com").await;
        sqlx::query(sql)
            .execute(&staff_app.app.database.pool)
            .await
            .unwrap();
        assert_eq!(browser.get("/admin/users").await.status, 303, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_staff_sign_ins_is_limited_per_address() {
    let staff_app = StaffApp::open_altered(|figment| {
        figment
            .merge(("trusted_proxies", ["127.0.0.1"]))
            .merge(("rate_limit.enabled", true))
            .merge(("rate_limit.sign_in_per_minute", 3))
    })
    .await;
    staff_app.appoint("ada@example.com", Role::Admin).await;
    let mut flood = Browser::new(&staff_app.app.url);
    let mut statuses = Vec::new();
    for _ in 0..20 {
        let request = flood
            .request(Method::POST, "/admin/sign-in")
            .header("X-Forwarded-For", "192.0.2.1");
        let answer = flood.send(request).await;
        statuses.push(answer.status.as_u16());
        assert!(
            answer.status == 303 || answer.text.contains("Too many requests"),
            "{}",
            answer.text
        );
    }
    assert_eq!(
        (
            statuses[..3].to_vec(),
            statuses[3..].iter().all(|status| *status == 429)
        ),
        (vec![303; 3], true)
    );
    // The sign-ins of apps at the same address have a separate limit.
    for _ in 0..10 {
        let request = flood
            .request(Method::POST, "/api/v1/auth/oauth/idp")
            .header("X-Forwarded-For", "192.0.2.9");
        flood
            .send(
                request
                    .header("Content-Type", "application/json")
                    .body(r#"{"id_token": "a.b.c"}"#),
            )
            .await;
    }
    let request = flood
        .request(Method::POST, "/admin/sign-in")
        .header("X-Forwarded-For", "192.0.2.9");
    assert_eq!(flood.send(request).await.status, 303);
    // The real member signs in from another address.
    let landed = Browser::new(&staff_app.app.url)
        .sign_in("ada@example.com")
        .await;
    assert_eq!(landed.status, 303, "{}", landed.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_keeps_their_first_account_until_an_operator_resets_it() {
    let staff_app = StaffApp::open().await;
    let pool = &staff_app.app.database.pool;
    staff_app.appoint("root@example.com", Role::Admin).await;
    staff_app.appoint("ada@example.com", Role::Support).await;
    let come = async |subject: &str| {
        let mut browser = Browser::new(&staff_app.app.url);
        let who = [
            ("email", "ada@example.com"),
            ("verified", "true"),
            ("sub", subject),
        ];
        let landed = browser.sign_in_with(&who).await;
        (landed.status.as_u16(), browser, landed.text)
    };
    let (status, mut ada, _) = come("company-account").await;
    assert_eq!(status, 303);
    let (status, old, text) = come("private-account").await;
    assert_eq!(status, 403);
    assert!(
        text.contains("vestibule staff reset") && !old.cookies.contains_key(SESSION),
        "{text}"
    );
    assert_eq!(come("company-account").await.0, 303, "it is still theirs");
    let page = ada.get("/admin/staff").await.text;
    assert!(
        page.contains("company-account") && !page.contains("private-account"),
        "{page}"
    );
    let audit = ada.get("/admin/audit?what=security").await.text;
    assert!(
        audit.contains("another account with the e-mail address of a member"),
        "{audit}"
    );

    let by = Author::COMMAND_LINE;
    let ada_herself = Author {
        actor: Actor::Staff("ada@example.com"),
        ..by
    };
    assert_eq!(
        reset(
            &staff_app.app.database.service,
            "ada@example.com",
            ada_herself
        )
        .await
        .unwrap(),
        Changed::NotPermitted
    );
    staff_app.appoint("former@example.com", Role::Admin).await;
    let past =
        "UPDATE staff SET ends_at = now() - interval '1 second' WHERE email = 'former@example.com'";
    sqlx::query(past).execute(pool).await.unwrap();
    let former = Author {
        actor: Actor::Staff("former@example.com"),
        ..by
    };
    assert_eq!(
        reset(&staff_app.app.database.service, "ada@example.com", former)
            .await
            .unwrap(),
        Changed::NotPermitted
    );
    assert_eq!(
        reset(&staff_app.app.database.service, "nobody@example.com", by)
            .await
            .unwrap(),
        Changed::Already
    );
    assert_eq!(
        reset(&staff_app.app.database.service, "ada@example.com", by)
            .await
            .unwrap(),
        Changed::Done
    );
    assert_eq!(
        ada.get("/admin/users").await.status,
        303,
        "it ends their sessions"
    );
    assert_eq!(come("private-account").await.0, 303);
    assert_eq!(come("company-account").await.0, 403);
    // A member who gets access again is bound to the next account that signs in.
    assert_eq!(
        remove(&staff_app.app.database.service, "ada@example.com", by)
            .await
            .unwrap(),
        Changed::Done
    );
    staff_app.appoint("ada@example.com", Role::Support).await;
    assert_eq!(come("company-account").await.0, 303);
    let told = "SELECT count(*) FROM events WHERE kind = 'staff_identity_reset' AND detail->>'staff' = 'ada@example.com'";
    assert_eq!(staff_app.app.database.count(told).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_accounts_that_come_first_at_once_one_gets_in() {
    let staff_app = StaffApp::open().await;
    let origin = Origin::default();
    for round in 0..50_u8 {
        let email = format!("ada{round}@example.com");
        staff_app.appoint(&email, Role::Support).await;
        let come = async |subject: &str, hash: u8| {
            let candidate = Candidate {
                email: &email,
                provider: "idp",
                subject,
                unproven: None,
                before: None,
            };
            staff::open_session(
                &staff_app.app.database.service,
                candidate,
                &[hash; 32],
                &origin,
            )
            .await
            .unwrap()
        };
        let (one, other) = tokio::join!(come("one", 2 * round), come("other", 2 * round + 1));
        let both = [one, other];
        assert!(
            both.contains(&Ok(())) && both.contains(&Err(Stranger::AnotherIdentity)),
            "{both:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn at_google_staff_need_an_account_whose_address_google_answers_for() {
    let mut issuers = Vec::new();
    let staff_app = StaffApp::open_altered(|figment| {
        issuers.push(
            figment
                .extract_inner::<Vec<String>>("idp.issuers")
                .unwrap()
                .remove(0),
        );
        issuers.push("https://accounts.google.com".to_owned());
        figment
            .merge(("idp.issuers", &issuers))
            .merge(("idp.link", "verified"))
    })
    .await;
    for email in ["ada@example.com", "ada@gmail.com"] {
        staff_app.appoint(email, Role::Admin).await;
    }
    let mut browser = Browser::new(&staff_app.app.url);
    let refused = browser.sign_in("ada@example.com").await;
    assert_eq!(refused.status, 403);
    assert!(
        refused.text.contains("does not run the mailbox"),
        "{}",
        refused.text
    );
    let mut browser = staff_app.signed_in("ada@gmail.com").await;
    let audit = browser.get("/admin/audit?what=security").await.text;
    assert!(
        audit.contains("Google has verified the e-mail address only once"),
        "{audit}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_staff_session_replaces_the_browsers_and_a_sixth_the_oldest() {
    let staff_app = StaffApp::open().await;
    let count = "SELECT count(*) FROM staff_sessions";
    staff_app.appoint("ada@example.com", Role::Admin).await;
    staff_app.appoint("grace@example.com", Role::Support).await;
    let mut browser = staff_app.signed_in("ada@example.com").await;
    let before = browser.cookies.clone();
    // A successful sign-in ends the browser's session; a refused sign-in does not.
    assert_eq!(browser.sign_in("stranger@example.com").await.status, 403);
    assert_eq!(browser.get("/admin/users").await.status, 200);
    assert_eq!(browser.sign_in("grace@example.com").await.status, 303);
    assert_eq!(staff_app.app.database.count(count).await, 1);
    browser.cookies = before;
    assert_eq!(
        browser.get("/admin/users").await.status,
        303,
        "the earlier one is over"
    );

    let mut browsers = Vec::new();
    for _ in 0..6 {
        browsers.push(staff_app.signed_in("ada@example.com").await);
    }
    assert_eq!(
        staff_app.app.database.count(count).await,
        6,
        "Grace's, and five of Ada's"
    );
    assert_eq!(browsers[0].get("/admin/users").await.status, 303);
    assert_eq!(browsers[1].get("/admin/users").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_callbacks_and_strangers_count_as_no_server_error() {
    let staff_app = StaffApp::open().await;
    let mut stranger = Browser::new(&staff_app.app.url);
    for query in [
        "",
        "?state=x",
        "?code=x&state=y",
        "?error=access_denied&error_description=%3Csvg%20onload%3D1%3E&state=x",
        "?error=server_error&state=x",
        "?code=x&code=y&state=%00",
        "?state=%FF%FE&code=%F0",
        "?state[]=x&iss=https://evil.example",
    ] {
        let answer = stranger
            .get(&format!("/admin/sign-in/callback{query}"))
            .await;
        assert!(
            (400..=422).contains(&answer.status.as_u16()),
            "{query}: {}",
            answer.status
        );
        assert!(!answer.text.contains("onload"), "{query}: {}", answer.text);
    }
    let authorize = stranger.begin().await;
    let state = authorize
        .query_pairs()
        .find(|(name, _)| name == "state")
        .unwrap()
        .1;
    let made_up = format!("/admin/sign-in/callback?code=made-up&state={state}");
    assert_eq!(stranger.get(&made_up).await.status, 400);
    let refused = stranger.sign_in("stranger@example.com").await;
    assert_eq!(refused.status, 403);
    assert!(
        refused.text.contains("Nobody is on the list of staff yet"),
        "{}",
        refused.text
    );
    staff_app.appoint("ada@example.com", Role::Admin).await;
    let refused = stranger.sign_in("stranger@example.com").await;
    assert!(
        refused.text.contains("This account is not on the list"),
        "{}",
        refused.text
    );
    assert_eq!(stranger.post("/admin/nothing", &[]).await.status, 404);
    let metrics = stranger.get("/metrics").await.text;
    for error in ["internal_error", "service_unavailable"] {
        let line = format!("vestibule_problems_total{{error=\"{error}\"}} 0");
        assert!(
            metrics.lines().any(|known| known == line),
            "{line}: {metrics}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unconfigured_staff_sign_in_names_settings_and_raises_no_alert() {
    let staff_app =
        StaffApp::open_altered(|figment| figment.merge(("admin.provider", "second"))).await;
    let mut stranger = Browser::new(&staff_app.app.url);
    let page = stranger.get("/admin/sign-in").await.text;
    for setting in ["client_secret", "authorization_url", "token_url"] {
        assert!(
            page.contains(&format!("providers.second.{setting}")),
            "{setting}: {page}"
        );
    }
    let answer = stranger.post("/admin/sign-in", &[]).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("Retry-After")),
        (503, Some("60"))
    );
    let metrics = stranger.get("/metrics").await.text;
    assert!(
        metrics.contains("vestibule_problems_total{error=\"service_unavailable\"} 0\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("vestibule_problems_total{error=\"provider_disabled\"} 1\n"),
        "{metrics}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_sent_to_google_when_the_tokens_come_from_elsewhere() {
    let staff_app = StaffApp::open_altered(|figment| {
        figment.merge((
            "idp.authorization_url",
            "https://accounts.google.com/o/oauth2/v2/auth",
        ))
    })
    .await;
    let mut browser = Browser::new(&staff_app.app.url);
    let answer = browser.post("/admin/sign-in", &[]).await;
    assert_eq!(answer.status, 503);
    assert!(
        answer.text.contains("the operator has to correct them"),
        "{}",
        answer.text
    );
    let metrics = browser.get("/metrics").await.text;
    assert!(
        metrics.contains("vestibule_problems_total{error=\"internal_error\"} 0\n"),
        "{metrics}"
    );
}

/// An app, and its provider whose metadata has `changes` merged in.
struct Office {
    staff_app: StaffApp,
    provider: Provider,
    changes: Value,
}

impl Office {
    async fn open(settings: &Value) -> Self {
        let provider = Provider::start().await;
        let office = json!({
            "preset": "oidc", "issuer": provider.url(), "client_id": CLIENT_ID, "client_secret": "hush",
        });
        let office = with(office, settings);
        let staff_app = StaffApp::open_altered(|figment| {
            figment
                .merge(("providers.office", office))
                .merge(("admin.provider", "office"))
        })
        .await;
        staff_app.appoint("ada@example.com", Role::Admin).await;
        Self {
            staff_app,
            provider,
            changes: json!({}),
        }
    }

    /// Completes a sign-in: the `id_token` has these claims, and the userinfo endpoint responds as
    /// given.
    async fn arrive(&self, claims: &Value, userinfo: Behaviour) -> (u16, String, Vec<Recorded>) {
        let url = self.provider.url();
        let metadata = json!({
            "issuer": url, "jwks_uri": format!("{url}/keys"), "authorization_endpoint": format!("{url}/authorize"),
            "token_endpoint": format!("{url}/token"), "userinfo_endpoint": format!("{url}/userinfo"),
        });
        let metadata = with(metadata, &self.changes);
        self.provider.behave(Behaviour::Json(metadata.clone()));
        let mut browser = Browser::new(&self.staff_app.app.url);
        let authorize = browser.begin().await;
        let query: BTreeMap<String, String> = authorize.query_pairs().into_owned().collect();
        let whole = json!({
            "iss": url, "aud": CLIENT_ID, "sub": "ada", "iat": now(), "exp": now() + 300, "nonce": query["nonce"],
        });
        let id_token = Signer::Ec384.token(&with(whole, claims));
        let answer = json!({ "id_token": id_token, "access_token": "an-access-token", "token_type": "Bearer" });
        self.provider
            .behave_by(move |request| match request.path.as_str() {
                "/token" => Behaviour::Json(answer.clone()),
                "/keys" => Behaviour::Json(jwks(&[Signer::Ec384.jwk()])),
                "/userinfo" => userinfo.clone(),
                _ => Behaviour::Json(metadata.clone()),
            });
        let seen = self.provider.calls();
        let landed = browser
            .get(&format!(
                "/admin/sign-in/callback?code=x&state={}",
                query["state"]
            ))
            .await;
        let mut asked = self.provider.requests().split_off(seen);
        asked.retain(|request| request.path == "/userinfo");
        (landed.status.as_u16(), landed.text, asked)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_whose_address_is_in_userinfo_alone_sign_in() {
    let office = Office::open(&json!({})).await;
    let ada = json!({ "email": "ada@example.com" });
    let proven = json!({ "email": "ada@example.com", "email_verified": true });
    let userinfo = |changes: &Value| Behaviour::Json(with(json!({ "sub": "ada" }), changes));
    let (status, text, asked) = office.arrive(&json!({}), userinfo(&proven)).await;
    assert_eq!(status, 303, "{text}");
    let sent: Vec<_> = asked
        .iter()
        .map(|request| (request.method.as_str(), request.header("authorization")))
        .collect();
    assert_eq!(sent, [("GET", Some("Bearer an-access-token"))]);
    // Userinfo supplies only the verification: it counts for the same address alone.
    assert_eq!(office.arrive(&ada, userinfo(&proven)).await.0, 303);
    let other = json!({ "email": "eve@example.com", "email_verified": true });
    assert_eq!(office.arrive(&ada, userinfo(&other)).await.0, 403);
    // Claims in the `id_token` cause no userinfo request, and its refusal stands.
    let (status, _, asked) = office.arrive(&proven, userinfo(&other)).await;
    assert_eq!((status, asked.len()), (303, 0));
    let denied = json!({ "email": "ada@example.com", "email_verified": false });
    let (status, _, asked) = office.arrive(&denied, userinfo(&proven)).await;
    assert_eq!((status, asked.len()), (403, 0));
    // Userinfo does not verify the address either.
    for weak in [
        &ada,
        &denied,
        &json!({ "email": "ada@example.com", "email_verified": "yes" }),
    ] {
        assert_eq!(
            office.arrive(&json!({}), userinfo(weak)).await.0,
            403,
            "{weak}"
        );
    }
    let (status, text, _) = office.arrive(&json!({}), userinfo(&json!({}))).await;
    assert!(
        status == 403 && text.contains("did not say your e-mail address"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unusable_userinfo_or_another_subject_signs_no_staff_in() {
    let office = Office::open(&json!({})).await;
    let proven = json!({ "email": "ada@example.com", "email_verified": true });
    let of = |subject: Value| Behaviour::Json(with(proven.clone(), &json!({ "sub": subject })));
    for behaviour in [
        of(json!("eve")),
        of(json!("ADA")),
        of(json!("ada ")),
        of(json!(null)),
        of(json!(["ada"])),
        Behaviour::status(401),
        Behaviour::status(403),
        Behaviour::status(500),
        Behaviour::Redirect {
            code: 302,
            to: "/token".into(),
        },
        Behaviour::body("application/jwt", "e30.e30.c2ln"),
        Behaviour::body("text/html", "<!doctype html>"),
        Behaviour::body(
            "application/json",
            r#"{"sub":"ada","sub":"eve","email":"ada@example.com","email_verified":true}"#,
        ),
        Behaviour::body(
            "application/json",
            format!(r#"{{"sub":"ada","x":"{}"}}"#, "x".repeat(70_000)),
        ),
        Behaviour::NEVER_ANSWER,
    ] {
        let (status, text, _) = office.arrive(&json!({}), behaviour.clone()).await;
        assert_eq!(status, 503, "{behaviour:?}: {text}");
    }
    assert_eq!(
        office
            .staff_app
            .app
            .database
            .count("SELECT count(*) FROM staff_sessions")
            .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn userinfo_is_requested_only_for_staff_and_only_if_published() {
    let mut office = Office::open(&json!({})).await;
    let proven = json!({ "sub": "ada", "email": "ada@example.com", "email_verified": true });
    let app = &office.staff_app.app;
    let url = office.provider.url();
    let claims =
        json!({ "iss": url, "aud": CLIENT_ID, "sub": "ada", "iat": now(), "exp": now() + 300 });
    let published = json!({
        "issuer": url, "jwks_uri": format!("{url}/keys"), "userinfo_endpoint": format!("{url}/userinfo"),
    });
    office
        .provider
        .behave_by(move |request| match request.path.as_str() {
            "/keys" => Behaviour::Json(jwks(&[Signer::Ec384.jwk()])),
            _ => Behaviour::Json(published.clone()),
        });
    let body = json!({ "id_token": Signer::Ec384.token(&claims) });
    assert_eq!(
        app.post("office", &body).await.json()["user"]["email"],
        Value::Null
    );
    assert!(
        office
            .provider
            .requests()
            .iter()
            .all(|request| request.path != "/userinfo")
    );
    for unpublished in [
        json!({ "userinfo_endpoint": null }),
        json!({ "userinfo_endpoint": "" }),
    ] {
        office = Office {
            changes: unpublished,
            ..Office::open(&json!({})).await
        };
        let (status, text, asked) = office
            .arrive(&json!({}), Behaviour::Json(proven.clone()))
            .await;
        assert_eq!((status, asked.len()), (403, 0), "{text}");
        assert!(text.contains("did not say your e-mail address"), "{text}");
    }
}
