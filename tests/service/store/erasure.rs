//! A deletion erases the user's addresses from all events, however many contain them.

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;
use vestibule::accounts::users;
use vestibule::accounts::users::Deletion;
use vestibule::admin::changes::{Change, Outcome};
use vestibule::admin::staff::sign_in::store as staff;
use vestibule::admin::staff::sign_in::store::{Candidate, Stranger};
use vestibule::admin::staff::store as access;
use vestibule::domain::actor::{Actor, Author, Origin};
use vestibule::domain::api_key::KeyRole;
use vestibule::domain::staff::Role;
use vestibule::events::EventKind;
use vestibule::events::erasure::erase;
use vestibule::events::record::{DataAccess, record_access};
use vestibule::prune::prune;

use crate::support::app::{App, LIMITS, made};
use crate::support::token::{at, claims, unverified};

const ADA: &str = "ada@example.com";

/// Records refused attempts with Ada's address.
async fn claim(app: &App, times: i32) {
    run!(&app.database.pool, "INSERT INTO events (id, kind, email, ip, user_agent, detail)
         SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'sign_in_refused', $1, '192.0.2.1', 'a phone',
                '{\"claimed_issuer\": \"https://other.example\"}'
         FROM generate_series(1, $2) AS n", ADA, times);
}

/// Counts the events that contain the address in any way, and the addresses that are still to be
/// erased.
async fn traces(app: &App, address: &str) -> (i64, i64) {
    sqlx::query_as(
        "SELECT (SELECT count(*) FROM events e WHERE strpos(lower(e::text), lower($1)) > 0),
                (SELECT count(*) FROM pending_erasures WHERE value = $1)",
    )
    .bind(address)
    .fetch_one(&app.database.pool)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_named_in_many_refusals_is_erased_after_deletion() {
    let app = App::start().await;
    let ada = app.sign_in(&claims("ada", ADA)).await;
    claim(&app, 300_000).await;
    assert_eq!(
        app.delete(&ada.access_token(), "/api/v1/me").await.status,
        204
    );
    assert_eq!(app.database.rows().await, [0; 3]);
    // Pruning erases the rest, which took too long for the request.
    let (left, _) = traces(&app, ADA).await;
    assert!(left < 300_000, "the deletion itself has begun with it");
    let pruned = prune(&app.database.service, LIMITS).await.unwrap();
    assert_eq!(i64::try_from(pruned.forgotten).unwrap(), left);
    assert_eq!(traces(&app, ADA).await, (0, 0));
    let kept = "SELECT count(*) FROM events WHERE kind = 'sign_in_refused' AND ip IS NULL AND detail IS NULL";
    assert_eq!(
        app.database.count(kept).await,
        300_000,
        "that they were refused is still known"
    );
}

/// Deletes a user as the user's own request does.
async fn delete(pool: &PgPool, user: Uuid) -> Deletion {
    let sql = "SELECT s.id FROM sessions s JOIN identities i ON i.id = s.identity_id WHERE i.user_id = $1 LIMIT 1";
    let session = value!(pool, sql, user);
    users::delete(
        &pool.clone().into(),
        user,
        None,
        Author::user(session, &Origin::default()),
    )
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn any_instance_finishes_an_erasure_and_spares_the_next_user() {
    let app = App::start().await;
    let pool = &app.database.pool;
    let ada = app.sign_in(&claims("ada", ADA)).await.user();
    claim(&app, 2_500).await;
    let deleted = delete(pool, ada).await;
    let Deletion::Done(mut left) = deleted else {
        panic!("{deleted:?}")
    };
    left.sort();
    assert_eq!(left, [ada.to_string(), ADA.to_owned()]);
    assert_eq!(
        erase(&app.database.service, None).await.unwrap(),
        Some(1),
        "her sign-in"
    );
    assert_eq!(
        traces(&app, ADA).await,
        (2_500, 2),
        "the statement that deletes is as long for everybody"
    );

    assert_eq!(app.sign_in(&claims("next", ADA)).await.outcome(), "created");
    assert_eq!(
        app.sign_in(&unverified(claims("stranger", ADA)))
            .await
            .error(),
        "link_required"
    );

    assert_eq!(
        erase(
            &app.database.service,
            Some(&["grace@example.com".to_owned()])
        )
        .await
        .unwrap(),
        None
    );
    assert_eq!(
        erase(&app.database.service, None).await.unwrap(),
        Some(1_000)
    );
    assert_eq!(traces(&app, ADA).await, (1_501, 2));
    let (one, other) = tokio::join!(
        prune(&app.database.service, LIMITS),
        prune(&app.database.service, LIMITS)
    );
    assert_eq!(one.unwrap().forgotten + other.unwrap().forgotten, 1_500);
    assert_eq!(traces(&app, ADA).await, (1, 0));
    let kept = "SELECT count(*) FROM events WHERE kind = 'sign_in_refused' AND email = 'ada@example.com' AND ip IS NOT NULL";
    assert_eq!(
        app.database.count(kept).await,
        1,
        "an attempt on the next user's account"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_searches_and_refused_staff_are_erased_with_an_address() {
    for (by_staff, address) in [(false, ADA), (true, "zoë.o'hara+tag@example.com")] {
        let app = App::start().await;
        let pool = &app.database.pool;
        let signed_in = app.sign_in(&claims("subject", address)).await;
        let user = signed_in.user();
        let origin = Origin {
            ip: "192.0.2.7".parse().ok(),
            user_agent: Some("a browser".into()),
            request_id: "request-1".into(),
        };
        let candidate = Candidate {
            email: address,
            provider: "idp",
            subject: "stranger",
            unproven: None,
            before: None,
        };
        let admission = staff::open_session(&app.database.service, candidate, &[1; 32], &origin)
            .await
            .unwrap();
        assert_eq!(admission, Err(Stranger::NotStaff));
        let shouted = address.to_uppercase().replace('Ë', "ë");
        let within = format!("  Ada <{address}> ");
        let other = address.replace("example", "EXAMPLE");
        let searches = [
            (EventKind::UsersViewed, vec![("q", shouted.as_str())]),
            (EventKind::UsersExported, vec![("q", &within)]),
            (
                EventKind::UsersViewed,
                vec![("q", address), ("status", "active")],
            ),
            (
                EventKind::AuditViewed,
                vec![("email", &other), ("what", "refused")],
            ),
            (EventKind::AuditExported, vec![("actor", address)]),
        ];
        let others = [
            (EventKind::UsersViewed, vec![("q", "grace@example.com")]),
            (EventKind::AuditViewed, vec![("email", "grace@example.com")]),
            (EventKind::UsersViewed, vec![("q", "Ada")]),
        ];
        let by = Author {
            actor: Actor::Operator("staff@example.com"),
            reason: Some("asked by phone"),
            origin: &origin,
        };
        access::add(&app.database.service, "staff@example.com", Role::Admin, by)
            .await
            .unwrap();
        for (kind, search) in searches.iter().chain(&others) {
            let look = DataAccess {
                kind: *kind,
                user: None,
                search,
                reason: None,
            };
            assert!(
                record_access(
                    &app.database.service,
                    look,
                    Actor::Staff("staff@example.com"),
                    &origin
                )
                .await
                .unwrap()
            );
        }
        assert_eq!(traces(&app, address).await, (6, 0));

        if by_staff {
            let by = Author {
                actor: Actor::Staff("staff@example.com"),
                ..by
            };
            assert_eq!(
                made(pool, Change::Delete { user }, None, by).await,
                Some(Outcome::Done)
            );
        } else {
            let deleted = app.delete(&signed_in.access_token(), "/api/v1/me").await;
            assert_eq!(deleted.status, 204);
        }
        assert_eq!(traces(&app, address).await, (0, 0), "{address}");
        let refused = "SELECT count(*) FROM events WHERE kind = 'staff_refused'
                       AND actor IS NULL AND ip IS NULL AND user_agent IS NULL";
        assert_eq!(app.database.count(refused).await, 1, "{address}");
        let looks = "SELECT count(*) FROM events WHERE kind NOT IN ('user_deleted', 'staff_added')
                     AND actor = 'staff@example.com'
                     AND host(ip) = '192.0.2.7' AND user_agent = 'a browser'";
        assert_eq!(
            app.database.count(looks).await,
            8,
            "{address}: that staff looked is still known"
        );
        let kept: Vec<Value> = values!(
            pool,
            "SELECT detail->'search' FROM events WHERE detail ? 'search' ORDER BY id"
        );
        let field = |(name, text): (&str, &str)| (name.to_owned(), json!(text));
        let fields =
            others.map(|(_, search)| Value::Object(search.into_iter().map(field).collect()));
        assert_eq!(kept, fields, "{address}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_thousands_of_events_is_deleted_and_erased() {
    let app = App::start().await;
    let pool = &app.database.pool;
    let ada = app.sign_in(&claims("ada", ADA)).await.user();
    run!(pool, "INSERT INTO events (id, kind, user_id, ip, user_agent, detail)
         SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'signed_in', $1, '192.0.2.1', 'a phone', '{}'
         FROM generate_series(1, 2500) AS n", ada);
    let about = "SELECT count(*) FROM events WHERE kind <> 'user_deleted'
                 AND (ip IS NOT NULL OR user_agent IS NOT NULL OR detail IS NOT NULL)";
    let deleted = delete(pool, ada).await;
    assert!(matches!(deleted, Deletion::Done(_)), "{deleted:?}");
    assert_eq!(app.database.rows().await, [0; 3]);
    assert_eq!(
        app.database.count(about).await,
        2_501,
        "the statement that deletes is as long for everybody"
    );
    assert_eq!(erase(&app.database.service, Some(&[])).await.unwrap(), None);
    assert_eq!(
        erase(&app.database.service, None).await.unwrap(),
        Some(1_000)
    );
    // Any instance continues the interrupted erasure.
    let (one, other) = tokio::join!(
        prune(&app.database.service, LIMITS),
        prune(&app.database.service, LIMITS)
    );
    assert_eq!(one.unwrap().forgotten + other.unwrap().forgotten, 1_501);
    assert_eq!(app.database.count(about).await, 0);
    assert_eq!(
        app.database
            .count("SELECT count(*) FROM pending_erasures")
            .await,
        0
    );
    let events = app.database.count("SELECT count(*) FROM events").await;
    assert_eq!(events, 2_502, "what happened is still known");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_has_the_attempts_on_anothers_address_forgotten() {
    // Ada's address is her user's own, or only an identity of hers has it.
    for own in [ADA, "lovelace@example.com"] {
        let app =
            App::start_with(|figment| figment.merge(("providers.second.link", "never"))).await;
        // This provider verifies the address, but never links by it.
        let link = async |token: &str, subject: &str| {
            let linked = app.link(token, "second", &at("second", subject, ADA)).await;
            assert_eq!(linked.status, 201, "{}", linked.text);
        };
        let ada = app.sign_in(&claims("ada", own)).await;
        link(&ada.access_token(), "ada").await;
        claim(&app, 3).await;
        let mallory = app.sign_in(&claims("mallory", "mallory@example.com")).await;
        link(&mallory.access_token(), "mallory").await;
        assert_eq!(
            app.delete(&mallory.access_token(), "/api/v1/me")
                .await
                .status,
            204
        );
        prune(&app.database.service, LIMITS).await.unwrap();
        let kept = "SELECT count(*) FROM events WHERE kind = 'sign_in_refused' AND email = 'ada@example.com' AND ip IS NOT NULL";
        assert_eq!(app.database.count(kept).await, 3, "{own}");
        let hers = "SELECT count(*) FROM events e WHERE strpos(e::text, 'mallory@') > 0";
        assert_eq!(app.database.count(hers).await, 0, "{own}");
    }
}

/// Records events about an address without its owner: refused sign-ins, one to the admin pages, and
/// a search.
async fn evidence(app: &App, address: &str) {
    run!(
        &app.database.pool,
        "INSERT INTO events (kind, reason, email, actor, ip, user_agent, detail)
         VALUES ('sign_in_refused', 'token_expired', $1, NULL, '192.0.2.9', 'a stranger', '{\"claimed_issuer\": \"evil\"}'),
                ('staff_refused', 'another_identity', NULL, $1, '192.0.2.9', 'a stranger', '{\"stranger\": \"subject\"}'),
                ('users_viewed', NULL, $1, 'root@example.com', '192.0.2.9', 'a stranger',
                 jsonb_build_object('search', jsonb_build_object('q', $1::text)))",
        address
    );
}

/// Counts the events of [`evidence`] that are still complete.
async fn kept(app: &App, address: &str) -> i64 {
    value!(
        &app.database.pool,
        "SELECT count(*) FROM events
         WHERE $1 IN (email, actor) AND ip IS NOT NULL AND user_agent = 'a stranger' AND detail IS NOT NULL",
        address
    )
}

const BOSS: &str = "boss@example.com";

#[tokio::test(flavor = "multi_thread")]
async fn who_merely_claims_an_address_erases_no_evidence_about_it() {
    // The claimed address is the user's own, a merged user's, or a linked identity's.
    for claim in ["own", "merged", "linked"] {
        let app = App::start().await;
        evidence(&app, BOSS).await;
        let mallory = app.sign_in(&claims("mallory", "mallory@example.com")).await;
        let claims = unverified(at("second", "claim", BOSS));
        let leaves = match claim {
            "linked" => {
                let linked = app.link(&mallory.access_token(), "second", &claims).await;
                assert_eq!(linked.status, 201, "{}", linked.text);
                mallory
            }
            claim => {
                let claimed = app.sign_in_at("second", &claims).await;
                assert_eq!(claimed.outcome(), "created", "{}", claimed.text);
                if claim == "merged" {
                    let merged = app.merge(&mallory.access_token(), "second", &claims).await;
                    assert_eq!(merged.status, 200, "{}", merged.text);
                    mallory
                } else {
                    claimed
                }
            }
        };
        assert_eq!(
            app.delete(&leaves.access_token(), "/api/v1/me")
                .await
                .status,
            204,
            "{claim}"
        );
        prune(&app.database.service, LIMITS).await.unwrap();
        assert_eq!(kept(&app, BOSS).await, 3, "{claim}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_deletion_erases_evidence_about_a_member_of_staff() {
    // A member of staff may also be a user.
    for former in [false, true] {
        let app = App::start().await;
        access::add(
            &app.database.service,
            BOSS,
            Role::Support,
            Author::COMMAND_LINE,
        )
        .await
        .unwrap();
        if former {
            access::remove(&app.database.service, BOSS, Author::COMMAND_LINE)
                .await
                .unwrap();
        }
        evidence(&app, BOSS).await;
        let boss = app.sign_in(&claims("boss", BOSS)).await;
        assert_eq!(
            app.delete(&boss.access_token(), "/api/v1/me").await.status,
            204
        );
        prune(&app.database.service, LIMITS).await.unwrap();
        assert_eq!(kept(&app, BOSS).await, 3, "former: {former}");
        let own = "SELECT count(*) FROM events WHERE user_id IS NOT NULL AND email IS NOT NULL";
        assert_eq!(app.database.count(own).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_address_that_a_user_proved_earlier_is_forgotten_with_them() {
    const NEW: &str = "lovelace@example.com";
    for step in [
        "changed",
        "unlinked",
        "merged, then changed",
        "changed, then merged",
        "vouched for",
    ] {
        let app = App::start().await;
        let merge = async || {
            let grace = app
                .sign_in_at("second", &at("second", "grace", "grace@example.com"))
                .await;
            let merged = app
                .merge(&grace.access_token(), "idp", &claims("ada", NEW))
                .await;
            assert_eq!(merged.status, 200, "{}", merged.text);
            grace
        };
        if step == "vouched for" {
            let key = app.api_key("backend", KeyRole::Admin).await;
            let user = json!({ "email": ADA, "email_verified": true,
                               "identities": [{ "provider": "idp", "subject": "ada" }] });
            let made = app
                .as_user(&key, Method::POST, "/api/v1/admin/users", Some(&user))
                .await;
            assert_eq!(made.status, 201, "{}", made.text);
        } else {
            app.sign_in(&claims("ada", ADA)).await;
        }
        let last = match step {
            "unlinked" => {
                let ada = app.sign_in(&claims("ada", ADA)).await;
                let other = at("second", "ada", NEW);
                assert_eq!(
                    app.link(&ada.access_token(), "second", &other).await.status,
                    201
                );
                let session = app.sign_in_at("second", &other).await;
                let identity = format!("/api/v1/me/identities/{}", ada.identity_id());
                assert_eq!(
                    app.delete(&session.access_token(), &identity).await.status,
                    204
                );
                session
            }
            "merged, then changed" => {
                let grace = app
                    .sign_in_at("second", &at("second", "grace", "grace@example.com"))
                    .await;
                let merged = app
                    .merge(&grace.access_token(), "idp", &claims("ada", ADA))
                    .await;
                assert_eq!(merged.status, 200, "{}", merged.text);
                app.sign_in(&claims("ada", NEW)).await
            }
            "changed, then merged" => {
                app.sign_in(&claims("ada", NEW)).await;
                merge().await
            }
            _ => app.sign_in(&claims("ada", NEW)).await,
        };
        claim(&app, 3).await;
        assert_eq!(
            app.delete(&last.access_token(), "/api/v1/me").await.status,
            204,
            "{step}"
        );
        prune(&app.database.service, LIMITS).await.unwrap();
        assert_eq!(traces(&app, ADA).await, (0, 0), "{step}");
        assert_eq!(
            app.database
                .count("SELECT count(*) FROM former_addresses")
                .await,
            0,
            "{step}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_address_that_is_anothers_now_stays_with_its_owner() {
    let app = App::start().await;
    app.sign_in(&claims("ada", ADA)).await;
    let ada = app.sign_in(&claims("ada", "lovelace@example.com")).await;
    assert_eq!(app.sign_in(&claims("next", ADA)).await.outcome(), "created");
    claim(&app, 3).await;
    assert_eq!(
        app.delete(&ada.access_token(), "/api/v1/me").await.status,
        204
    );
    prune(&app.database.service, LIMITS).await.unwrap();
    let kept = "SELECT count(*) FROM events WHERE email = 'ada@example.com' AND ip IS NOT NULL";
    assert_eq!(app.database.count(kept).await, 3);
}
