//! The reason why a session ended, and the clients that receive it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use serde_json::{Value, json};
use vestibule::admin::changes::{Change, Outcome};

use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::token::{at, claims, with};

/// Signs in at the default provider.
async fn sign_in(app: &App, subject: &str) -> Answer {
    app.sign_in(&claims(subject, &format!("{subject}@example.com")))
        .await
}

/// Makes a change as staff do.
async fn by_staff(app: &App, change: Change) {
    assert_eq!(app.by_staff(change).await, Some(Outcome::Done));
}

/// Presents a refresh token to both routes, and returns the reason that both give.
async fn refused(app: &App, token: &str) -> Option<String> {
    let answer = app.refresh(token).await;
    assert_problem(&answer, 401, "invalid_refresh_token");
    let reason = answer
        .json()
        .get("reason")
        .map(|reason| reason.as_str().unwrap().to_owned());
    let form = format!("grant_type=refresh_token&refresh_token={token}");
    let form_type = Some("application/x-www-form-urlencoded");
    let standard = app
        .send(Method::POST, "/api/v1/auth/token", form_type, form)
        .await
        .json();
    let described = standard["error_description"].as_str().unwrap();
    assert_eq!(standard["error"], "invalid_grant");
    match reason.as_deref() {
        // The first presentation ended the session, so the second reports its end.
        Some("refresh_token_reused") => {
            assert!(described.starts_with("session_ended: "), "{described}");
        }
        Some(reason) => assert!(described.starts_with(&format!("{reason}: ")), "{described}"),
        None => assert_eq!(
            described,
            answer.json()["detail"],
            "nothing more than to anybody"
        ),
    }
    reason
}

