//! A user with two accounts proves both and merges them.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;
use vestibule::accounts::account;
use vestibule::accounts::account::{MergeRequest, Merging, NotMerged};
use vestibule::admin::changes::decision::Refused;
use vestibule::admin::changes::{Change, Outcome};
use vestibule::clock;
use vestibule::domain::actor::Origin;

use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::race::{at_once, rounds};
use crate::support::receiver::queued;
use crate::support::token::{self, claims, now, with};

const MERGE: &str = "/api/v1/me/merge";

/// Returns the claims of an account at a further provider.
fn at(provider: &str, subject: &str, changes: &Value) -> Value {
    with(
        token::at(provider, subject, &format!("{subject}@{provider}.example")),
        changes,
    )
}

fn ada() -> Value {
    claims("ada", "ada@example.com")
}

fn other() -> Value {
    at("second", "other", &json!({}))
}

async fn ask(app: &App, signed_in: &Answer, body: &Value) -> Answer {
    app.as_user(&signed_in.access_token(), Method::POST, MERGE, Some(body))
        .await
}

/// Requests a merge with the user of an identity at the provider `second`.
async fn merge(app: &App, signed_in: &Answer, claims: &Value, dry_run: bool) -> Answer {
    let body = json!({ "provider": "second", "id_token": app.token(claims), "dry_run": dry_run });
    ask(app, signed_in, &body).await
}

/// Returns the surviving user's id, which the merged user's session is given.
#[track_caller]
fn merged_into(answer: &Answer) -> String {
    assert_eq!(answer.json()["reason"], "user_merged", "{}", answer.text);
    answer.json()["merged_into"].as_str().unwrap().to_owned()
}

