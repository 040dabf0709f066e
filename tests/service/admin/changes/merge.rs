//! Merges of two users by staff.

use serde_json::json;
use uuid::Uuid;
use vestibule::accounts::merging as store;
use vestibule::admin::api::store::{ClaimsSet, set_claims};
use vestibule::admin::changes::{Change, Outcome};
use vestibule::admin::lists::events::Filter;
use vestibule::admin::lists::{events as event_log, person as directory};
use vestibule::admin::staff::store as access;
use vestibule::domain::actor::Actor;
use vestibule::domain::custom_claims::CustomClaims;
use vestibule::domain::staff::Role;
use vestibule::events::EventKind;
use vestibule::events::record::{DataAccess, record_access};

use super::{STAFF, act, alive, apply, at, by, events, merge, preview, user};
use crate::support::app::App;
use crate::support::token::{claims, encode, now, with};

/// Returns the events that the audit finds by an address: kind, `about` and address.
async fn found(app: &App, email: &str) -> Vec<(String, Option<String>, Option<String>)> {
    let filter = Filter {
        email: Some(email.to_owned()),
        ..Filter::default()
    };
    let events = event_log::page(&app.database.service, &filter, None, 100)
        .await
        .unwrap()
        .0;
    events
        .into_iter()
        .map(|event| (event.kind, event.about, event.email))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_event_is_found_by_address_and_survives_its_erasure() {
    const ADDRESS: &str = "from@example.com";
    let app = App::start().await;
    let from = user(&app.sign_in(&claims("from", ADDRESS)).await);
    let into = app.sign_in(&claims("into", "into@example.com")).await;
    assert_eq!(merge(&app, from, user(&into)).await, Outcome::Done);
    let merged = ("users_merged".to_owned(), Some(ADDRESS.to_owned()), None);
    assert_eq!(found(&app, ADDRESS).await, [merged]);
    let page = event_log::of_user(&app.database.service, user(&into), 100)
        .await
        .unwrap();
    let shown: Vec<_> = page
        .iter()
        .filter(|event| event.kind == "users_merged")
        .collect();
    assert_eq!(
        shown.len(),
        1,
        "whoever stays was not merged into another user"
    );

    // The merged identity goes, so that no user has the address.
    let theirs = "DELETE FROM identities WHERE lower(email) = $1";
    let gone = sqlx::query(theirs)
        .bind(ADDRESS)
        .execute(&app.database.pool)
        .await
        .unwrap();
    assert_eq!(gone.rows_affected(), 1);
    let next = app.sign_in_at("third", &at("third", "next", ADDRESS)).await;
    assert_eq!(next.outcome(), "created");
    assert_eq!(
        app.delete(&next.access_token(), "/api/v1/me").await.status,
        204
    );
    assert_eq!(
        found(&app, ADDRESS).await,
        [],
        "an address that is to be forgotten is"
    );
    let detail = json!({ "reason": "asked by phone", "into": user(&into) });
    assert_eq!(
        events(&app, "users_merged", from).await,
        [(Some(STAFF.to_owned()), Some(detail))]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merged_address_is_erased_when_the_surviving_user_is_deleted() {
    const ADDRESS: &str = "from@example.com";
    let app = App::start().await;
    let from = user(&app.sign_in(&claims("from", ADDRESS)).await);
    let into = app.sign_in(&claims("into", "into@example.com")).await;
    assert_eq!(merge(&app, from, user(&into)).await, Outcome::Done);
    let origin = by().origin;
    access::add(&app.database.service, STAFF, Role::Support, by())
        .await
        .unwrap();
    let look = DataAccess {
        kind: EventKind::UsersViewed,
        user: None,
        search: &[("q", ADDRESS)],
        reason: None,
    };
    assert!(
        record_access(&app.database.service, look, Actor::Staff(STAFF), origin)
            .await
            .unwrap()
    );
    let traces = "SELECT count(*) FROM events e WHERE strpos(e::text, 'from@') > 0";
    assert!(app.database.count(traces).await > 1);
    assert_eq!(
        app.delete(&into.access_token(), "/api/v1/me").await.status,
        204
    );
    assert_eq!(app.database.count(traces).await, 0);
    assert_eq!(
        app.database
            .count("SELECT count(*) FROM pending_erasures")
            .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_who_is_disabled_gets_back_in_by_a_merge() {
    let app = App::start().await;
    for (number, disabled) in ["from", "into", "both"].into_iter().enumerate() {
        let person = |role: &str| {
            let subject = format!("{role}-{number}");
            claims(&subject, &format!("{subject}@example.com"))
        };
        let from = app.sign_in(&person("from")).await;
        let into = app.sign_in(&person("into")).await;
        for (role, who) in [("from", &from), ("into", &into)] {
            if disabled == role || disabled == "both" {
                act(&app, Change::Disable { user: user(who) }).await;
            }
        }
        assert_eq!(
            merge(&app, user(&from), user(&into)).await,
            Outcome::Done,
            "{disabled}"
        );
        for role in ["from", "into"] {
            assert_eq!(
                app.sign_in(&person(role)).await.error(),
                "user_disabled",
                "{disabled}"
            );
        }
        act(&app, Change::Enable { user: user(&into) }).await;
        for session in [&from, &into] {
            assert_eq!(
                alive(&app, session).await,
                (false, false),
                "{disabled}: what ended stays so"
            );
        }
        assert_eq!(
            user(&app.sign_in(&person("from")).await),
            user(&into),
            "{disabled}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_of_anybody_but_who_was_looked_at_changes_nothing() {
    let app = App::start().await;
    let pool = &app.database.pool;
    let from = app.sign_in(&claims("from", "from@example.com")).await;
    let into = app.sign_in(&claims("into", "into@example.com")).await;
    let from_id = user(&from);
    let into_id = user(&into);
    let other_picture = with(
        claims("into", "into@example.com"),
        &json!({ "picture": "https://pictures.example/new" }),
    );
    let merge = Change::Merge {
        from: from_id,
        into: into_id,
    };
    for change in [
        "identity",
        "session",
        "picture",
        "claims",
        "identity's address",
        "direction",
        "garbage",
    ] {
        let seen = preview(pool, merge).await.fingerprint();
        let mut made = merge;
        let mut shown = seen.as_str();
        match change {
            "identity" => {
                app.link(&into.access_token(), "second", &at("second", "new", ""))
                    .await;
            }
            "session" => act(&app, Change::EndSessions { user: from_id }).await,
            "picture" => {
                app.sign_in(&other_picture).await;
            }
            "claims" => {
                let claims = CustomClaims::parse(r#"{"plan": "pro"}"#).unwrap();
                assert_eq!(
                    set_claims(&app.database.service, into_id, &claims, by())
                        .await
                        .unwrap(),
                    ClaimsSet::Done
                );
            }
            "identity's address" => {
                let address = json!({ "email": "other@example.com", "email_verified": false });
                app.sign_in(&with(claims("from", ""), &address)).await;
            }
            "direction" => {
                made = Change::Merge {
                    from: into_id,
                    into: from_id,
                }
            }
            _ => shown = "",
        }
        let before = app.database.everything(&[]).await;
        assert_eq!(
            apply(pool, made, shown).await,
            Some(Outcome::Stale),
            "{change}"
        );
        assert_eq!(app.database.everything(&[]).await, before, "{change}");
    }
    // A new session does not require another preview.
    let seen = preview(pool, merge).await.fingerprint();
    app.sign_in(&other_picture).await;
    let seen_again = preview(pool, merge).await;
    assert_eq!(seen_again.fingerprint(), seen, "{seen_again:?}");
    assert_eq!(apply(pool, merge, &seen).await, Some(Outcome::Done));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_remains_was_last_seen_when_either_was() {
    let app = App::start().await;
    for (number, (from_days, into_days)) in [(1, 5), (5, 1), (3, 3)].into_iter().enumerate() {
        let mut ids = Vec::new();
        for (role, days) in [("from", from_days), ("into", into_days)] {
            let subject = format!("{role}-{number}");
            let id = user(
                &app.sign_in(&claims(&subject, &format!("{subject}@example.com")))
                    .await,
            );
            run!(
                &app.database.pool,
                "WITH used AS (
                     UPDATE sessions s SET rotated_at = now() - $1 * interval '1 day'
                     FROM identities i WHERE i.id = s.identity_id AND i.user_id = $2
                 )
                 UPDATE users SET seen_noted_on = current_date - 10 WHERE id = $2",
                days,
                id
            );
            ids.push(id);
        }
        let last = async || {
            let mut days = Vec::new();
            for id in &ids {
                let found = directory::user(&app.database.service, *id).await.unwrap();
                days.extend(found.and_then(|found| found.user.last_seen_on));
            }
            days
        };
        let either = last().await;
        assert_eq!(either.len(), 2);
        assert_eq!(merge(&app, ids[0], ids[1]).await, Outcome::Done);
        assert_eq!(last().await, [*either.iter().max().unwrap()]);
    }
}

/// Every link and unlink marks the user as changed. If one did not, a merge could take an identity
/// that it has not read from one user and give it to no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_merge_with_an_outdated_list_of_identities_changes_nothing() {
    let app = App::start().await;
    let from = app.sign_in(&claims("from", "from@example.com")).await;
    assert_eq!(
        app.link(&from.access_token(), "second", &at("second", "from-2", ""))
            .await
            .status,
        201
    );
    let into = app.sign_in(&claims("into", "into@example.com")).await;
    let mut pair = Vec::new();
    for user in [user(&from), user(&into)] {
        pair.extend(store::users(&app.database.service, &[user]).await.unwrap());
    }
    let [mut from, into] = <[_; 2]>::try_from(pair).expect("two users");
    from.identities.pop().expect("one of two");
    let before = app.database.everything(&[]).await;
    let _ = store::merge(&app.database.service, &from, &into, by())
        .await
        .unwrap();
    assert_eq!(app.database.everything(&[]).await, before);
}

/// Counts the user's events that still contain personal data.
async fn traces(app: &App, user: Uuid) -> i64 {
    value!(
        &app.database.pool,
        "SELECT count(*) FROM events WHERE user_id = $1 AND kind <> 'user_deleted'
         AND (email IS NOT NULL OR ip IS NOT NULL OR user_agent IS NOT NULL OR detail IS NOT NULL)",
        user
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_was_merged_into_a_deleted_user_is_forgotten_with_them() {
    let app = App::start().await;
    let mut people = Vec::new();
    for name in ["first", "second", "third", "other"] {
        people.push(user(
            &app.sign_in(&claims(name, &format!("{name}@example.com")))
                .await,
        ));
    }
    assert_eq!(merge(&app, people[0], people[1]).await, Outcome::Done);
    assert_eq!(merge(&app, people[1], people[2]).await, Outcome::Done);
    // A stranger's attempt with the first user's address, which only an identity of the third user
    // still has.
    let attempt = json!({ "iss": "https://other.example", "aud": "x", "email": "first@example.com", "exp": now() + 60 });
    let attempt = encode(r#"{"alg":"RS256"}"#, &attempt.to_string());
    assert_eq!(
        app.post("idp", &json!({ "id_token": attempt }))
            .await
            .error(),
        "issuer_mismatch"
    );
    let claimed = "SELECT count(*) FROM events WHERE kind = 'sign_in_refused' AND email = 'first@example.com'";
    app.database.until(claimed, 1).await;

    // The user deletes themselves this time.
    let session = app.sign_in(&claims("first", "first@example.com")).await;
    assert_eq!(user(&session), people[2]);
    assert_eq!(
        app.delete(&session.access_token(), "/api/v1/me")
            .await
            .status,
        204
    );
    for (number, person) in people[..3].iter().enumerate() {
        assert_eq!(traces(&app, *person).await, 0, "{number}");
    }
    let merges: Vec<(Uuid, Option<String>)> = app
        .database
        .all("SELECT user_id, reason FROM events WHERE kind = 'users_merged' ORDER BY id")
        .await;
    let into_another = Some("to_another".to_owned());
    let [first, second, third] = [people[0], people[1], people[2]];
    let expected = [
        (second, None),
        (first, into_another.clone()),
        (third, None),
        (second, into_another),
    ];
    assert_eq!(
        merges, expected,
        "who was merged into whom still reads the right way round"
    );
    let counts = json!({ "identity_count": 3, "session_count": 2 });
    assert_eq!(
        events(&app, "user_deleted", people[2]).await,
        [(None, Some(counts))]
    );
    let held = "SELECT count(*) FROM events WHERE email = 'first@example.com'";
    assert_eq!(app.database.count(held).await, 0);
    assert!(traces(&app, people[3]).await > 0);
}
