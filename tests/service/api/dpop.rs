//! Sessions that are bound to a key of the device (RFC 9449).

use reqwest::Method;
use serde_json::{Value, json};
use vestibule::accounts::ProofNonces;
use vestibule::domain::dpop::Refused;
use vestibule::domain::staff::Role;
use vestibule::secret::Secret;

use crate::support::app::{Answer, App};
use crate::support::keys::{ISSUER, second_instance};
use crate::support::problem::assert_problem;
use crate::support::process::eventually;
use crate::support::race::{at_once, rounds};
use crate::support::signer::{Signer, base64};
use crate::support::staff_app::StaffApp;
use crate::support::token::{CLIENT_ID, claims, now, with};

const REFRESH: &str = "/api/v1/auth/refresh";
const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

/// Returns the current nonce of the services under test at a time.
fn nonce_at(now: i64) -> String {
    ProofNonces::new(&Secret::new("a secret key that only the tests use".to_owned()).into())
        .current(now)
}

fn sha256(text: &str) -> String {
    base64(aws_lc_rs::digest::digest(
        &aws_lc_rs::digest::SHA256,
        text.as_bytes(),
    ))
}

/// A proof before it is signed.
#[derive(Clone)]
struct Draft {
    header: Value,
    claims: Value,
}

impl Draft {
    fn new(key: Signer, method: &Method, path: &str, token: Option<&str>) -> Self {
        let mut claims = json!({
            "jti": base64(aws_lc_rs::rand::generate::<[u8; 16]>(&aws_lc_rs::rand::SystemRandom::new()).unwrap().expose()),
            "htm": method.as_str(), "htu": format!("{ISSUER}{path}"), "iat": now(), "nonce": nonce_at(now()),
        });
        if let Some(token) = token {
            claims["ath"] = sha256(token).into();
        }
        Self {
            header: json!({ "typ": "dpop+jwt", "alg": key.alg(), "jwk": key.jwk() }),
            claims,
        }
    }

    /// Returns a copy with another claim; `null` removes the claim.
    fn with(&self, name: &str, value: impl Into<Value>) -> Self {
        let claims = with(self.claims.clone(), &json!({ name: value.into() }));
        Self {
            claims,
            ..self.clone()
        }
    }

    fn signed(&self, key: Signer) -> String {
        key.token_with(&self.header, &self.claims)
    }
}

fn proof(key: Signer, method: &Method, path: &str, token: Option<&str>) -> String {
    Draft::new(key, method, path, token).signed(key)
}

/// Sends a request with these `DPoP` headers and this `Authorization` header.
async fn send(
    app: &App,
    method: &Method,
    path: &str,
    authorization: Option<String>,
    proofs: &[String],
    (content_type, body): (&str, String),
) -> Answer {
    let authorization = authorization.as_deref().map(|its| ("Authorization", its));
    let content_type = (!content_type.is_empty()).then_some(("Content-Type", content_type));
    let proofs = proofs.iter().map(|proof| ("DPoP", proof.as_str()));
    let headers: Vec<_> = authorization
        .into_iter()
        .chain(content_type)
        .chain(proofs)
        .collect();
    app.send_with(method.clone(), path, &headers, body).await
}

async fn sign_in_with(app: &App, proofs: &[String]) -> Answer {
    let body = json!({ "id_token": app.token(&claims("subject", "ada@example.com")) }).to_string();
    send(
        app,
        &Method::POST,
        "/api/v1/auth/oauth/idp",
        None,
        proofs,
        (JSON, body),
    )
    .await
}

pub async fn sign_in(app: &App, key: Signer) -> Answer {
    let answer = sign_in_with(
        app,
        &[proof(key, &Method::POST, "/api/v1/auth/oauth/idp", None)],
    )
    .await;
    assert!(answer.status.is_success(), "{}", answer.text);
    answer
}

async fn refresh_with(app: &App, token: &str, proofs: &[String]) -> Answer {
    let body = json!({ "refresh_token": token }).to_string();
    send(app, &Method::POST, REFRESH, None, proofs, (JSON, body)).await
}

pub async fn refresh(app: &App, key: Signer, token: &str) -> Answer {
    refresh_with(app, token, &[proof(key, &Method::POST, REFRESH, None)]).await
}