/// Returns all stored data except refused sign-ins.
async fn everything(app: &App) -> String {
    app.database.everything(&["sign_in_refused"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_two_proofs_previews_and_performs_a_merge() {
    let app = App::start().await;
    let pool = &app.database.pool;
    run!(
        pool,
        "INSERT INTO webhooks (name, events) VALUES ('other', '{user.merged}')"
    );
    let mine = app.sign_in(&ada()).await;
    let gone = app.sign_in_at("second", &other()).await;
    let again = app.sign_in_at("second", &other()).await;
    let third = at("third", "other-3", &json!({}));
    assert_eq!(
        app.link(&gone.access_token(), "third", &third).await.status,
        201
    );

    let before = everything(&app).await;
    let shown = merge(&app, &mine, &other(), true).await;
    assert_eq!(shown.status, 200, "{}", shown.text);
    assert_eq!(everything(&app).await, before, "a dry run changes nothing");
    let identity = |provider: &str, subject: &str| json!({ "provider": provider, "subject": subject, "email": format!("{subject}@{provider}.example") });
    let mut remaining = mine.json()["user"].take();
    remaining.as_object_mut().unwrap().remove("claims");
    let mut expected = json!({
        "applied": false, "user": remaining,
        "identities": [identity("second", "other"), identity("third", "other-3")],
        "claims": {}, "ended_sessions": 2, "merged": { "user_id": gone.user_id(), "claims": {} },
    });
    assert_eq!(shown.json(), expected);

    let merged = merge(&app, &mine, &other(), false).await;
    expected["applied"] = true.into();
    assert_eq!(
        (merged.status.as_u16(), merged.json()),
        (200, expected),
        "what was shown has happened"
    );
    let me = app.get(&mine.access_token(), "/api/v1/me").await.json();
    let number = me["identities"].as_array().unwrap().len();
    assert_eq!(
        (&me["id"], number),
        (&mine.user_id().into(), 3),
        "the session goes on: {me}"
    );
    assert_eq!(app.database.rows().await, [1, 3, 1]);
    for (provider, claims) in [("second", &other()), ("third", &third)] {
        let back = app.sign_in_at(provider, claims).await;
        assert_eq!(
            (back.outcome(), back.user_id()),
            ("signed_in".into(), mine.user_id())
        );
    }

    // Until they expire, the merged user's access tokens lead to the surviving user, also after a
    // later merge by staff.
    for session in [&gone, &again] {
        assert_problem(
            &app.refresh(&session.refresh_token()).await,
            401,
            "invalid_refresh_token",
        );
        for method in [Method::GET, Method::DELETE] {
            let told = app
                .as_user(&session.access_token(), method, "/api/v1/me", None)
                .await;
            assert_problem(&told, 401, "invalid_access_token");
            assert_eq!(merged_into(&told), mine.user_id());
        }
    }
    let last = app
        .sign_in_at("fourth", &at("fourth", "last", &json!({})))
        .await;
    assert_eq!(
        app.by_staff(Change::Merge {
            from: mine.user(),
            into: last.user()
        })
        .await,
        Some(Outcome::Done)
    );
    for session in [&gone, &mine] {
        assert_eq!(
            merged_into(&app.get(&session.access_token(), "/api/v1/me").await),
            last.user_id()
        );
    }

    // Both events name the other user and have no actor, since the user made the merge.
    let events: Vec<Value> = values!(pool, "SELECT jsonb_build_array(user_id, reason, detail, actor, session_id IS NOT NULL AND ip IS NOT NULL, email)
         FROM events WHERE kind = 'users_merged' ORDER BY id LIMIT 2");
    let from = gone.user_id();
    let into = mine.user_id();
    let expected = [
        json!([into, null, { "from": from }, null, true, null]),
        json!([from, "to_another", { "into": into }, null, true, "other@second.example"]),
    ];
    assert_eq!(events, expected);
    let message = &queued(pool).await[0]["data"];
    assert_eq!(
        (&message["from"], &message["into"]),
        (&from.into(), &into.into())
    );
    assert_eq!(message["user"]["identities"].as_array().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_adds_only_missing_claims_and_lifts_no_restriction() {
    let app = App::start().await;
    let pool = &app.database.pool;
    run!(
        pool,
        "INSERT INTO webhooks (name, events) VALUES ('other', '{user.merged}')"
    );
    let mine = app.sign_in(&ada()).await;
    let gone = app.sign_in_at("second", &other()).await;
    let set = async |answer: &Answer, claims: &Value| {
        let change = "UPDATE users SET claims = $2, updated_at = now() WHERE id = $1";
        sqlx::query(change)
            .bind(answer.user())
            .bind(claims)
            .execute(pool)
            .await
            .unwrap();
    };
    let long = json!({ "note": "x".repeat(980) });
    set(&mine, &json!({ "roles": ["editor"] })).await;
    set(&gone, &long).await;
    let before = everything(&app).await;
    for dry_run in [true, false] {
        let refused = merge(&app, &mine, &other(), dry_run).await;
        assert_problem(&refused, 400, "invalid_request");
        assert!(
            refused
                .text
                .contains("the claims of both users are too long"),
            "{}",
            refused.text
        );
    }
    let by_hand = Change::Merge {
        from: gone.user(),
        into: mine.user(),
    };
    assert_eq!(
        app.by_staff(by_hand).await,
        Some(Outcome::Refused(Refused::ClaimsTooLong))
    );
    assert_eq!(everything(&app).await, before);

    let theirs = json!({ "restricted": true, "roles": ["admin"], "level": null });
    let both = json!({ "restricted": true, "roles": ["editor"], "level": null });
    set(&gone, &theirs).await;
    for dry_run in [true, false] {
        let merged = merge(&app, &mine, &other(), dry_run).await;
        let answer = merged.json();
        let told = (&both, &theirs);
        assert_eq!(
            (&answer["claims"], &answer["merged"]["claims"]),
            told,
            "{dry_run}: {}",
            merged.text
        );
    }
    let payload = app.refresh(&mine.refresh_token()).await.payload();
    assert_eq!(
        (&payload["restricted"], &payload["roles"]),
        (&json!(true), &json!(["editor"]))
    );
    let message = &queued(pool).await[0]["data"];
    assert_eq!(
        (&message["user"]["claims"], &message["from_claims"]),
        (&both, &theirs)
    );
    let detail = "SELECT detail FROM events WHERE kind = 'users_merged' AND reason IS NULL";
    let detail: Value = app.database.value(detail).await;
    assert_eq!(
        detail,
        json!({ "from": gone.user_id(), "claims": both, "from_claims": theirs })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_remains_is_as_the_dry_run_says_whatever_each_had() {
    let app = App::start().await;
    let nothing = json!({ "email": null, "name": null, "picture": null });
    let unproven = json!({ "email_verified": false, "name": null });
    let whole = json!({ "name": "Whole", "picture": "https://pictures.example/1" });
    let mut number = 0;
    for mine in [&nothing, &unproven, &whole] {
        for (theirs, told) in [
            (&nothing, None),
            (&nothing, Some("Own word")),
            (&unproven, None),
            (&whole, None),
        ] {
            number += 1;
            let my_claims = at("third", &format!("mine-{number}"), mine);
            let their_claims = at("second", &format!("theirs-{number}"), theirs);
            let mine = app.sign_in_at("third", &my_claims).await;
            let body = json!({ "id_token": app.token(&their_claims), "name": told });
            let gone = app.post("second", &body).await;
            let shown = merge(&app, &mine, &their_claims, true).await.json();
            let merged = merge(&app, &mine, &their_claims, false).await;
            assert_eq!(merged.status, 200, "{}", merged.text);
            assert_eq!(with(shown, &json!({ "applied": true })), merged.json());
            let mut me = app.get(&mine.access_token(), "/api/v1/me").await.json();
            me.as_object_mut().unwrap().remove("identities");
            assert_eq!(
                me.as_object_mut().unwrap().remove("claims").as_ref(),
                merged.json().get("claims")
            );
            assert_eq!(me, merged.json()["user"]);
            for member in ["email", "name", "picture"] {
                let had = [&mine, &gone].map(|answer| answer.json()["user"][member].clone());
                let kept = had
                    .iter()
                    .find(|value| value.is_string())
                    .cloned()
                    .unwrap_or_default();
                assert_eq!(me[member], kept, "{number} {member}");
            }
            let own: bool = value!(
                &app.database.pool,
                "SELECT own_name FROM users WHERE id = $1",
                mine.user()
            );
            assert_eq!(
                own,
                told.is_some() && mine.json()["user"]["name"].is_null(),
                "{number}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_with_invalid_proofs_or_refused_users_changes_nothing() {
    let app = App::start_with(|figment| figment.merge(("providers.third.enabled", false))).await;
    let mine = app.sign_in(&ada()).await;
    let gone = app.sign_in_at("second", &other()).await;
    let disabled = app
        .sign_in_at("second", &at("second", "disabled", &json!({})))
        .await;
    assert_eq!(
        app.by_staff(Change::Disable {
            user: disabled.user()
        })
        .await,
        Some(Outcome::Done)
    );
    app.sign_in_at("second", &at("second", "hijacked", &json!({})))
        .await;
    let suspend = "UPDATE identities SET reported_at = now(), reported_reason = 'hijacking' WHERE subject = 'hijacked'";
    app.database.run(suspend).await;
    let before = everything(&app).await;
    let proof = |provider: &str, claims: Value| json!({ "provider": provider, "id_token": app.token(&claims) });
    let of_second = |claims| proof("second", claims);
    let fault = |changes: Value| of_second(at("second", "other", &changes));
    let sound = || of_second(other());
    let with = |changes: Value| with(sound(), &changes);
    let mut other_nonce = fault(json!({ "nonce": "n" }));
    other_nonce["nonce"] = "m".into();
    let rows = [
        (
            "nobody's",
            of_second(at("second", "new", &json!({}))),
            404,
            "user_not_found",
        ),
        (
            "the user's own",
            proof("idp", ada()),
            409,
            "identity_already_linked",
        ),
        (
            "of a disabled user",
            of_second(at("second", "disabled", &json!({}))),
            403,
            "user_disabled",
        ),
        (
            "suspended",
            of_second(at("second", "hijacked", &json!({}))),
            403,
            "identity_suspended",
        ),
        (
            "kept for long",
            fault(json!({ "iat": now() - 601 })),
            422,
            "token_expired",
        ),
        (
            "of another application",
            fault(json!({ "aud": "x", "azp": "x" })),
            422,
            "audience_mismatch",
        ),
        (
            "of another issuer",
            of_second(ada()),
            422,
            "issuer_mismatch",
        ),
        (
            "made for a nonce",
            fault(json!({ "nonce": "n" })),
            422,
            "nonce_mismatch",
        ),
        ("with another nonce", other_nonce, 422, "nonce_mismatch"),
        (
            "switched off",
            proof("third", other()),
            403,
            "provider_disabled",
        ),
        (
            "of no provider",
            with(json!({ "provider": "fifth" })),
            400,
            "invalid_request",
        ),
        (
            "of nobody",
            with(json!({ "provider": null })),
            400,
            "invalid_request",
        ),
        (
            "no token",
            with(json!({ "id_token": null })),
            400,
            "invalid_request",
        ),
        (
            "no JWT",
            with(json!({ "id_token": "x" })),
            400,
            "invalid_request",
        ),
        (
            "a text as proof",
            with(json!({ "reauthentication": "x" })),
            400,
            "invalid_request",
        ),
    ];
    for (what, mut body, status, error) in rows {
        for dry_run in [true, false] {
            body["dry_run"] = dry_run.into();
            let answer = ask(&app, &mine, &body).await;
            assert_eq!(answer.error(), error, "{what}: {}", answer.text);
            assert_problem(&answer, status, error);
        }
    }
    assert_eq!(
        ask(&app, &disabled, &sound()).await.json()["reason"],
        "user_disabled"
    );
    assert_eq!(everything(&app).await, before);

    // An older session needs a third proof, for an identity of its own user.
    app.age(601.0).await;
    let before = everything(&app).await;
    let old = token::with(ada(), &json!({ "iat": now() - 601 }));
    let rows = [
        (Value::Null, 403, "reauthentication_required"),
        (sound(), 403, "reauthentication_required"),
        (proof("idp", old), 422, "token_expired"),
    ];
    for (proof, status, error) in rows {
        let body = with(json!({ "reauthentication": proof }));
        assert_problem(&ask(&app, &mine, &body).await, status, error);
    }
    assert_eq!(everything(&app).await, before);
    let body = with(json!({ "reauthentication": proof("idp", ada()) }));
    let merged = ask(&app, &mine, &body).await;
    assert_eq!(
        merged.json()["merged"]["user_id"],
        gone.user_id(),
        "{}",
        merged.text
    );
    // As after a lost response: the merge is already done.
    let again = ask(&app, &mine, &body).await;
    assert_problem(&again, 409, "identity_already_linked");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_is_that_of_whoever_staff_gave_it_to() {
    let app = App::start().await;
    let mine = app.sign_in(&ada()).await;
    let first = app.sign_in_at("second", &other()).await;
    let third = at("third", "other-3", &json!({}));
    assert_eq!(
        app.link(&first.access_token(), "third", &third)
            .await
            .status,
        201
    );
    let to = app
        .sign_in_at("fourth", &at("fourth", "holder", &json!({})))
        .await;
    let moved = Change::Move {
        identity: first.identity(),
        from: first.user(),
        to: to.user(),
    };
    assert_eq!(app.by_staff(moved).await, Some(Outcome::Done));
    let merged = merge(&app, &mine, &other(), false).await;
    assert_eq!(
        merged.json()["merged"]["user_id"],
        to.user_id(),
        "{}",
        merged.text
    );
    let left = app.sign_in_at("third", &third).await;
    assert_eq!(left.user_id(), first.user_id(), "who had it is left alone");
}

/// Adds a user with one identity and a session, as the first sign-in does, and returns the ids of
/// user and session.
async fn person(app: &App, name: &str) -> (Uuid, Uuid) {
    let user = Uuid::now_v7();
    let session = Uuid::now_v7();
    run!(&app.database.pool, "WITH new AS (INSERT INTO users (id, email, email_verified) VALUES ($1, $3 || '@example.com', true) RETURNING id),
              known AS (INSERT INTO identities (id, user_id, provider, subject) SELECT $4, id, 'idp', $3 FROM new RETURNING id)
         INSERT INTO sessions (id, identity_id, family_hash, token_hash, expires_at, client_id)
         SELECT $2, id, decode(repeat('00', 16), 'hex'), decode(repeat('00', 16), 'hex'), now() + interval '1 hour', 'app'
         FROM known", user, session, name, Uuid::now_v7());
    (user, session)
}

/// Merges the identity with this name into the session's user, as the user requests it.
async fn asked(
    app: &App,
    (user, session): (Uuid, Uuid),
    subject: &str,
) -> Result<Merging, NotMerged> {
    let origin = Origin::default();
    let request = MergeRequest {
        user,
        session,
        provider: "idp",
        subject,
        issued_at: clock::system().into(),
        dry_run: false,
        origin: &origin,
    };
    account::merge(&app.database.service, request)
        .await
        .unwrap()
}

async fn owners(app: &App) -> Vec<(String, Uuid)> {
    app.database
        .all("SELECT subject, user_id FROM identities ORDER BY subject")
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_opposite_concurrent_merges_exactly_one_happens() {
    let app = App::start().await;
    for round in 0..rounds() {
        let one = person(&app, "one").await;
        let other = person(&app, "other").await;
        let (first, second) = at_once(
            Box::pin(asked(&app, one, "other")),
            Box::pin(asked(&app, other, "one")),
        )
        .await;
        let done = [&first, &second].map(Result::is_ok);
        assert!(done[0] != done[1], "round {round}: {first:?} {second:?}");
        let (late, stays) = if done[0] {
            (second, one)
        } else {
            (first, other)
        };
        assert_eq!(late, Err(NotMerged::NoUser), "round {round}");
        assert_eq!(
            app.database.rows().await,
            [1, 2, 1],
            "round {round}: one session, of whoever remains"
        );
        let both = ["one", "other"].map(|subject| (subject.to_owned(), stays.0));
        assert_eq!(owners(&app).await, both, "round {round}");
        let alive: bool = value!(
            &app.database.pool,
            "SELECT ended_at IS NULL FROM sessions WHERE id = $1",
            stays.1
        );
        assert!(alive, "round {round}");
        app.database.run("DELETE FROM users").await;
    }
    let events = app
        .database
        .count("SELECT count(*) FROM events WHERE kind = 'users_merged'")
        .await;
    assert_eq!(
        events,
        2 * i64::try_from(rounds()).unwrap(),
        "two each, and only of those that happened"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_later_of_two_opposite_merge_requests_names_the_survivor() {
    let app = App::start().await;
    for round in 0..10 {
        let [ours, theirs] =
            ["one", "two"].map(|name| at("second", &format!("{name}-{round}"), &json!({})));
        let one = app.sign_in_at("second", &ours).await;
        let two = app.sign_in_at("second", &theirs).await;
        let (first, second) = at_once(
            merge(&app, &one, &theirs, false),
            merge(&app, &two, &ours, false),
        )
        .await;
        let (done, late, stays) = if first.status == 200 {
            (first, second, &one)
        } else {
            (second, first, &two)
        };
        assert_eq!(
            (done.status.as_u16(), late.status.as_u16()),
            (200, 401),
            "{round}: {}",
            late.text
        );
        assert_eq!(merged_into(&late), stays.user_id());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_and_a_concurrent_disabling_take_effect_exclusively() {
    let app = App::start().await;
    for round in 0..rounds() {
        let one = person(&app, "one").await;
        let other = person(&app, "other").await;
        let disabling = app.by_staff(Change::Disable { user: other.0 });
        let (merging, disabled) =
            at_once(Box::pin(asked(&app, one, "other")), Box::pin(disabling)).await;
        match merging {
            Ok(_) => assert_ne!(disabled, Some(Outcome::Done), "round {round}"),
            Err(NotMerged::Disabled) => assert_eq!(disabled, Some(Outcome::Done), "round {round}"),
            _ => panic!("round {round}: {merging:?} {disabled:?}"),
        }
        let whose = owners(&app).await;
        assert_eq!(
            whose[0].1 == whose[1].1,
            disabled != Some(Outcome::Done),
            "round {round}: {whose:?}"
        );
        app.database.run("DELETE FROM users").await;
    }
}
