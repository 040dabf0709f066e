//! Search of users, explanation of their sign-ins, and corrections.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use serde_json::Value;
use vestibule::domain::staff::Role;

use super::{person, staff_app_with};
use crate::support::app::Answer;
use crate::support::staff_app::Browser;

/// Follows a search to its page.
async fn searched(browser: &mut Browser, text: &str) -> Answer {
    let request = browser
        .request(Method::GET, "/admin/users")
        .query(&[("q", text)]);
    let answer = browser.send(request).await;
    match answer.header("location") {
        Some(path) => browser.get(path).await,
        None => answer,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_sign_in_is_explained_on_user_page_and_audit() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    let refused = person(
        &staff_app,
        &[
            ("email", "ada@example.com"),
            ("sub", "other"),
            ("verified", "false"),
        ],
    )
    .await;
    assert_eq!(refused.error(), "link_required");
    let paths = [
        format!("/admin/users/{}", ada.user_id()),
        "/admin/audit?email=ADA%40example.com".into(),
    ];
    for path in paths {
        let page = browser.get(&path).await.text;
        assert!(
            page.contains("Sign-in refused</strong>: Address of another user, not proven"),
            "{path}"
        );
        assert!(
            page.contains("Tell the customer: “Sign in the way you did before."),
            "{path}"
        );
        let claimed =
            "E-mail in the token (sign-in failed, so this was not checked): ada@example.com";
        assert!(page.contains(claimed), "{path}");
    }
    for path in [
        "/admin/users/x",
        "/admin/users/00000000-0000-7000-8000-000000000000",
        "/admin/nothing",
    ] {
        assert_eq!(browser.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_page_lists_possible_duplicates_by_name_or_email() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let ada = person(
        &staff_app,
        &[("email", "ada@example.com"), ("name", "Ada Lovelace")],
    )
    .await;
    let twin = person(
        &staff_app,
        &[("email", "al@example.com"), ("name", "ÁDA  LOVELACE")],
    )
    .await;
    let grace = person(
        &staff_app,
        &[
            ("email", "grace@example.com"),
            ("sub", "g"),
            ("name", "Grace"),
        ],
    )
    .await;
    let alone = person(
        &staff_app,
        &[("email", "alan@example.com"), ("name", "Alan Turing")],
    )
    .await;
    // Grace's account at the provider gets an address that belongs to another user here.
    person(
        &staff_app,
        &[
            ("email", "ada@example.com"),
            ("sub", "g"),
            ("name", "Grace"),
        ],
    )
    .await;
    let [ada, twin, grace, alone] = [ada, twin, grace, alone].map(|answer| answer.user_id());
    for (user, expected) in [
        (
            &ada,
            &[
                (&grace, "grace@example.com", "same e-mail address"),
                (&twin, "al@example.com", "same name"),
            ][..],
        ),
        (&twin, &[(&ada, "ada@example.com", "same name")]),
        (&grace, &[(&ada, "ada@example.com", "same e-mail address")]),
        (&alone, &[]),
    ] {
        let page = browser.get(&format!("/admin/users/{user}")).await.text;
        assert_eq!(
            page.contains("Possible duplicates"),
            !expected.is_empty(),
            "{user}"
        );
        assert_eq!(
            page.matches("Compare and merge …</a>").count(),
            expected.len(),
            "{user}"
        );
        let mut rest = &*page;
        for (other, called, why) in expected {
            let line =
                format!("<li><a href=\"/admin/users/{other}\">{called}</a> · {why} · created ");
            rest = rest
                .split_once(&line)
                .unwrap_or_else(|| panic!("{line}: {page}"))
                .1;
            assert!(
                rest.contains(&format!(
                    "/admin/users/{other}/merge?into={user}&amp;back={user}\""
                )),
                "{line}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_audience_or_issuer_is_shown_to_staff_with_advice() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    staff_app.app.database.run("INSERT INTO events (id, kind, reason, provider, email, detail, user_agent)
         VALUES ('ffffffff-0000-7000-8000-000000000001', 'sign_in_refused', 'audience_mismatch', 'idp',
                 'ada@example.com', '{\"claimed_audience\": \"<b>.other.example\"}', 'Example/4.2 (iPhone; iOS 19.1)'),
                ('ffffffff-0000-7000-8000-000000000002', 'sign_in_refused', 'issuer_mismatch', 'idp',
                 'ada@example.com', '{\"claimed_issuer\": \"https://issuer.example\"}', NULL)").await;
    for path in [
        format!("/admin/users/{}", ada.user_id()),
        "/admin/audit?what=refused".into(),
    ] {
        let page = browser.get(&path).await.text;
        for expected in [
            "Received client ID: <code>&lt;b&gt;.other.example</code>",
            "Received issuer: <code>https://issuer.example</code>",
            "Pass on to the operator: the provider and the client ID that was received.",
            "Example 4.2 on iPhone, iOS 19.1",
        ] {
            assert!(page.contains(expected), "{path}: {expected}: {page}");
        }
        assert!(!page.contains('`'), "{path}: {page}");
    }
    let request = super::file(&mut browser, "/admin/audit.csv?what=refused").await;
    let file = browser.send(request).await.text;
    for expected in [
        "received_audience",
        "<b>.other.example",
        "https://issuer.example",
        "Example/4.2",
    ] {
        assert!(file.contains(expected), "{expected}: {file}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn new_devices_are_marked_but_not_new_app_versions() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    let agents = [
        "Example/4.1 (iPhone; iOS 19.0)",
        "Example/4.2 (iPhone; iOS 19.1)",
        "Example/4.2 (Pixel 9; Android 16)",
    ];
    for (number, agent) in agents.iter().enumerate() {
        run!(&staff_app.app.database.pool, "INSERT INTO events (id, kind, provider, user_id, user_agent)
             VALUES (('ffffffff-0000-7000-8000-' || lpad($1::text, 12, '0'))::uuid, 'signed_in', 'idp', $2::text::uuid, $3)", i32::try_from(number).unwrap(), ada.user_id(), agent);
    }
    run!(
        &staff_app.app.database.pool,
        "UPDATE events SET user_agent = $1 WHERE kind = 'user_created'",
        agents[0]
    );
    let page = browser
        .get(&format!("/admin/users/{}", ada.user_id()))
        .await
        .text;
    let events: Vec<_> = page
        .split("<li class=\"event")
        .skip(1)
        .map(|event| event.split("</li>").next().unwrap())
        .collect();
    let marked = events
        .iter()
        .map(|event| event.contains("new device"))
        .collect::<Vec<_>>();
    assert_eq!(marked, [true, false, false], "{page}");
    assert!(page.contains("<strong>Signed in</strong> × 2"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_end_one_session_and_no_other() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let phone = person(&staff_app, &[("email", "ada@example.com")]).await;
    let laptop = person(&staff_app, &[("email", "ada@example.com")]).await;
    let other = person(&staff_app, &[("email", "grace@example.com")]).await;
    let session = |answer: &Answer| -> String {
        let claims = answer.access_token().split('.').nth(1).unwrap().to_owned();
        let claims: Value =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
        claims["sid"].as_str().unwrap().to_owned()
    };
    let page = format!("/admin/users/{}", phone.user_id());
    let end = format!("{page}/sessions/{}/end", session(&phone));
    assert!(
        browser
            .get(&page)
            .await
            .text
            .contains(&format!("href=\"{end}\""))
    );
    let sound = [("reason", "lost the phone")];
    // A session of another user does not belong to this user.
    let elsewhere = format!("{page}/sessions/{}/end", session(&other));
    assert_eq!(browser.submit(&elsewhere, &sound).await.status, 409);
    assert_eq!(
        browser.submit(&end, &[]).await.status,
        400,
        "there is no reason"
    );
    let done = browser.submit(&end, &sound).await;
    assert_eq!(done.status, 303, "{}", done.text);
    let landed = browser.get(done.header("location").unwrap()).await.text;
    let told = "That session has ended. For up to 15 more minutes, other services may accept access tokens that were already issued.";
    for expected in [told, "Reason: lost the phone", "by staff@example.com"] {
        assert!(landed.contains(expected), "{expected}: {landed}");
    }
    for (answer, status) in [(&phone, 401), (&laptop, 200), (&other, 200)] {
        assert_eq!(
            staff_app.app.refresh(&answer.refresh_token()).await.status,
            status
        );
    }
    let again = browser.submit(&end, &sound).await;
    assert!(
        again.status == 409 && again.text.contains("has changed since you looked"),
        "{}",
        again.text
    );
    let ended = "SELECT count(*) FROM events WHERE kind = 'session_ended'";
    assert_eq!(staff_app.app.database.count(ended).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_the_database_fails_is_still_a_page() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    staff_app
        .app
        .database
        .run("ALTER TABLE identities RENAME TO gone")
        .await;
    for path in [
        "/admin/users".to_owned(),
        "/admin/users?q=ada".into(),
        format!("/admin/users/{}", ada.user_id()),
    ] {
        let answer = browser.get(&path).await;
        assert_eq!(answer.status, 500, "{path}");
        assert!(
            answer
                .header("content-type")
                .unwrap()
                .starts_with("text/html"),
            "{path}"
        );
        assert!(
            answer.text.contains(answer.header("x-request-id").unwrap()),
            "{path}"
        );
        assert!(!answer.text.contains("identities"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_attempts_on_an_address_do_not_displace_users_own_events() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let ada = person(&staff_app, &[("email", "ada@example.com"), ("sub", "ada")]).await;
    staff_app.app.database.run("INSERT INTO events (id, kind, reason, provider, email)
         SELECT ('ffffffff-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'sign_in_refused', 'token_expired', 'idp',
                'ada@example.com'
         FROM generate_series(1, 500) AS n").await;
    let page = browser
        .get(&format!("/admin/users/{}", ada.user_id()))
        .await
        .text;
    let (own, others) = page
        .split_once("Refused attempts with this e-mail address")
        .expect("both are told");
    assert!(own.contains("Signed in for the first time"), "{own}");
    assert!(!own.contains("E-mail in the token"), "{own}");
    assert!(
        others.contains("Token expired × 20")
            && others.matches("not checked): ada@example.com").count() == 1
    );
    assert!(
        others.contains("/admin/audit?email=ada%40example%2Ecom"),
        "{others}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merged_users_id_and_address_find_the_surviving_user() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let mut ids = Vec::new();
    for name in ["ada", "grace", "mary"] {
        let email = format!("{name}@example.com");
        ids.push(
            person(&staff_app, &[("email", &email), ("sub", name)])
                .await
                .user_id(),
        );
    }
    let [first, second, third] = &ids[..] else {
        unreachable!()
    };
    let line = |id: &str| format!("The user {id} was merged into");
    for id in &ids {
        assert!(
            !browser
                .get(&format!("/admin/users?q={id}"))
                .await
                .text
                .contains(&line(id)),
            "nobody is yet"
        );
    }
    for (goes, stays) in [(first, second), (second, third)] {
        let preview = format!("/admin/users/{goes}/merge?into={stays}");
        assert_eq!(
            browser.confirm(&preview, "the same person").await.status,
            303
        );
    }
    for id in [first, second] {
        let page = browser.get(&format!("/admin/users?q={id}")).await.text;
        let remains = format!("{} <a href=\"/admin/users/{third}\">", line(id));
        assert!(
            page.contains(&remains) && page.contains("mary@example.com"),
            "{page}"
        );
    }
    let page = searched(&mut browser, third).await.text;
    assert!(page.contains("mary@example.com") && !page.contains(&line(third)));
    // The user who was merged is also found by their address and subject.
    for text in ["ada@example.com", "grace"] {
        let page = searched(&mut browser, text).await.text;
        assert!(page.contains("mary@example.com"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn merge_candidates_show_creation_date_last_use_and_id() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let ada = person(
        &staff_app,
        &[
            ("email", "ada@example.com"),
            ("name", "Ada Lovelace"),
            ("sub", "1"),
        ],
    )
    .await;
    let other = person(
        &staff_app,
        &[
            ("email", "al@example.com"),
            ("name", "Ada Lovelace"),
            ("sub", "2"),
        ],
    )
    .await;
    run!(
        &staff_app.app.database.pool,
        "WITH used AS (
             UPDATE sessions s SET rotated_at = '2025-12-24' FROM identities i WHERE i.id = s.identity_id AND i.user_id = $1
         )
         UPDATE users SET created_at = '2024-02-29 12:00Z', seen_noted_on = '2025-11-24' WHERE id = $1",
        uuid::Uuid::parse_str(&other.user_id()).unwrap()
    );
    let page = browser
        .get(&format!(
            "/admin/users/{}/merge?q=lovelace+ada",
            ada.user_id()
        ))
        .await
        .text;
    for text in [
        "2024-02-29",
        "2025-12-24",
        &format!(">{}</code>", other.user_id()),
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_opens_a_single_match_a_request_or_an_address() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let ada = person(
        &staff_app,
        &[
            ("email", "ada@example.com"),
            ("name", "Ada Lovelace"),
            ("sub", "1"),
        ],
    )
    .await;
    let user = format!("/admin/users/{}", ada.user_id());
    for text in ["ada@example.com", "ADA@example.com", &ada.user_id()] {
        let found = browser
            .get(&format!("/admin/users?q={}", text.replace('@', "%40")))
            .await;
        assert_eq!(found.header("location"), Some(&*user), "{text}");
    }
    // Names are not unique, and a filter must stay visible: both searches show a list.
    for query in ["q=ada", "q=ada%40example.com&status=active"] {
        let listed = browser.get(&format!("/admin/users?{query}")).await;
        assert!(
            listed.status == 200 && listed.text.contains("ada@example.com"),
            "{query}"
        );
    }
    let request = ada.header("x-request-id").unwrap().to_owned();
    let page = searched(&mut browser, &request).await.text;
    assert!(
        page.contains("Request or receipt") && page.contains("Signed in for the first time"),
        "{page}"
    );
    let page = searched(&mut browser, "127.0.0.1").await.text;
    assert!(
        page.contains("Signed in for the first time") && page.contains("Audit log"),
        "{page}"
    );
    assert_eq!(
        staff_app
            .app
            .delete(&ada.access_token(), "/api/v1/me")
            .await
            .status,
        204
    );
    let receipt: String = staff_app
        .app
        .database
        .value("SELECT id::text FROM events WHERE kind = 'user_deleted'")
        .await;
    let page = searched(&mut browser, &receipt).await.text;
    assert!(
        page.contains(&format!("/admin/deletions/{receipt}")),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_domain_of_the_same_address_is_suggested() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    person(&staff_app, &[("email", "grace@example.com"), ("sub", "1")]).await;
    person(&staff_app, &[("email", "grace@another.org"), ("sub", "2")]).await;
    let page = searched(&mut browser, "grace@exmaple.com").await.text;
    assert!(
        page.contains("Did you mean") && page.contains("<b>grace@example.com</b>"),
        "{page}"
    );
    assert!(!page.contains("grace@another.org"), "{page}");
    assert!(
        !searched(&mut browser, "mary@exmaple.com")
            .await
            .text
            .contains("Did you mean")
    );
}