async fn me(app: &App, token: &str, proofs: &[String]) -> Answer {
    send(
        app,
        &Method::GET,
        "/api/v1/me",
        Some(format!("DPoP {token}")),
        proofs,
        ("", String::new()),
    )
    .await
}

async fn is_alive(app: &App, key: Signer, token: &str) -> bool {
    me(
        app,
        token,
        &[proof(key, &Method::GET, "/api/v1/me", Some(token))],
    )
    .await
    .status
        == 200
}

/// Returns the OAuth error for a refused proof.
fn error_of(cause: Refused) -> &'static str {
    match cause {
        Refused::Nonce => "use_dpop_nonce",
        Refused::Bearer | Refused::Unbound => "invalid_access_token",
        _ => "invalid_dpop_proof",
    }
}

#[track_caller]
fn assert_refused(answer: &Answer, status: u16, cause: Refused) {
    let error = error_of(cause);
    assert_eq!(
        (answer.status.as_u16(), answer.error().as_str()),
        (status, error),
        "{}",
        answer.text
    );
    let json = answer.json();
    let detail = json["detail"]
        .as_str()
        .or(json["error_description"].as_str())
        .unwrap();
    assert_eq!(
        detail,
        format!(
            "{} (RFC 9449, section {})",
            cause.sentence(),
            cause.section()
        )
    );
    assert_eq!(answer.header("Cache-Control"), Some("no-store"));
    assert!(answer.header("DPoP-Nonce").is_some(), "{}", answer.text);
}

