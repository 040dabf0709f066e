//! Two users become one.

use serde_json::{Value, json};
use uuid::Uuid;
use vestibule::admin::audit::store::{self as event_log, Filter};
use vestibule::admin::changes::decision::Refused;
use vestibule::admin::changes::{self, Change, Outcome};
use vestibule::admin::person::store as directory;
use vestibule::admin::staff::store as access;
use vestibule::domain::actor::Actor;
use vestibule::domain::merging;
use vestibule::domain::staff::Role;
use vestibule::store::events::{Look, record_look};
use vestibule::store::merging as store;

use super::{STAFF, act, alive, apply, at, by, events, identity, merge, preview, user};
use crate::support::app::App;
use crate::support::token::{claims, with};

#[tokio::test(flavor = "multi_thread")]
async fn whoever_goes_signs_in_as_whoever_stays_and_only_their_sessions_end() {
    let app = App::start().await;
    let from = app.sign_in(&claims("from", "from@example.com")).await;
    assert_eq!(
        app.link(&from.access_token(), "second", &at("second", "from-2", "")).await.status.as_u16(),
        201
    );
    let into = app.sign_in(&claims("into", "into@example.com")).await;
    let (from_id, into_id) = (user(&from), user(&into));

    assert_eq!(merge(&app, from_id, into_id).await, Outcome::Done);
    assert_eq!(alive(&app, &from).await, (false, false));
    assert_eq!(alive(&app, &into).await, (true, true));
    assert_eq!(app.database.rows().await[..2], [1, 3]);
    for (provider, claims) in [
        ("idp", claims("from", "from@example.com")),
        ("second", at("second", "from-2", "")),
        ("idp", claims("into", "into@example.com")),
    ] {
        let again = app.sign_in_at(provider, &claims).await;
        assert_eq!((again.outcome().as_str(), user(&again)), ("signed_in", into_id), "{provider} {claims}");
        assert_eq!(again.json()["user"]["email"], "into@example.com", "the address is theirs");
        assert_ne!(identity(&again), identity(&from), "what linked it to the other is gone");
    }
    let expected = |key: &str, other: Uuid| {
        [(Some(STAFF.to_owned()), Some(json!({ "reason": "asked by phone", key: other })))]
    };
    assert_eq!(events(&app, "users_merged", into_id).await, expected("from", from_id));
    assert_eq!(events(&app, "users_merged", from_id).await, expected("into", into_id));
    assert_eq!(events(&app, "user_created", from_id).await.len(), 1, "what happened to them still did");
    // The address of whoever went is free: it leads to nobody.
    let stranger = app.sign_in_at("third", &at("third", "stranger", "from@example.com")).await;
    assert_eq!(stranger.outcome(), "created");
}

