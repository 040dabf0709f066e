//! Identities that staff move and unlink.

use serde_json::{Value, json};
use uuid::Uuid;
use vestibule::admin::changes::decision::Refused;
use vestibule::admin::changes::{Change, Outcome};

use super::{STAFF, act, alive, apply, at, events, identity, make, preview, user};
use crate::support::app::App;
use crate::support::token::{claims, with};

async fn unlink(app: &App, user: Uuid, identity: Uuid) -> Outcome {
    make(app, Change::Unlink { identity, user }).await
}

async fn move_identity(app: &App, from: Uuid, identity: Uuid, to: Uuid) -> Outcome {
    make(app, Change::Move { identity, from, to }).await
}

/// The user's address, and whether it is verified.
async fn address(app: &App, user: Uuid) -> (Option<String>, bool) {
    sqlx::query_as("SELECT email, email_verified FROM users WHERE id = $1")
        .bind(user)
        .fetch_one(&app.database.pool)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_identity_signs_in_as_its_new_user_and_only_its_sessions_end() {
    let app = App::start().await;
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    let second = app.sign_in_at("second", &at("second", "ada-2", "ada@example.com")).await;
    let grace = app.sign_in(&claims("grace", "grace@example.com")).await;
    let (ada_id, grace_id) = (user(&ada), user(&grace));
    assert_eq!(user(&second), ada_id);

    assert_eq!(move_identity(&app, ada_id, identity(&second), grace_id).await, Outcome::Done);
    assert_eq!(alive(&app, &second).await, (false, false));
    for untouched in [&ada, &grace] {
        assert_eq!(alive(&app, untouched).await, (true, true));
    }
    let again = app.sign_in_at("second", &at("second", "ada-2", "ada@example.com")).await;
    assert_eq!((again.outcome().as_str(), user(&again)), ("signed_in", grace_id));
    let detail = |key: &str, other: Uuid| {
        let detail = json!({ "reason": "asked by phone", key: other, "identity_id": identity(&again) });
        [(Some(STAFF.to_owned()), Some(detail))]
    };
    assert_eq!(events(&app, "identity_moved", ada_id).await, detail("to", grace_id));
    assert_eq!(events(&app, "identity_moved", grace_id).await, detail("from", ada_id));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_identity_takes_no_address_along_and_steals_none_later() {
    let app = App::start().await;
    for (number, target) in
        [json!({}), json!({ "email": null }), json!({ "email_verified": false })].into_iter().enumerate()
    {
        let (theirs, own) = (format!("from-{number}@example.com"), format!("to-{number}@example.com"));
        let moved = claims(&format!("from-{number}"), &theirs);
        let from = app.sign_in(&moved).await;
        let to = app.sign_in(&with(claims(&format!("to-{number}"), &own), &target)).await;
        let before = [(Some(theirs.clone()), false), address(&app, user(&to)).await];
        assert_eq!(move_identity(&app, user(&from), identity(&from), user(&to)).await, Outcome::Done);
        assert_eq!([address(&app, user(&from)).await, address(&app, user(&to)).await], before);

        let again = app.sign_in(&moved).await;
        assert_eq!(user(&again), user(&to), "{target}");
        // What it proves is welcome to a user who has no address, and taken from the one who merely claims it now.
        let welcome = target.get("email").is_some();
        let after = if welcome { [(None, false), (Some(theirs.clone()), true)] } else { before.clone() };
        assert_eq!([address(&app, user(&from)).await, address(&app, user(&to)).await], after, "{target}");
        let fresh = format!("fresh-{number}@example.com");
        app.sign_in(&with(moved.clone(), &json!({ "email": fresh }))).await;
        let expected = if welcome { (Some(fresh), true) } else { before[1].clone() };
        assert_eq!(address(&app, user(&to)).await, expected, "{target}");

        // Whoever proves the old address gets it, and nothing of what was left behind.
        let back = app.sign_in_at("second", &at("second", &format!("back-{number}"), &theirs)).await;
        assert_eq!(back.outcome(), "created", "{target}");
        assert_eq!(address(&app, user(&from)).await, (None, false), "{target}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_that_is_moved_to_somebody_disabled_does_not_sign_in() {
    let app = App::start().await;
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    let grace = app.sign_in(&claims("grace", "grace@example.com")).await;
    act(&app, Change::Disable { user: user(&grace) }).await;
    assert_eq!(move_identity(&app, user(&ada), identity(&ada), user(&grace)).await, Outcome::Done);
    assert_eq!(app.sign_in(&claims("ada", "ada@example.com")).await.error(), "user_disabled");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_identity_is_unlinked_only_where_an_address_that_is_vouched_for_leads_back() {
    let app = App::start().await;
    let without_address = |value: Value| with(value, &json!({ "email": null }));
    let unverified = |value: Value| with(value, &json!({ "email_verified": false }));
    for (name, claimed) in [
        ("none", without_address(claims("none", ""))),
        ("unverified", unverified(claims("unverified", "u@example.com"))),
    ] {
        let only = app.sign_in(&claimed).await;
        let before = app.database.everything(&[]).await;
        let outcome = unlink(&app, user(&only), identity(&only)).await;
        assert_eq!(outcome, Outcome::Refused(Refused::LastIdentity), "{name}");
        assert_eq!(app.database.everything(&[]).await, before, "{name}");

        let second = at("second", name, "");
        app.link(&only.access_token(), "second", &second).await;
        assert_eq!(unlink(&app, user(&only), identity(&only)).await, Outcome::Done, "{name}: not the last");
        assert_eq!(alive(&app, &only).await, (false, false), "{name}");
        assert_eq!(user(&app.sign_in_at("second", &second).await), user(&only), "{name}");
        assert_ne!(user(&app.sign_in(&without_address(claimed)).await), user(&only), "{name}");
    }
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    let refused = unlink(&app, user(&ada), identity(&ada)).await;
    assert_eq!(refused, Outcome::Refused(Refused::LastIdentity), "a proof goes with its identity");
    app.database.run("UPDATE users SET email_vouched = email_verified").await;
    assert_eq!(unlink(&app, user(&ada), identity(&ada)).await, Outcome::Done);
    assert_eq!(alive(&app, &ada).await, (false, false));
    let detail = json!({ "reason": "asked by phone", "identity_id": identity(&ada) });
    let expected = [(Some(STAFF.to_owned()), Some(detail))];
    assert_eq!(events(&app, "identity_unlinked", user(&ada)).await, expected);
    let back = app.sign_in(&claims("ada", "ada@example.com")).await;
    assert_eq!((back.outcome().as_str(), user(&back)), ("linked", user(&ada)));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_identity_goes_from_anybody_but_who_was_looked_at() {
    let app = App::start().await;
    let pool = &app.database.pool;
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    let grace = app.sign_in(&claims("grace", "grace@example.com")).await;
    let (ada_id, grace_id, identity_id) = (user(&ada), user(&grace), identity(&ada));
    app.database.run("UPDATE users SET email_vouched = email_verified").await;

    let moving = |from, identity, to| Change::Move { identity, from, to };
    let moved = moving(ada_id, identity_id, grace_id);
    let unlinked = Change::Unlink { identity: identity_id, user: ada_id };
    let moving_seen = preview(pool, moved).await.fingerprint();
    let unlinking_seen = preview(pool, unlinked).await.fingerprint();
    assert_ne!(moving_seen, unlinking_seen);
    act(&app, Change::Disable { user: ada_id }).await;
    let before = app.database.everything(&[]).await;
    assert_eq!(apply(pool, moved, &moving_seen).await, Outcome::Changed);
    assert_eq!(apply(pool, unlinked, &unlinking_seen).await, Outcome::Changed);
    for (user, identity, to) in [
        (grace_id, identity_id, ada_id),
        (ada_id, Uuid::now_v7(), grace_id),
        (ada_id, identity_id, Uuid::now_v7()),
        (ada_id, identity_id, ada_id),
        (Uuid::now_v7(), identity_id, grace_id),
    ] {
        assert_eq!(apply(pool, moving(user, identity, to), "").await, Outcome::NotFound);
    }
    let unlinked = Change::Unlink { identity: identity_id, user: grace_id };
    assert_eq!(apply(pool, unlinked, "").await, Outcome::NotFound);
    assert_eq!(app.database.everything(&[]).await, before);
}