/// Returns a token with the session id of `of` and the secrets of `secrets`.
fn forged(of: &str, secrets: &str) -> String {
    let of = URL_SAFE_NO_PAD.decode(of).unwrap();
    let secrets = URL_SAFE_NO_PAD.decode(secrets).unwrap();
    URL_SAFE_NO_PAD.encode([&of[..16], &secrets[16..]].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_refresh_gives_its_reason_only_to_the_sessions_tokens() {
    let app = App::start().await;
    for expected in [
        "user_disabled",
        "user_disabled by staff",
        "session_expired",
        "session_ended",
        "session_ended by staff",
        "refresh_token_reused",
    ] {
        let subject = expected.replace(' ', "-");
        let opened = sign_in(&app, &subject).await;
        let second = app.refresh(&opened.refresh_token()).await;
        let stranger = sign_in(&app, &format!("not-{subject}")).await;
        let mut shown = second.refresh_token();
        match expected {
            "user_disabled" => {
                app.database
                    .run("UPDATE users SET disabled_at = now()")
                    .await;
            }
            "user_disabled by staff" => {
                by_staff(
                    &app,
                    Change::Disable {
                        user: opened.user(),
                    },
                )
                .await;
            }
            "session_expired" => {
                app.database
                    .run("UPDATE sessions SET expires_at = now() - interval '1 second'")
                    .await;
            }
            "session_ended" => {
                app.sign_out(&opened.access_token(), "local").await;
            }
            "session_ended by staff" => {
                by_staff(
                    &app,
                    Change::EndSessions {
                        user: opened.user(),
                    },
                )
                .await;
            }
            _ => {
                app.refresh(&second.refresh_token()).await;
                shown = opened.refresh_token();
            }
        }
        // Access tokens reveal session ids to your services.
        assert_eq!(
            refused(&app, &forged(&shown, &stranger.refresh_token())).await,
            None,
            "{expected}"
        );
        let reason = expected.split(' ').next().unwrap();
        assert_eq!(
            refused(&app, &shown).await.as_deref(),
            Some(reason),
            "{expected}"
        );
        let logged = "SELECT count(*) FROM events WHERE kind = 'refresh_token_replayed'";
        let replays = i64::from(expected == "refresh_token_reused");
        assert_eq!(app.database.count(logged).await, replays, "{expected}");
        if expected == "user_disabled" {
            assert_eq!(
                app.get(&second.access_token(), "/api/v1/me").await.status,
                401
            );
            app.database
                .run("UPDATE users SET disabled_at = NULL")
                .await;
            assert_eq!(
                app.refresh(&shown).await.status,
                200,
                "welcome again when enabled"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_refresh_gives_no_reason_after_its_row_is_deleted() {
    let app = App::start().await;
    for change in ["deleted", "merged", "unlinked"] {
        let opened = sign_in(&app, change).await;
        let other = sign_in(&app, &format!("not-{change}")).await;
        app.database
            .run("UPDATE users SET email_vouched = email_verified")
            .await;
        match change {
            "deleted" => {
                by_staff(
                    &app,
                    Change::Delete {
                        user: opened.user(),
                    },
                )
                .await;
            }
            "merged" => {
                by_staff(
                    &app,
                    Change::Merge {
                        from: opened.user(),
                        into: other.user(),
                    },
                )
                .await;
            }
            _ => {
                by_staff(
                    &app,
                    Change::Unlink {
                        identity: opened.identity(),
                        user: opened.user(),
                    },
                )
                .await;
            }
        }
        assert_eq!(
            refused(&app, &opened.refresh_token()).await,
            None,
            "{change}"
        );
    }
}

#[track_caller]
fn assert_over(answer: &Answer, reason: &str) {
    assert_problem(answer, 401, "invalid_access_token");
    assert_eq!(answer.json()["reason"], reason, "{}", answer.text);
    let challenge = r#"Bearer realm="vestibule", error="invalid_token""#;
    assert_eq!(answer.header("WWW-Authenticate"), Some(challenge));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_whose_answer_was_lost_can_be_repeated() {
    let app = App::start().await;
    let token = sign_in(&app, "ada").await.access_token();
    assert_eq!(app.delete(&token, "/api/v1/me").await.status, 204);
    for _ in 0..2 {
        assert_over(&app.delete(&token, "/api/v1/me").await, "user_deleted");
    }
    // The next sign-in with the same identity creates a different user.
    assert_eq!(sign_in(&app, "ada").await.outcome(), "created");
    assert_over(&app.delete(&token, "/api/v1/me").await, "user_deleted");
    // Without the event, the reason is unknown.
    app.database.run("DELETE FROM events").await;
    let unknown = app.get(&token, "/api/v1/me").await;
    assert_problem(&unknown, 401, "invalid_access_token");
    assert_eq!(unknown.json().get("reason"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_access_token_of_an_ended_session_gets_the_reason() {
    let app = App::start().await;
    for (change, reason) in [
        ("signed out", "session_ended"),
        ("unlinked", "session_ended"),
        ("disabled", "user_disabled"),
        ("merged", "user_merged"),
        ("merged into a user who was deleted", "user_merged"),
        ("deleted by staff", "user_deleted"),
        ("deleted after a merge", "user_deleted"),
    ] {
        let subject = change.replace(' ', "-");
        let second = with(at("second", &subject, ""), &json!({ "email": null }));
        let opened = sign_in(&app, &subject).await;
        let other = sign_in(&app, &format!("not-{subject}")).await;
        let me = opened.user();
        let grace = other.user();
        let token = opened.access_token();
        assert_eq!(app.link(&token, "second", &second).await.status, 201);
        match change {
            "signed out" => {
                app.sign_out(&token, "local").await;
            }
            "unlinked" => {
                let path = format!("/api/v1/me/identities/{}", opened.identity_id());
                assert_eq!(app.delete(&token, &path).await.status, 204);
            }
            "disabled" => by_staff(&app, Change::Disable { user: me }).await,
            "merged" => {
                by_staff(
                    &app,
                    Change::Merge {
                        from: me,
                        into: grace,
                    },
                )
                .await;
            }
            "merged into a user who was deleted" => {
                by_staff(
                    &app,
                    Change::Merge {
                        from: me,
                        into: grace,
                    },
                )
                .await;
                by_staff(&app, Change::Delete { user: grace }).await;
            }
            "deleted by staff" => by_staff(&app, Change::Delete { user: me }).await,
            _ => {
                by_staff(
                    &app,
                    Change::Merge {
                        from: grace,
                        into: me,
                    },
                )
                .await;
                by_staff(&app, Change::Delete { user: me }).await;
            }
        }
        for answer in [
            app.get(&token, "/api/v1/me").await,
            app.get(&token, "/api/v1/me/sessions").await,
            app.link(&token, "second", &second).await,
            app.delete(&token, "/api/v1/me").await,
        ] {
            assert_eq!(
                answer.json()["reason"],
                Value::from(reason),
                "{change}: {}",
                answer.text
            );
            let remains = (change == "merged").then(|| other.user_id());
            assert_eq!(
                answer.json()["merged_into"].as_str(),
                remains.as_deref(),
                "{change}"
            );
            assert_over(&answer, reason);
        }
    }
}