/// What the audit finds by an address: the kinds, and what they are about.
async fn found(app: &App, email: &str) -> Vec<(String, Option<String>, Option<String>)> {
    let filter = Filter { email: Some(email.to_owned()), ..Filter::default() };
    let events = event_log::page(&app.database.pool, &filter, None, 100).await.unwrap().0;
    events.into_iter().map(|event| (event.kind, event.about, event.email)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_is_found_by_the_address_of_whoever_went_and_outlives_the_next_user_of_it() {
    const ADDRESS: &str = "from@example.com";
    let app = App::start().await;
    let from = user(&app.sign_in(&claims("from", ADDRESS)).await);
    let into = app.sign_in(&claims("into", "into@example.com")).await;
    assert_eq!(merge(&app, from, user(&into)).await, Outcome::Done);
    let merged = ("users_merged".to_owned(), Some(ADDRESS.to_owned()), None);
    assert_eq!(found(&app, ADDRESS).await, [merged]);
    let page = event_log::of_user(&app.database.pool, user(&into), 100).await.unwrap();
    let shown: Vec<_> = page.iter().filter(|event| event.kind == "users_merged").collect();
    assert_eq!(shown.len(), 1, "whoever stays was not merged into another user");

    // The identity that came with the merge goes, so that nobody has the address.
    let theirs = "DELETE FROM identities WHERE lower(email) = $1";
    let gone = sqlx::query(theirs).bind(ADDRESS).execute(&app.database.pool).await.unwrap();
    assert_eq!(gone.rows_affected(), 1);
    let next = app.sign_in_at("third", &at("third", "next", ADDRESS)).await;
    assert_eq!(next.outcome(), "created");
    assert_eq!(app.delete(&next.access_token(), "/api/v1/me").await.status.as_u16(), 204);
    assert_eq!(found(&app, ADDRESS).await, [], "an address that is to be forgotten is");
    let detail = json!({ "reason": "asked by phone", "into": user(&into) });
    assert_eq!(events(&app, "users_merged", from).await, [(Some(STAFF.to_owned()), Some(detail))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_came_by_a_merge_is_forgotten_with_whoever_got_it() {
    const ADDRESS: &str = "from@example.com";
    let app = App::start().await;
    let unverified = with(claims("from", ADDRESS), &json!({ "email_verified": false }));
    let from = user(&app.sign_in(&unverified).await);
    let into = app.sign_in(&claims("into", "into@example.com")).await;
    assert_eq!(merge(&app, from, user(&into)).await, Outcome::Done);
    let origin = by().origin;
    let pool = &app.database.pool;
    access::add(pool, STAFF, Role::Support, by()).await.unwrap();
    let look = Look { kind: "users_viewed", user: None, search: &[("q", ADDRESS)], reason: None };
    assert!(record_look(pool, look, Actor::Staff(STAFF), origin).await.unwrap());
    let traces = "SELECT count(*) FROM events e WHERE strpos(e::text, 'from@') > 0";
    assert!(app.database.count(traces).await > 1);
    assert_eq!(app.delete(&into.access_token(), "/api/v1/me").await.status.as_u16(), 204);
    assert_eq!(app.database.count(traces).await, 0);
    assert_eq!(app.database.count("SELECT count(*) FROM addresses_to_forget").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_stays_keeps_their_own_claims_and_gets_those_that_they_lack() {
    let app = App::start().await;
    let claims_of = async |user: Uuid| -> Option<Value> {
        let claims = sqlx::query_scalar("SELECT claims FROM users WHERE id = $1").bind(user);
        claims.fetch_one(&app.database.pool).await.unwrap()
    };
    let theirs = json!({ "roles": ["admin"], "restricted": true });
    let own = json!({ "roles": ["reader"] });
    let both = json!({ "roles": ["reader"], "restricted": true });
    for (number, (own, expected)) in [(None, &theirs), (Some(own), &both)].into_iter().enumerate() {
        let person =
            |role: &str| claims(&format!("{role}-{number}"), &format!("{role}-{number}@example.com"));
        let from = user(&app.sign_in(&person("from")).await);
        let into = user(&app.sign_in(&person("into")).await);
        let change = Change::Merge { from, into };
        let before = preview(&app.database.pool, change).await.fingerprint();
        for (user, claims) in [(from, Some(theirs.clone())), (into, own)] {
            let set = sqlx::query("UPDATE users SET claims = $2 WHERE id = $1").bind(user).bind(claims);
            set.execute(&app.database.pool).await.unwrap();
        }
        assert_eq!(
            apply(&app.database.pool, change, &before).await,
            Outcome::Changed,
            "claims are looked at"
        );
        assert_eq!(merge(&app, from, into).await, Outcome::Done);
        assert_eq!(claims_of(into).await.as_ref(), Some(expected));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_stays_is_as_the_preview_said() {
    let app = App::start().await;
    let nothing = json!({ "email": null, "name": null, "picture": null });
    let rows = [
        (json!({}), json!({})),
        (json!({ "name": "Grace", "picture": "https://pictures.example/grace" }), nothing.clone()),
        (json!({ "email_verified": false }), nothing.clone()),
        (nothing.clone(), json!({ "email_verified": false })),
        (nothing.clone(), nothing),
    ];
    for (number, (from, into)) in rows.iter().enumerate() {
        let person = |role: &str, changes: &Value| {
            let subject = format!("{role}-{number}");
            with(claims(&subject, &format!("{subject}@example.com")), changes)
        };
        let (from, into) = (person("from", from), person("into", into));
        let (from_id, into_id) = (user(&app.sign_in(&from).await), user(&app.sign_in(&into).await));
        let change = Change::Merge { from: from_id, into: into_id };
        let Change::Merge { from: goes, into: stays } = preview(&app.database.pool, change).await.change
        else {
            panic!("a merge");
        };
        assert_eq!(merge(&app, from_id, into_id).await, Outcome::Done);

        let merged = merging::merged(&goes, &stays);
        // The provider says of the remaining identity what it said before, so the sign-in changes nothing.
        let stays = app.sign_in(&into).await.json()["user"].clone();
        let expected = json!([merged.email, merged.email_verified, merged.name, merged.picture]);
        assert_eq!(
            json!([stays["email"], stays["email_verified"], stays["name"], stays["picture"]]),
            expected,
            "{number}"
        );
        let kept = into["email"].as_str().or(from["email"].as_str());
        assert_eq!(merged.email.as_deref(), kept, "{number}");
        let proved = if into["email"].is_string() { &into } else { &from };
        assert_eq!(merged.email_verified, kept.is_some() && proved["email_verified"] == "true", "{number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_who_is_disabled_gets_back_in_by_a_merge() {
    let app = App::start().await;
    for (number, disabled) in ["from", "into", "both"].into_iter().enumerate() {
        let person = |role: &str| {
            let subject = format!("{role}-{number}");
            claims(&subject, &format!("{subject}@example.com"))
        };
        let (from, into) = (app.sign_in(&person("from")).await, app.sign_in(&person("into")).await);
        for (role, who) in [("from", &from), ("into", &into)] {
            if disabled == role || disabled == "both" {
                act(&app, Change::Disable { user: user(who) }).await;
            }
        }
        assert_eq!(merge(&app, user(&from), user(&into)).await, Outcome::Done, "{disabled}");
        for role in ["from", "into"] {
            assert_eq!(app.sign_in(&person(role)).await.error(), "user_disabled", "{disabled}");
        }
        act(&app, Change::Enable { user: user(&into) }).await;
        for session in [&from, &into] {
            assert_eq!(alive(&app, session).await, (false, false), "{disabled}: what ended stays so");
        }
        assert_eq!(user(&app.sign_in(&person("from")).await), user(&into), "{disabled}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_of_anybody_but_who_was_looked_at_changes_nothing() {
    let app = App::start().await;
    let pool = &app.database.pool;
    let from = app.sign_in(&claims("from", "from@example.com")).await;
    let into = app.sign_in(&claims("into", "into@example.com")).await;
    let (from_id, into_id) = (user(&from), user(&into));
    let other_picture =
        with(claims("into", "into@example.com"), &json!({ "picture": "https://pictures.example/new" }));
    let merge = Change::Merge { from: from_id, into: into_id };
    for change in ["identity", "session", "picture", "identity's address", "direction", "garbage"] {
        let seen = preview(pool, merge).await.fingerprint();
        let (mut made, mut shown) = (merge, seen.as_str());
        match change {
            "identity" => {
                app.link(&into.access_token(), "second", &at("second", "new", "")).await;
            }
            "session" => act(&app, Change::EndSessions { user: from_id }).await,
            "picture" => {
                app.sign_in(&other_picture).await;
            }
            "identity's address" => {
                let address = json!({ "email": "other@example.com", "email_verified": false });
                app.sign_in(&with(claims("from", ""), &address)).await;
            }
            "direction" => made = Change::Merge { from: into_id, into: from_id },
            _ => shown = "",
        }
        let before = app.database.everything(&[]).await;
        assert_eq!(apply(pool, made, shown).await, Outcome::Changed, "{change}");
        assert_eq!(app.database.everything(&[]).await, before, "{change}");
    }
    // A new session is no reason to look again.
    let seen = preview(pool, merge).await.fingerprint();
    app.sign_in(&other_picture).await;
    let seen_again = preview(pool, merge).await;
    assert_eq!(seen_again.fingerprint(), seen, "{seen_again:?}");
    assert_eq!(apply(pool, merge, &seen).await, Outcome::Done);
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_do_not_merge_themselves_away_and_nobody_with_themselves() {
    let app = App::start().await;
    let pool = &app.database.pool;
    let me = user(&app.sign_in(&claims("me", STAFF)).await);
    let other = user(&app.sign_in(&claims("other", "other@example.com")).await);
    let nobody = Uuid::now_v7();
    let before = app.database.everything(&[]).await;
    let refused = Outcome::Refused(Refused::OwnAccount);
    for (from, into, expected) in [
        (me, other, refused),
        (me, me, Outcome::NotFound),
        (nobody, other, Outcome::NotFound),
        (other, nobody, Outcome::NotFound),
    ] {
        let merge = Change::Merge { from, into };
        let preview = changes::preview(pool, merge, STAFF).await.unwrap();
        let seen = preview.map(|preview| preview.fingerprint()).unwrap_or_default();
        assert_eq!(apply(pool, merge, &seen).await, expected);
        assert_eq!(app.database.everything(&[]).await, before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_remains_was_last_seen_when_either_was() {
    let app = App::start().await;
    for (number, (from_days, into_days)) in [(1, 5), (5, 1), (3, 3)].into_iter().enumerate() {
        let mut ids = Vec::new();
        for (role, days) in [("from", from_days), ("into", into_days)] {
            let subject = format!("{role}-{number}");
            let id = user(&app.sign_in(&claims(&subject, &format!("{subject}@example.com"))).await);
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
                let found = directory::user(&app.database.pool, *id).await.unwrap();
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

/// Whatever links or unlinks marks the user as changed. Were that ever forgotten, an identity that the merge knows
/// nothing of would be taken from one user and given to nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_merge_that_knows_of_fewer_identities_than_there_are_is_not_made() {
    let app = App::start().await;
    let pool = &app.database.pool;
    let from = app.sign_in(&claims("from", "from@example.com")).await;
    assert_eq!(
        app.link(&from.access_token(), "second", &at("second", "from-2", "")).await.status.as_u16(),
        201
    );
    let into = app.sign_in(&claims("into", "into@example.com")).await;
    let mut pair = Vec::new();
    for user in [user(&from), user(&into)] {
        pair.extend(store::users(pool, &[user]).await.unwrap());
    }
    let [mut from, into] = <[_; 2]>::try_from(pair).expect("two users");
    from.identities.pop().expect("one of two");
    let before = app.database.everything(&[]).await;
    let _ = store::merge(pool, &from, &into, store::MergedBy::Staff(by())).await.unwrap();
    assert_eq!(app.database.everything(&[]).await, before);
}