/// Stops the service, so that all events are written, and returns the reasons of refused proofs.
/// Events without a user or a session are left out.
async fn refused(mut app: App) -> Vec<String> {
    app.stop().await;
    let sql = "SELECT reason FROM events WHERE kind = 'proof_refused' AND user_id IS NOT NULL AND session_id IS NOT NULL
               AND provider = 'idp' ORDER BY reason";
    sqlx::query_scalar(sql)
        .fetch_all(&app.database.pool)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_in_with_a_proof_binds_the_session_to_its_key() {
    let app = App::start().await;
    for key in [Signer::Ec, Signer::Ed] {
        let first = sign_in(&app, key).await;
        assert_eq!(first.json()["token_type"], "DPoP");
        let token = first.access_token();
        let jwk = key.jwk();
        let members = match key {
            Signer::Ec => json!({ "crv": "P-256", "kty": "EC", "x": jwk["x"], "y": jwk["y"] }),
            _ => json!({ "crv": "Ed25519", "kty": "OKP", "x": jwk["x"] }),
        };
        // `serde_json` sorts the members, as RFC 7638 demands.
        assert_eq!(
            first.payload()["cnf"],
            json!({ "jkt": sha256(&members.to_string()) })
        );
        let read = me(
            &app,
            &token,
            &[proof(key, &Method::GET, "/api/v1/me", Some(&token))],
        )
        .await;
        assert_eq!(read.json()["id"], first.user_id(), "{}", read.text);
        assert_eq!(read.header("DPoP-Nonce"), Some(nonce_at(now()).as_str()));
        let second = refresh(&app, key, &first.refresh_token()).await;
        assert_eq!(
            (second.status.as_u16(), second.json()["token_type"].as_str()),
            (200, Some("DPoP"))
        );
        assert!(
            is_alive(&app, key, &second.access_token()).await,
            "the next token is bound, too"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_without_a_key_stays_as_it_was() {
    let app = App::start().await;
    let first = sign_in_with(&app, &[]).await;
    assert_eq!(first.json()["token_type"], "Bearer");
    assert_eq!(first.header("DPoP-Nonce"), None);
    let unbound = app
        .database
        .count("SELECT count(*) FROM sessions WHERE jkt IS NULL")
        .await;
    assert_eq!(unbound, 1);
    // A proof at a later refresh does not bind the session, and a faulty proof is ignored.
    let second = refresh(&app, Signer::Ec, &first.refresh_token()).await;
    assert_eq!(second.json()["token_type"], "Bearer", "{}", second.text);
    let third = refresh_with(&app, &second.refresh_token(), &["faulty".into()]).await;
    assert_eq!(
        app.get(&third.access_token(), "/api/v1/me").await.status,
        200,
        "{}",
        third.text
    );
    let token = third.access_token();
    let as_bound = me(
        &app,
        &token,
        &[proof(Signer::Ec, &Method::GET, "/api/v1/me", Some(&token))],
    )
    .await;
    assert_refused(&as_bound, 401, Refused::Unbound);
    assert_eq!(refused(app).await, Vec::<String>::new());
}

/// Violations of RFC 9449: name, section, cause, and the proofs that cause it.
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn cases(
    path: &str,
    method: &Method,
    token: Option<&str>,
) -> Vec<(&'static str, &'static str, Refused, Vec<String>)> {
    let good = Draft::new(Signer::Ec, method, path, token);
    let sound = good.signed(Signer::Ec);
    let header = |name: &str, value: Value| {
        let mut draft = good.clone();
        draft.header[name] = value;
        vec![draft.signed(Signer::Ec)]
    };
    let claim = |name: &str, value: Value| vec![good.with(name, value).signed(Signer::Ec)];
    let without = |name: &str| claim(name, Value::Null);
    let of = |key: Signer, alg: &str| {
        let mut draft = good.clone();
        (draft.header["jwk"], draft.header["alg"]) = (key.jwk(), alg.into());
        vec![draft.signed(key)]
    };
    let with_private = |member: &str| {
        let mut jwk = Signer::Ec.jwk();
        jwk[member] = "AQAB".into();
        header("jwk", jwk)
    };
    let forged = {
        let mut window = good.claims["nonce"].as_str().unwrap().to_owned();
        let later = nonce_at(now() + 120);
        window.replace_range(..6, &later[..6]);
        window
    };
    let (head, rest) = sound.split_once('.').unwrap();
    let duplicate = good.claims.to_string().replacen('{', r#"{"jti":"a","#, 1);
    let duplicate = Signer::Ec.token_of(&good.header.to_string(), &duplicate);
    let changed = base64(good.claims.to_string().replace("\"jti\":\"", "\"jti\":\"x"));
    let changed = format!("{head}.{changed}.{}", rest.split_once('.').unwrap().1);
    let other_secret = ProofNonces::new(&Secret::new("another".to_owned()).into()).current(now());
    let mut cases = vec![
        ("no proof", "7.1", Refused::Missing, vec![]),
        (
            "two proofs",
            "4.3",
            Refused::Repeated,
            vec![sound.clone(), sound.clone()],
        ),
        ("no JWT", "4.3", Refused::Malformed, vec!["proof".into()]),
        (
            "two parts",
            "4.3",
            Refused::Malformed,
            vec![format!("{head}.e30")],
        ),
        (
            "four parts",
            "4.3",
            Refused::Malformed,
            vec![format!("{sound}.e30")],
        ),
        ("a member twice", "4.3", Refused::Malformed, vec![duplicate]),
        (
            "too long",
            "4.3",
            Refused::Malformed,
            claim("more", "x".repeat(4096).into()),
        ),
        (
            "crit",
            "4.3",
            Refused::Malformed,
            header("crit", json!(["b64"])),
        ),
        (
            "typ of another JWT",
            "4.2",
            Refused::Type,
            header("typ", "JWT".into()),
        ),
        (
            "typ of an access token",
            "4.2",
            Refused::Type,
            header("typ", "at+jwt".into()),
        ),
        (
            "alg none",
            "4.3",
            Refused::Algorithm,
            header("alg", "none".into()),
        ),
        (
            "alg symmetric",
            "4.3",
            Refused::Algorithm,
            header("alg", "HS256".into()),
        ),
        (
            "alg RSA",
            "4.3",
            Refused::Algorithm,
            of(Signer::Rsa, "RS256"),
        ),
        ("no key", "4.2", Refused::Key, header("jwk", Value::Null)),
        (
            "key of another algorithm",
            "4.2",
            Refused::Key,
            of(Signer::Ed, "ES256"),
        ),
        ("private key", "4.3", Refused::PrivateKey, with_private("d")),
        (
            "symmetric key",
            "4.3",
            Refused::PrivateKey,
            with_private("k"),
        ),
        ("no jti", "4.2", Refused::Claims, without("jti")),
        ("empty jti", "4.2", Refused::Claims, claim("jti", "".into())),
        ("no htm", "4.2", Refused::Claims, without("htm")),
        ("no htu", "4.2", Refused::Claims, without("htu")),
        ("no iat", "4.2", Refused::Claims, without("iat")),
        (
            "iat as text",
            "4.2",
            Refused::Claims,
            claim("iat", "now".into()),
        ),
        (
            "another method",
            "4.3",
            Refused::Method,
            claim("htm", "PATCH".into()),
        ),
        (
            "method in lower case",
            "4.3",
            Refused::Method,
            claim("htm", method.as_str().to_lowercase().into()),
        ),
        (
            "another path",
            "4.3",
            Refused::Url,
            claim("htu", format!("{ISSUER}/api/v1/me/sessions").into()),
        ),
        (
            "another host",
            "4.3",
            Refused::Url,
            claim("htu", format!("http://localhost:8000{path}").into()),
        ),
        (
            "another scheme",
            "4.3",
            Refused::Url,
            claim("htu", format!("https://127.0.0.1:8000{path}").into()),
        ),
        ("iat without nonce", "8", Refused::Nonce, without("nonce")),
        (
            "expired nonce",
            "8",
            Refused::Nonce,
            claim("nonce", nonce_at(now() - 360).into()),
        ),
        (
            "nonce of another window",
            "8",
            Refused::Nonce,
            claim("nonce", forged.into()),
        ),
        (
            "nonce of another service",
            "8",
            Refused::Nonce,
            claim("nonce", other_secret.into()),
        ),
        (
            "signature by another key",
            "4.3",
            Refused::Signature,
            vec![good.signed(Signer::OtherEc)],
        ),
        (
            "signature of other claims",
            "4.3",
            Refused::Signature,
            vec![changed],
        ),
    ];
    if token.is_some() {
        cases.extend([
            ("no ath", "4.3", Refused::AccessToken, without("ath")),
            (
                "ath of another token",
                "4.3",
                Refused::AccessToken,
                claim("ath", sha256("other").into()),
            ),
        ]);
    }
    cases
}

#[tokio::test(flavor = "multi_thread")]
async fn each_rfc_9449_violation_at_a_resource_is_refused_without_harm() {
    let app = App::start().await;
    let token = sign_in(&app, Signer::Ec).await.access_token();
    for (case, section, cause, proofs) in cases("/api/v1/me", &Method::GET, Some(&token)) {
        println!("{case}");
        assert_eq!(cause.section(), section);
        let answer = me(&app, &token, &proofs).await;
        assert_refused(&answer, 401, cause);
        let challenge = format!(
            r#"DPoP realm="vestibule", error="{}", algs="ES256 EdDSA""#,
            error_of(cause)
        );
        assert_eq!(answer.header("WWW-Authenticate"), Some(challenge.as_str()));
    }
    let others = proof(Signer::OtherEc, &Method::GET, "/api/v1/me", Some(&token));
    assert_refused(&me(&app, &token, &[others]).await, 401, Refused::OtherKey);
    let as_bearer = app.get(&token, "/api/v1/me").await;
    assert_refused(&as_bearer, 401, Refused::Bearer);
    assert_eq!(
        as_bearer.header("WWW-Authenticate"),
        Some(r#"DPoP realm="vestibule", error="invalid_token", algs="ES256 EdDSA""#)
    );
    assert!(is_alive(&app, Signer::Ec, &token).await);
    assert_eq!(
        refused(app).await.len(),
        20,
        "as many of one network as in any minute"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_rfc_9449_violation_at_token_endpoints_leaves_the_session_usable() {
    let app = App::start().await;
    let token = sign_in(&app, Signer::Ec).await.refresh_token();
    for (path, status) in [
        (REFRESH, 401),
        ("/api/v1/auth/token", 400),
        ("/api/v1/auth/revoke", 400),
        ("/api/v1/auth/logout", 401),
    ] {
        let body = match path {
            "/api/v1/auth/token" => (
                FORM,
                format!("grant_type=refresh_token&refresh_token={token}"),
            ),
            "/api/v1/auth/revoke" => (FORM, format!("token={token}")),
            _ => (JSON, json!({ "refresh_token": token }).to_string()),
        };
        for (case, _, cause, proofs) in cases(path, &Method::POST, None) {
            println!("{path}: {case}");
            let answer = send(
                &app,
                &Method::POST,
                path,
                None,
                &proofs,
                (body.0, body.1.clone()),
            )
            .await;
            assert_refused(&answer, status, cause);
        }
        let others = proof(Signer::OtherEc, &Method::POST, path, None);
        let answer = send(
            &app,
            &Method::POST,
            path,
            None,
            &[others],
            (body.0, body.1.clone()),
        )
        .await;
        assert_refused(&answer, status, Refused::OtherKey);
    }
    let metrics = app.send(Method::GET, "/metrics", None, "").await.text;
    for line in [
        "refreshes_total{outcome=\"unproven\"}",
        "proofs_total{outcome=\"proof_missing\"}",
    ] {
        let counted = metrics
            .lines()
            .any(|found| found.contains(line) && !found.ends_with(" 0"));
        assert!(counted, "{line}\n{metrics}");
    }
    assert_eq!(refresh(&app, Signer::Ec, &token).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_with_an_invalid_proof_never_reaches_the_provider() {
    let app = App::start().await;
    let path = "/api/v1/auth/oauth/idp";
    for (case, _, cause, proofs) in cases(path, &Method::POST, None) {
        if cause == Refused::Missing {
            continue;
        }
        println!("{case}");
        assert_refused(&sign_in_with(&app, &proofs).await, 401, cause);
    }
    assert_eq!(app.provider.requests().len(), 0);
    assert_eq!(app.database.rows().await, [0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_proof_for_an_unknown_provider_is_not_recorded() {
    let mut app = App::start().await;
    for name in ["%00", "%1B", "unknown", &"x".repeat(3000)] {
        let path = format!("/api/v1/auth/oauth/{name}");
        let answer = send(
            &app,
            &Method::POST,
            &path,
            None,
            &["x".into()],
            (JSON, "{}".into()),
        )
        .await;
        assert_problem(&answer, 404, "provider_not_found");
    }
    app.stop().await;
    assert_eq!(app.database.count("SELECT count(*) FROM events").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn htu_is_compared_normalized_and_without_query_and_fragment() {
    let app = App::start().await;
    let token = sign_in(&app, Signer::Ec).await.access_token();
    for htu in [
        "HTTP://127.0.0.1:8000/api/v1/me",
        "http://127.0.0.1:8000/api/v1/me?a=b#c",
        "http://127.0.0.1:8000/api/v1/./me",
    ] {
        let draft =
            Draft::new(Signer::Ec, &Method::GET, "/api/v1/me", Some(&token)).with("htu", htu);
        // The phone's clock is irrelevant, since the nonce gives the time.
        let proof = draft.with("iat", 1).signed(Signer::Ec);
        assert_eq!(me(&app, &token, &[proof]).await.status, 200, "{htu}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_a_nonce_gets_one_and_repeats_the_request() {
    let app = App::start().await;
    let path = "/api/v1/auth/oauth/idp";
    let draft = Draft::new(Signer::Ec, &Method::POST, path, None);
    let challenged =
        sign_in_with(&app, &[draft.with("nonce", Value::Null).signed(Signer::Ec)]).await;
    assert_refused(&challenged, 401, Refused::Nonce);
    let draft = draft.with("nonce", challenged.header("DPoP-Nonce").unwrap());
    let answer = sign_in_with(&app, &[draft.signed(Signer::Ec)]).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    assert_eq!(
        answer.header("DPoP-Nonce"),
        Some(nonce_at(now()).as_str()),
        "the next one"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nonces_are_valid_across_instances_and_with_the_previous_secret_key() {
    let first = App::start().await;
    let second = second_instance(&first).await;
    let token = sign_in(&first, Signer::Ec).await.access_token();
    let draft = Draft::new(Signer::Ec, &Method::GET, "/api/v1/me", Some(&token));
    let with = |nonce: &str| [draft.with("nonce", nonce).signed(Signer::Ec)];
    let given = me(&first, &token, &with("none")).await;
    assert_eq!(
        me(&second, &token, &with(given.header("DPoP-Nonce").unwrap()))
            .await
            .status,
        200
    );
    let both = [
        "a new secret key that only the tests use",
        "a secret key that only the tests use",
    ];
    let third = App::start_beside(&first.database, |figment| {
        figment.merge(("secret_key", both))
    })
    .await;
    let given_by_third = me(&third, &token, &with("none")).await;
    assert_ne!(
        given_by_third.header("DPoP-Nonce"),
        given.header("DPoP-Nonce")
    );
    for nonce in [&given, &given_by_third].map(|answer| answer.header("DPoP-Nonce").unwrap()) {
        assert_eq!(me(&third, &token, &with(nonce)).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stolen_tokens_are_refused_without_the_key_and_the_owner_continues() {
    let app = App::start().await;
    let first = sign_in(&app, Signer::Ec).await;
    let second = refresh(&app, Signer::Ec, &first.refresh_token()).await;
    let third = refresh(&app, Signer::Ec, &second.refresh_token()).await;
    // A backup holds an old token, whose reuse would have ended the session.
    let with_a_backup = refresh_with(&app, &first.refresh_token(), &[]).await;
    assert_refused(&with_a_backup, 401, Refused::Missing);
    // A thief who reads the live token has a different key.
    let polling = refresh(&app, Signer::OtherEc, &third.refresh_token()).await;
    assert_refused(&polling, 401, Refused::OtherKey);
    // A log holds the access token.
    let from_a_log = app.get(&third.access_token(), "/api/v1/me").await;
    assert_refused(&from_a_log, 401, Refused::Bearer);
    let body = json!({ "refresh_token": third.refresh_token() });
    let signed_out = app.post_to("/api/v1/auth/logout", &body).await;
    assert_refused(&signed_out, 401, Refused::Missing);
    let fourth = refresh(&app, Signer::Ec, &third.refresh_token()).await;
    assert_eq!(fourth.status, 200, "{}", fourth.text);
    assert!(is_alive(&app, Signer::Ec, &fourth.access_token()).await);
    assert_eq!(
        refused(app).await,
        [
            "proof_bearer",
            "proof_missing",
            "proof_missing",
            "proof_other_key"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replayed_proof_gives_the_thief_nothing_that_he_can_use() {
    let app = App::start().await;
    let token = sign_in(&app, Signer::Ec).await.refresh_token();
    let seen = [proof(Signer::Ec, &Method::POST, REFRESH, None)];
    let owner = refresh_with(&app, &token, &seen).await;
    let thief = refresh_with(&app, &token, &seen).await;
    assert_eq!(
        thief.refresh_token(),
        owner.refresh_token(),
        "the same successor"
    );
    // The proof is only for the refresh, and the thief has no key for another proof.
    assert_refused(
        &me(&app, &thief.access_token(), &seen).await,
        401,
        Refused::Method,
    );
    let next = refresh_with(&app, &thief.refresh_token(), &[]).await;
    assert_refused(&next, 401, Refused::Missing);
    assert_eq!(
        refresh(&app, Signer::Ec, &owner.refresh_token())
            .await
            .status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thief_who_refreshes_at_once_with_the_owner_gets_nothing() {
    let app = App::start().await;
    let mut token = sign_in(&app, Signer::Ec).await.refresh_token();
    for round in 0..rounds() {
        let thiefs = if round % 2 == 0 {
            vec![]
        } else {
            vec![proof(Signer::OtherEc, &Method::POST, REFRESH, None)]
        };
        let (owner, thief) = at_once(
            refresh(&app, Signer::Ec, &token),
            refresh_with(&app, &token, &thiefs),
        )
        .await;
        assert_eq!(
            [owner.status, thief.status],
            [200, 401],
            "{} {}",
            owner.text,
            thief.text
        );
        token = owner.refresh_token();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_or_revoking_a_bound_session_needs_its_proof() {
    let app = App::start().await;
    for path in ["/api/v1/auth/revoke", "/api/v1/auth/logout"] {
        for by_access in [true, false] {
            let session = sign_in(&app, Signer::Ec).await;
            let access = session.access_token();
            let token = session.refresh_token();
            let (authorization, body) = match (path, by_access) {
                ("/api/v1/auth/logout", true) => {
                    (Some(format!("DPoP {access}")), ("", String::new()))
                }
                ("/api/v1/auth/logout", false) => {
                    (None, (JSON, json!({ "refresh_token": token }).to_string()))
                }
                (_, true) => (None, (FORM, format!("token={access}"))),
                (_, false) => (None, (FORM, format!("token={token}"))),
            };
            let shown = authorization.is_some().then_some(access.as_str());
            for (key, ended) in [(Signer::OtherEc, false), (Signer::Ec, true)] {
                let proofs = [proof(key, &Method::POST, path, shown)];
                let answer = send(
                    &app,
                    &Method::POST,
                    path,
                    authorization.clone(),
                    &proofs,
                    body.clone(),
                )
                .await;
                assert_eq!(
                    answer.status.is_success(),
                    ended,
                    "{path} {by_access}: {}",
                    answer.text
                );
                assert_eq!(
                    !is_alive(&app, Signer::Ec, &access).await,
                    ended,
                    "{path} {by_access}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn binding_is_configured_globally_and_overridden_per_client_id() {
    let path = "/api/v1/auth/oauth/idp";
    for (binding, of_client, unbound, bound) in [
        ("off", None, 201, Some("Bearer")),
        ("optional", None, 201, Some("DPoP")),
        ("required", None, 401, Some("DPoP")),
        ("required", Some("optional"), 201, Some("DPoP")),
        ("off", Some("required"), 401, Some("DPoP")),
        ("optional", Some("off"), 201, Some("Bearer")),
    ] {
        let app = App::start_with(|figment| {
            let figment = figment.merge(("session.binding", binding));
            match of_client {
                Some(own) => {
                    figment.merge(("idp.clients", json!({ CLIENT_ID: { "binding": own } })))
                }
                None => figment,
            }
        })
        .await;
        let without = sign_in_with(&app, &[]).await;
        assert_eq!(
            without.status, unbound,
            "{binding} {of_client:?}: {}",
            without.text
        );
        if unbound == 401 {
            assert_refused(&without, 401, Refused::Missing);
            assert_eq!(
                app.database.rows().await,
                [0, 0, 0],
                "{binding} {of_client:?}"
            );
        }
        let with = sign_in_with(&app, &[proof(Signer::Ec, &Method::POST, path, None)]).await;
        assert_eq!(
            with.json()["token_type"].as_str(),
            bound,
            "{binding} {of_client:?}: {}",
            with.text
        );
        let faulty = sign_in_with(&app, &["faulty".into()]).await;
        assert_eq!(
            faulty.status,
            if (binding, of_client) == ("off", None) {
                200
            } else {
                401
            },
            "{binding}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_see_bound_sessions_and_reasons_for_refused_proofs() {
    let staff_app = StaffApp::open().await;
    staff_app.appoint("staff@example.com", Role::Support).await;
    let mut browser = staff_app.signed_in("staff@example.com").await;
    let minted = browser
        .get("/dev/idp/mint?email=ada@example.com")
        .await
        .text;
    let body = json!({ "id_token": minted.trim() }).to_string();
    let path = "/api/v1/auth/oauth/idp";
    let draft = Draft::new(Signer::Ec, &Method::POST, path, None).with("htu", browser.url(path));
    let unbound = send(
        &staff_app.app,
        &Method::POST,
        path,
        None,
        &[],
        (JSON, body.clone()),
    )
    .await;
    let page = format!("/admin/users/{}", unbound.user_id());
    assert!(
        !browser
            .get(&page)
            .await
            .text
            .contains("bound to its device")
    );
    let session = send(
        &staff_app.app,
        &Method::POST,
        path,
        None,
        &[draft.signed(Signer::Ec)],
        (JSON, body),
    )
    .await;
    assert_refused(
        &me(&staff_app.app, &session.access_token(), &[]).await,
        401,
        Refused::Missing,
    );
    let cause = format!(
        "needs a proof by the device’s key, and {}.",
        Refused::Missing.sentence()
    );
    let shown = eventually("the event of the refused proof", async || {
        let page = browser.get(&page).await.text;
        page.contains(&cause).then_some(page)
    })
    .await;
    assert_eq!(
        shown.matches("bound to its device</p>").count(),
        1,
        "{shown}"
    );
    assert!(
        shown.contains("A request with a token of a session was refused"),
        "{shown}"
    );
}
