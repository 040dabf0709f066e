//! Linking of identities to users, and protection against takeovers.

use serde_json::{Value, json};
use sqlx::Executor;
use vestibule::admin::changes::decision::Refused;
use vestibule::admin::changes::{Change, Outcome};

use crate::support::app::{Answer, App};
use crate::support::problem::assert_problem;
use crate::support::race::{at_once, rounds};
use crate::support::token::{at, claims, now, unverified, with};

async fn assert_refused(app: &App, answer: &Answer, before: [usize; 3], status: u16, error: &str) {
    assert_problem(answer, status, error);
    assert_eq!(
        app.database.rows().await,
        before,
        "a refusal writes nothing"
    );
}

/// Returns the user's id and the address in the response.
fn shown(answer: &Answer) -> (String, Value) {
    (answer.user_id(), answer.json()["user"]["email"].clone())
}

async fn events(app: &App) -> Vec<(String, Option<String>)> {
    app.database
        .all("SELECT kind, reason FROM events ORDER BY id")
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn subjects_and_addresses_that_merely_look_alike_are_different_people() {
    let app = App::start().await;
    let people = [
        ("AbC", "a.b+tag@gmail.com"),
        ("aBc", "ab@gmail.com"),
        ("abc", "ab@googlemail.com"),
        ("ABC", "\u{430}b@gmail.com"),
    ];
    for (subject, email) in people {
        assert_eq!(
            app.sign_in(&claims(subject, email)).await.outcome(),
            "created",
            "{subject} {email}"
        );
    }
    let elsewhere = at("second", people[0].0, "elsewhere@example.com");
    assert_eq!(
        app.sign_in_at("second", &elsewhere).await.outcome(),
        "created",
        "one subject at two providers"
    );
    assert_eq!(app.database.rows().await, [5, 5, 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_one_address_is_no_address_and_joins_nobody() {
    let app = App::start().await;
    let long = format!("{}@example.com", "a".repeat(400));
    let odd = [
        Value::Null,
        json!(""),
        json!(["victim@example.com"]),
        json!("a@example.com,victim@example.com"),
        json!("N <victim@example.com>"),
        json!("victim@example.com\r\nBcc: a@example.com"),
        json!(long),
        json!("victim"),
        json!(1),
    ];
    app.sign_in(&claims("victim", "victim@example.com")).await;
    for (number, email) in odd.iter().enumerate() {
        let subject = format!("subject-{number}");
        let answer = app
            .sign_in(&with(claims(&subject, ""), &json!({ "email": email })))
            .await;
        assert_eq!(answer.outcome(), "created", "{email}");
        assert_eq!(answer.json()["user"]["email"], Value::Null, "{email}");
        assert_eq!(answer.json()["user"]["email_verified"], false, "{email}");
    }
    let users = odd.len() + 1;
    assert_eq!(app.database.rows().await, [users; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_address_follows_only_when_it_is_verified_and_free() {
    let app = App::start().await;
    let user = app
        .sign_in(&claims("subject-1", "old@example.com"))
        .await
        .user_id();
    app.sign_in(&claims("subject-2", "taken@example.com")).await;

    for (claimed, shown) in [
        (claims("subject-1", "taken@example.com"), "old@example.com"),
        (
            unverified(claims("subject-1", "new@example.com")),
            "old@example.com",
        ),
    ] {
        let answer = app.sign_in(&claimed).await;
        assert_eq!(
            (answer.outcome().as_str(), answer.user_id()),
            ("signed_in", user.clone())
        );
        assert_eq!(answer.json()["user"]["email"], shown);
        assert_eq!(answer.json()["identity"]["email"], claimed["email"]);
        // Resets the address for the next row.
        app.sign_in(&claims("subject-1", "old@example.com")).await;
    }
    let answer = app.sign_in(&claims("subject-1", "New@example.com")).await;
    assert_eq!(shown(&answer), (user, json!("new@example.com")));

    // The former address is free again and leads to no user.
    let stranger = app
        .sign_in_at("second", &at("second", "stranger", "old@example.com"))
        .await;
    assert_eq!(stranger.outcome(), "created");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_address_ignores_changes_of_identities_it_never_came_from() {
    let app = App::start().await;
    app.sign_in(&claims("subject-1", "ada@example.com")).await;
    app.sign_in_at("second", &at("second", "subject-2", "ada@example.com"))
        .await;
    let moved = app.sign_in(&claims("subject-1", "ada@new.example")).await;
    assert_eq!(moved.json()["user"]["email"], "ada@new.example");
    let bare = with(at("third", "subject-3", ""), &json!({ "email": null }));
    assert_eq!(
        app.link(&moved.access_token(), "third", &bare).await.status,
        201
    );
    for (provider, subject, email) in [
        ("second", "subject-2", "ada@example.com"),
        ("second", "subject-2", "ada@example.com"),
        ("third", "subject-3", "other@example.com"),
    ] {
        let other = app
            .sign_in_at(provider, &at(provider, subject, email))
            .await;
        assert_eq!(
            shown(&other),
            (moved.user_id(), json!("ada@new.example")),
            "{provider}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_nobody_proved_did_not_change_hands() {
    let app = App::start_with(|figment| figment.merge(("idp.recycled_email", "refuse"))).await;
    app.sign_in(&unverified(claims("squatter", "ada@example.com")))
        .await;
    let owner = app.sign_in(&claims("owner", "ada@example.com")).await;
    assert_eq!(owner.outcome(), "created", "{}", owner.text);
    assert_eq!(
        app.database.rows().await,
        [2, 2, 2],
        "each has an account of their own"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_support_replaced_leads_to_nobody_any_more() {
    let app = App::start().await;
    let user = app.sign_in(&claims("subject-1", "old@example.com")).await;
    app.database
        .run("UPDATE users SET email = 'new@example.com'")
        .await;
    let stranger = app
        .sign_in_at("second", &at("second", "stranger", "old@example.com"))
        .await;
    assert_eq!(stranger.outcome(), "created");
    assert_ne!(stranger.user_id(), user.user_id());
    let back = app.sign_in(&claims("subject-1", "old@example.com")).await;
    assert_eq!(shown(&back), (user.user_id(), json!("new@example.com")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verified_owner_takes_an_address_from_an_unverified_user() {
    let app = App::start().await;
    let squatter = app
        .sign_in(&unverified(claims("squatter", "victim@example.com")))
        .await;
    assert_eq!(squatter.outcome(), "created");
    assert_eq!(squatter.json()["user"]["email_verified"], false);
    let owner = app
        .sign_in_at("second", &at("second", "owner", "victim@example.com"))
        .await;
    assert_eq!(
        (owner.status.as_u16(), owner.outcome().as_str()),
        (201, "created"),
        "{}",
        owner.text
    );
    assert_ne!(
        owner.user_id(),
        squatter.user_id(),
        "no user id passes to somebody else"
    );
    assert_eq!(owner.json()["user"]["email"], "victim@example.com");
    assert_eq!(owner.json()["user"]["email_verified"], true);
    assert_eq!(app.database.rows().await, [2, 2, 2]);
    let told = events(&app).await;
    for expected in [
        ("email_lost", "email_proven"),
        ("user_created", "email_proven"),
    ] {
        assert!(
            told.contains(&(expected.0.into(), Some(expected.1.into()))),
            "{told:?}"
        );
    }

    // The squatter keeps the user and the session, without the address.
    assert_eq!(app.refresh(&squatter.refresh_token()).await.status, 200);
    let back = app
        .sign_in(&unverified(claims("squatter", "victim@example.com")))
        .await;
    assert_eq!(shown(&back), (squatter.user_id(), Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_a_linked_verified_identity_survives_a_mistyped_address() {
    let app = App::start().await;
    let user = app
        .sign_in(&unverified(claims("subject", "mistyped@example.com")))
        .await;
    let proven = at("second", "subject", "right@example.com");
    assert_eq!(
        app.link(&user.access_token(), "second", &proven)
            .await
            .status,
        201
    );
    let me = app.get(&user.access_token(), "/api/v1/me").await.json();
    assert_eq!(
        (&me["email"], &me["email_verified"]),
        (&json!("right@example.com"), &json!(true))
    );

    let stranger = app
        .sign_in_at("third", &at("third", "stranger", "mistyped@example.com"))
        .await;
    assert_eq!(stranger.outcome(), "created");
    let again = app.sign_in_at("second", &proven).await;
    assert_eq!(
        (again.outcome(), again.user_id()),
        ("signed_in".into(), user.user_id())
    );
    let other = app
        .sign_in_at("fourth", &at("fourth", "new", "right@example.com"))
        .await;
    assert_eq!(other.user_id(), user.user_id());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_linked_identity_verifies_the_users_address_but_takes_no_other() {
    let app = App::start().await;
    app.sign_in(&claims("grace", "grace@example.com")).await;
    for (subject, linked, shown, verified) in [
        ("same", "same@example.com", "same@example.com", true),
        ("taken", "grace@example.com", "taken@example.com", false),
    ] {
        let user = app
            .sign_in(&unverified(claims(
                subject,
                &format!("{subject}@example.com"),
            )))
            .await;
        let answer = app
            .link(
                &user.access_token(),
                "second",
                &at("second", subject, linked),
            )
            .await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let me = app.get(&user.access_token(), "/api/v1/me").await.json();
        assert_eq!(
            (&me["email"], &me["email_verified"]),
            (&json!(shown), &json!(verified)),
            "{subject}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unclaimed_imported_user_is_linked_only_by_a_verified_address() {
    let app = App::start().await;
    let import = "INSERT INTO users (id, email, email_verified, imported_at)
                  VALUES (gen_random_uuid(), 'ada@example.com', false, now())";
    app.database.run(import).await;
    let claimed = app
        .sign_in(&unverified(claims("stranger", "ada@example.com")))
        .await;
    assert_eq!(claimed.error(), "link_required");
    let owner = app.sign_in(&claims("ada", "ada@example.com")).await;
    assert_eq!(
        (
            owner.outcome().as_str(),
            &owner.json()["user"]["email_verified"]
        ),
        ("linked", &json!(true))
    );
    assert_eq!(app.database.rows().await, [1, 1, 1]);

    // An imported user with an identity belongs to the owner of that identity.
    let import = "WITH imported AS (INSERT INTO users (id, email, email_verified, imported_at)
                      VALUES (gen_random_uuid(), 'bob@example.com', false, now()) RETURNING id)
                  INSERT INTO identities (id, user_id, provider, subject, email)
                  SELECT gen_random_uuid(), id, 'second', 'mallory', 'bob@example.com' FROM imported";
    app.database.run(import).await;
    let owner = app.sign_in(&claims("bob", "bob@example.com")).await;
    assert_eq!(owner.outcome(), "created");
    let mallory = app
        .sign_in_at(
            "second",
            &unverified(at("second", "mallory", "bob@example.com")),
        )
        .await;
    assert_eq!(mallory.outcome(), "signed_in");
    assert_ne!(mallory.user_id(), owner.user_id());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_provider_that_may_link_verifies_a_changed_address() {
    let app = App::start_with(|figment| figment.merge(("providers.second.link", "never"))).await;
    let first = app
        .sign_in_at("second", &at("second", "subject", "old@example.com"))
        .await;
    assert_eq!(first.json()["user"]["email_verified"], false);
    let moved = app
        .sign_in_at("second", &at("second", "subject", "ceo@example.com"))
        .await;
    assert_eq!(shown(&moved), (first.user_id(), json!("old@example.com")));
    assert_eq!(
        app.sign_in(&claims("ceo", "ceo@example.com"))
            .await
            .outcome(),
        "created"
    );
    let owner = app.sign_in(&claims("owner", "old@example.com")).await;
    assert_eq!(
        owner.outcome(),
        "created",
        "nobody is joined to such a user"
    );
    assert_ne!(owner.user_id(), first.user_id());
    let again = app
        .sign_in_at("second", &at("second", "subject", "old@example.com"))
        .await;
    assert_eq!(again.user_id(), first.user_id(), "both are in");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_user_is_refused_and_only_the_event_is_written() {
    let app = App::start().await;
    app.sign_in(&claims("subject-1", "ada@example.com")).await;
    app.database
        .run("UPDATE users SET disabled_at = now()")
        .await;
    let before = app.database.rows().await;
    let known = app.sign_in(&claims("subject-1", "ada@example.com")).await;
    assert_refused(&app, &known, before, 403, "user_disabled").await;
    let new = app
        .sign_in_at("second", &at("second", "subject-2", "ada@example.com"))
        .await;
    assert_refused(&app, &new, before, 403, "user_disabled").await;
    // A refusal for an unverified address reveals nothing about the user.
    let stranger = app
        .sign_in(&unverified(claims("stranger", "ada@example.com")))
        .await;
    assert_refused(&app, &stranger, before, 409, "link_required").await;
    let refused = |reason: &str| ("sign_in_refused".to_owned(), Some(reason.to_owned()));
    let expected = [
        refused("user_disabled"),
        refused("user_disabled"),
        refused("link_required"),
    ];
    assert_eq!(events(&app).await[1..], expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_providers_second_subject_is_linked_or_refused_by_its_setting() {
    let app =
        App::start_with(|figment| figment.merge(("providers.second.recycled_email", "refuse")))
            .await;
    app.sign_in(&claims("subject-1", "ada@example.com")).await;
    let linked = app.sign_in(&claims("subject-2", "ada@example.com")).await;
    assert_eq!(linked.outcome(), "linked");
    assert_eq!(
        events(&app).await.last().unwrap(),
        &("identity_linked".into(), Some("same_provider".into()))
    );

    let first = app
        .sign_in_at("second", &at("second", "subject-3", "ada@example.com"))
        .await;
    assert_eq!(
        first.outcome(),
        "linked",
        "the first of its provider is no conflict"
    );
    let before = app.database.rows().await;
    let second = app
        .sign_in_at("second", &at("second", "subject-4", "ada@example.com"))
        .await;
    assert_refused(&app, &second, before, 409, "identity_conflict").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_setting_of_a_provider_decides_as_documented() {
    let app = App::start_with(|figment| {
        figment
            .merge(("idp.link", "never"))
            .merge(("providers.second.link", "authoritative"))
            .merge(("providers.third.unverified_email", "refuse"))
            .merge(("providers.third.missing_email", "refuse"))
            .merge(("providers.fourth.trust_email", "true"))
    })
    .await;
    app.sign_in_at("third", &at("third", "subject", "ada@example.com"))
        .await;
    app.sign_in_at("third", &at("third", "gmail", "ada@gmail.com"))
        .await;
    let hosted = with(
        at("second", "hosted", "ada@example.com"),
        &json!({ "hd": "example.com" }),
    );
    let absent = with(
        at("fourth", "absent", "ada@example.com"),
        &json!({ "email_verified": null }),
    );
    let rows = [
        (
            "idp",
            claims("never", "ada@example.com"),
            409,
            "link_required",
        ),
        (
            "second",
            at("second", "plain", "ada@example.com"),
            409,
            "link_required",
        ),
        (
            "second",
            at("second", "mailbox", "Ada@Gmail.com"),
            200,
            "linked",
        ),
        ("second", hosted, 200, "linked"),
        (
            "third",
            unverified(at("third", "taken", "ada@example.com")),
            422,
            "email_not_verified",
        ),
        (
            "third",
            unverified(at("third", "free", "free@example.com")),
            422,
            "email_not_verified",
        ),
        (
            "third",
            with(at("third", "none", ""), &json!({ "email": null })),
            422,
            "email_missing",
        ),
        ("fourth", absent, 200, "linked"),
        (
            "fourth",
            unverified(at("fourth", "denied", "ada@example.com")),
            409,
            "link_required",
        ),
    ];
    for (provider, claims, status, name) in rows {
        let answer = app.sign_in_at(provider, &claims).await;
        let got = if answer.status.is_success() {
            answer.outcome()
        } else {
            answer.error()
        };
        assert_eq!(
            (answer.status.as_u16(), got.as_str()),
            (status, name),
            "{provider} {claims}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_itself_refuses_what_the_rules_exclude() {
    let app = App::start().await;
    app.sign_in(&claims("subject-1", "ada@example.com")).await;
    let statements = [
        (
            "users_email_key",
            "INSERT INTO users (id, email) VALUES (gen_random_uuid(), 'ada@example.com')",
        ),
        (
            "users_email_folded",
            "INSERT INTO users (id, email) VALUES (gen_random_uuid(), 'Ada@example.com')",
        ),
        (
            "users_email_present",
            "INSERT INTO users (id, email) VALUES (gen_random_uuid(), '')",
        ),
        (
            "identities_provider_subject_key",
            "INSERT INTO identities (id, user_id, provider, subject) SELECT gen_random_uuid(), id, 'idp', 'subject-1' FROM users",
        ),
        (
            "identities_user_id_fkey",
            "INSERT INTO identities (id, user_id, provider, subject) VALUES (gen_random_uuid(), gen_random_uuid(), 'idp', 'x')",
        ),
        (
            "sessions_parent_hash_length",
            "UPDATE sessions SET parent_hash = 'short'",
        ),
        (
            "sessions_token_hash_length",
            "UPDATE sessions SET token_hash = 'short'",
        ),
    ];
    for (constraint, sql) in statements {
        let error = sqlx::query(sql)
            .execute(&app.database.pool)
            .await
            .unwrap_err();
        assert_eq!(
            error.as_database_error().unwrap().constraint(),
            Some(constraint),
            "{error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn linking_takes_no_token_older_than_the_reauthentication_window() {
    let app = App::start().await;
    let ada = app
        .sign_in(&claims("ada", "ada@example.com"))
        .await
        .access_token();
    let before = app.database.rows().await;
    let found = |age: i64| {
        with(
            at("second", "grace", "grace@example.com"),
            &json!({ "iat": now() - age }),
        )
    };
    for age in [601, 22 * 3600] {
        let answer = app.link(&ada, "second", &found(age)).await;
        assert_refused(&app, &answer, before, 422, "token_expired").await;
    }
    assert_eq!(app.link(&ada, "second", &found(590)).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_has_at_most_twenty_identities_at_every_door() {
    let app = App::start().await;
    let ada = app.sign_in(&claims("ada", "ada@example.com")).await;
    let token = ada.access_token();
    for number in 1..20 {
        let linked = app
            .link(
                &token,
                "second",
                &at("second", &format!("ada-{number}"), ""),
            )
            .await;
        assert_eq!(linked.status, 201, "{number}");
    }
    let other = app.sign_in_at("third", &at("third", "other", "")).await;
    let before = app.database.rows().await;
    let linked = app
        .link(&token, "second", &at("second", "ada-20", ""))
        .await;
    assert_refused(&app, &linked, before, 409, "too_many_identities").await;
    let by_address = app
        .sign_in_at("third", &at("third", "ada", "ada@example.com"))
        .await;
    assert_refused(&app, &by_address, before, 409, "too_many_identities").await;
    let merged = app.merge(&token, "third", &at("third", "other", "")).await;
    assert_refused(&app, &merged, before, 409, "too_many_identities").await;
    let full = Some(Outcome::Refused(Refused::TooManyIdentities));
    let from = other.user();
    let into = ada.user();
    assert_eq!(app.by_staff(Change::Merge { from, into }).await, full);
    assert_eq!(
        app.by_staff(Change::Move {
            identity: other.identity(),
            from,
            to: into
        })
        .await,
        full
    );
    assert_eq!(
        app.link(&token, "second", &at("second", "ada-19", ""))
            .await
            .status,
        200,
        "it is linked"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn links_at_once_leave_a_user_with_twenty_identities() {
    let app = std::sync::Arc::new(App::start().await);
    for round in 0..rounds() {
        let token = app
            .sign_in(&claims(&format!("{round}"), ""))
            .await
            .access_token();
        for number in 1..19 {
            app.database.pool.execute(sqlx::query(
                "INSERT INTO identities (id, user_id, provider, subject)
                 SELECT gen_random_uuid(), user_id, 'third', subject || '-' || $2 FROM identities WHERE subject = $1",
            ).bind(round.to_string()).bind(number.to_string())).await.unwrap();
        }
        let link = |number: usize| {
            let app = app.clone();
            let token = token.clone();
            async move {
                app.link(
                    &token,
                    "second",
                    &at("second", &format!("{round}-{number}"), ""),
                )
                .await
                .status
                .as_u16()
            }
        };
        let (one, other) = at_once(link(1), link(2)).await;
        assert_eq!((one.min(other), one.max(other)), (201, 409), "{round}");
    }
}
