//! The audit: its pages, filters, texts and export.

use reqwest::Method;
use vestibule::admin::lists::events::WALKED;
use vestibule::domain::staff::Role;

use super::{EXPORTS, file, person, staff_app_with};
use crate::support::app::Answer;
use crate::support::staff_app::Browser;

/// Returns the events on a page, the latest first.
fn events(page: &str) -> Vec<String> {
    page.split("<li class=\"event")
        .skip(1)
        .map(|event| event.split("</li>").next().unwrap().to_owned())
        .collect()
}

/// Returns the title of an event.
fn what(event: &str) -> String {
    event
        .split("<strong>")
        .nth(1)
        .unwrap()
        .split('<')
        .next()
        .unwrap()
        .to_owned()
}

/// Returns the titles of the events that a query finds, the latest first.
async fn found(browser: &mut Browser, query: &[(&str, &str)]) -> Vec<String> {
    let request = browser.request(Method::GET, "/admin/audit").query(query);
    let page = browser.send(request).await;
    assert_eq!(page.status, 200, "{query:?}");
    events(&page.text).iter().map(|event| what(event)).collect()
}

const FIRST: &str = "Signed in for the first time";
const REFUSED: &str = "Sign-in refused";

#[tokio::test(flavor = "multi_thread")]
async fn each_filter_leaves_what_it_says_and_nothing_else() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    person(&staff_app, &[("email", "grace@example.com")]).await;
    person(
        &staff_app,
        &[
            ("email", "ada@example.com"),
            ("sub", "x"),
            ("verified", "false"),
        ],
    )
    .await;
    browser
        .confirm(
            &format!("/admin/users/{}/end-sessions", ada.user_id()),
            "asked by phone",
        )
        .await;
    let ended = "Signed out everywhere by staff";
    let signed_in = "Signed in to the staff pages";
    let (id, none): (_, &[&str]) = (ada.user_id(), &[]);
    for (query, expected) in [
        (&[("what", "refused")][..], &[REFUSED][..]),
        (&[("what", "sign-ins")], &[FIRST, FIRST]),
        (&[("email", "ADA@example.com")], &[ended, REFUSED, FIRST]),
        (
            &[("email", "ada@example.com"), ("what", "refused")],
            &[REFUSED],
        ),
        (&[("email", "nobody@example.com")], none),
        (&[("email", "no address")], none),
        (&[("user", &id)], &[ended, REFUSED, FIRST]),
        (&[("user", &id), ("what", "refused")], &[REFUSED]),
        (
            &[("user", &id), ("email", "ada@example.com")],
            &[ended, REFUSED, FIRST],
        ),
        (&[("user", &id), ("email", "grace@example.com")], none),
        (&[("user", "x")], none),
        (&[("reason", "link_required")], &[REFUSED]),
        (&[("reason", "token_expired")], none),
        (&[("actor", "staff@example.com")], &[ended, signed_in]),
        (&[("actor", "staff@example.com"), ("user", &id)], &[ended]),
        (&[("what", "security")], none),
        (&[("from", "2999-01-01")], none),
        (&[("to", "2020-01-01")], none),
        (&[("to", "not a day")], none),
        (
            &[
                ("what", "refused"),
                ("from", "2020-01-01"),
                ("to", "2999-01-01"),
            ],
            &[REFUSED],
        ),
        (
            &[("what", "no such choice"), ("email", "grace@example.com")],
            &[FIRST],
        ),
        (&[("reason", "' OR true --")], none),
        (&[("provider", "idp")], &[REFUSED, FIRST, FIRST, signed_in]),
        (&[("provider", "idp"), ("what", "refused")], &[REFUSED]),
        (&[("provider", "idp"), ("user", &id)], &[REFUSED, FIRST]),
        (&[("provider", "another")], none),
        (
            &[("ip", "127.0.0.1"), ("what", "sign-ins")],
            &[FIRST, FIRST],
        ),
        (
            &[("ip", "127.0.0.0/8"), ("reason", "link_required")],
            &[REFUSED],
        ),
        (&[("ip", "192.0.2.1")], none),
        (&[("ip", "127.0.0.1/33")], none),
        (&[("ip", "' OR true --")], none),
        (
            &[
                ("from", "2020-01-01T00:00:00Z"),
                ("to", "2020-01-01T01:00:00Z"),
            ],
            none,
        ),
        (
            &[("from", "2020-01-01T00:00:00Z"), ("what", "refused")],
            &[REFUSED],
        ),
    ] {
        assert_eq!(found(&mut browser, query).await, expected, "{query:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn links_page_through_all_filtered_events_without_gaps() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    staff_app.app.database.run("INSERT INTO events (id, kind, reason, email, request_id)
         SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid,
                CASE n % 2 WHEN 0 THEN 'sign_in_refused' ELSE 'link_refused' END, 'token_expired', 'a@example.com', 'number-' || n
         FROM generate_series(1, 250) AS n").await;
    for query in [
        "what=refused",
        "reason=token_expired",
        "email=a%40example.com&what=refused",
    ] {
        let mut path = Some(format!("/admin/audit?{query}"));
        let mut seen = Vec::new();
        while let Some(current) = path {
            let page = browser.get(&current).await.text;
            let numbers = page.split("<code data-copy>number-").skip(1);
            seen.extend(numbers.filter_map(|rest| rest.split('<').next()?.parse::<u32>().ok()));
            path = page
                .split("href=\"")
                .find(|rest| rest.contains("before="))
                .map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&"));
        }
        assert_eq!(seen, (1..=250).rev().collect::<Vec<_>>(), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn staff_views_of_personal_data_are_recorded_with_the_search() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    browser
        .get(&format!("/admin/users/{}", ada.user_id()))
        .await;
    browser.get("/admin/users?q=ada").await;
    browser.get("/admin/audit?email=ada@example.com").await;
    let looks = found(&mut browser, &[("what", "looks")]).await;
    assert_eq!(
        looks,
        ["Viewed audit log", "Viewed list of users", "Viewed user"]
    );
    let page = browser.get("/admin/audit?what=looks").await.text;
    for text in [
        "by staff@example.com",
        "Asked for: ada",
        "Asked for: email: ada@example.com",
        ">127.0.0.1</a>",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    // The user's own page does not list views by staff.
    assert!(
        !browser
            .get(&format!("/admin/users/{}", ada.user_id()))
            .await
            .text
            .contains("Viewed user")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_export_streams_all_matching_events_across_several_statements() {
    let (staff_app, mut browser) = staff_app_with(EXPORTS).await;
    staff_app.app.database.run("INSERT INTO events (id, kind, reason, email, request_id)
         SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'sign_in_refused', 'token_expired',
                '=formula@example.com', 'number-' || n
         FROM generate_series(1, 4500) AS n").await;
    let request = file(&mut browser, "/admin/audit.csv?what=refused").await;
    let file = browser.send(request).await;
    assert!(file.header("content-type").unwrap().starts_with("text/csv"));
    let mut reader = csv::Reader::from_reader(file.text.as_bytes());
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    let numbers = rows.iter().map(|row| {
        row[12]
            .strip_prefix("number-")
            .unwrap()
            .parse::<u32>()
            .unwrap()
    });
    assert_eq!(
        numbers.collect::<Vec<_>>(),
        (1..=4500).rev().collect::<Vec<_>>()
    );
    assert!(
        rows.iter().all(|row| &row[6] == "'=formula@example.com"),
        "no cell is a formula"
    );
    for query in ["email=no+address", "from=-009999-01-01"] {
        let request = super::file(&mut browser, &format!("/admin/audit.csv?{query}")).await;
        let none = browser.send(request).await.text;
        assert_eq!(none.trim_end().lines().count(), 1, "{none}");
    }
    assert_eq!(
        found(&mut browser, &[("what", "looks")]).await,
        ["Exported audit log"; 3]
    );
    let page = browser.get("/admin/audit?what=looks").await.text;
    assert!(
        page.contains("Asked for: what: refused") && page.contains("Reason: asked by the auditor"),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_of_a_user_holds_what_the_users_page_shows() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let ada = person(&staff_app, &[("email", "ada@example.com"), ("sub", "ada")]).await;
    person(
        &staff_app,
        &[
            ("email", "ada@example.com"),
            ("sub", "x"),
            ("verified", "false"),
        ],
    )
    .await;
    let expired = person(
        &staff_app,
        &[("email", "ada@example.com"), ("expired", "true")],
    )
    .await;
    assert_eq!(expired.error(), "token_expired");
    person(&staff_app, &[("email", "grace@example.com")]).await;
    let user = format!("/admin/users/{}", ada.user_id());
    browser
        .confirm(&format!("{user}/disable"), "asked by phone")
        .await;
    let disabled = person(&staff_app, &[("email", "ada@example.com"), ("sub", "ada")]).await;
    assert_eq!(disabled.error(), "user_disabled");
    // A refusal that needs no query is recorded after its response.
    staff_app
        .app
        .database
        .until(
            "SELECT count(*) FROM events WHERE kind = 'sign_in_refused'",
            3,
        )
        .await;
    let head = |event: &String| {
        (
            what(event),
            event
                .split("data-copy>")
                .nth(1)
                .map(|id| id.split('<').next().unwrap().to_owned()),
        )
    };
    let page = browser.get(&user).await.text;
    let mut shown: Vec<_> = events(&page).iter().map(head).collect();
    let audit = browser
        .get(&format!("/admin/audit?user={}", ada.user_id()))
        .await
        .text;
    let mut audited: Vec<_> = events(&audit).iter().map(head).collect();
    shown.sort();
    audited.sort();
    assert_eq!(shown, audited);
    assert_eq!(audited.len(), 5, "{audited:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_describes_changes_by_providers_and_of_claims() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let ada = person(&staff_app, &[("email", "ada@example.com"), ("sub", "ada")]).await;
    person(&staff_app, &[("email", "new@example.com"), ("sub", "ada")]).await;
    staff_app.app.database.run("INSERT INTO events (id, kind, user_id, actor, detail)
         SELECT gen_random_uuid(), 'claims_changed', id, 'key:backend', '{\"reason\": \"promoted\"}' FROM users").await;
    let updated = "Updated from the provider";
    let changed = "Claims in access tokens changed";
    assert_eq!(
        found(&mut browser, &[("what", "sign-ins")]).await,
        [updated, "Signed in", FIRST]
    );
    assert_eq!(
        found(&mut browser, &[("what", "staff"), ("user", &ada.user_id())]).await,
        [changed]
    );
    let page = browser
        .get(&format!("/admin/users/{}", ada.user_id()))
        .await
        .text;
    assert!(
        page.contains(&format!("<strong>{updated}</strong> · idp · email, name")),
        "{page}"
    );
    assert!(
        page.contains(&format!("<strong>{changed}</strong> · by key:backend")),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_links_its_users_only_while_they_exist() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let ada = person(&staff_app, &[("email", "ada@example.com"), ("sub", "ada")]).await;
    let grace = person(
        &staff_app,
        &[("email", "grace@example.com"), ("sub", "grace")],
    )
    .await;
    let link = format!(
        "<a href=\"/admin/users/{}\"><bdi>ada@example.com</bdi></a>",
        ada.user_id()
    );
    assert!(browser.get("/admin/audit").await.text.contains(&link));
    let identity = ada.identity_id();
    let moved = format!("/admin/users/{}/identities/{identity}/move", ada.user_id());
    assert_eq!(
        browser
            .confirm(&format!("{moved}?to={}", grace.user_id()), "hers")
            .await
            .status,
        303
    );
    let audit = browser
        .get(&format!("/admin/audit?user={}", ada.user_id()))
        .await
        .text;
    assert!(
        audit.contains(&format!(
            "<a href=\"/admin/users/{}\">The other user</a>",
            grace.user_id()
        )),
        "{audit}"
    );

    let deleted = staff_app
        .app
        .delete(&grace.access_token(), "/api/v1/me")
        .await;
    assert_eq!(deleted.status, 204);
    let audit = browser.get("/admin/audit").await.text;
    assert!(
        !audit.contains(&format!("/admin/users/{}", grace.user_id())),
        "{audit}"
    );
    assert!(
        audit.contains(&format!(
            "<code>{}</code>, who no longer exists",
            grace.user_id()
        )),
        "{audit}"
    );
    assert!(audit.contains("The other user no longer exists"), "{audit}");
    // The remaining event of the deleted user still shows the direction of the move.
    for (user, expected) in [
        (&ada, "An identity was moved to another user"),
        (&grace, "An identity was moved here"),
    ] {
        let found = found(&mut browser, &[("user", &user.user_id())]).await;
        assert!(
            found.iter().any(|what| what.starts_with(expected)),
            "{expected}: {found:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_id_finds_the_events_of_its_request() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    let refused = person(
        &staff_app,
        &[
            ("email", "ada@example.com"),
            ("sub", "x"),
            ("verified", "false"),
        ],
    )
    .await;
    let id = |answer: &Answer| answer.header("x-request-id").unwrap().to_owned();
    let success = id(&ada);
    let refusal = id(&refused);
    assert_eq!(
        found(&mut browser, &[("request", &refusal)]).await,
        [REFUSED]
    );
    assert_eq!(
        found(&mut browser, &[("request", &refusal), ("what", "staff")]).await,
        [""; 0]
    );
    assert_eq!(found(&mut browser, &[("request", "0")]).await, [""; 0]);
    // No index covers request ids of sign-ins: the search reads the latest events, or all since a
    // day.
    assert_eq!(found(&mut browser, &[("request", &success)]).await, [FIRST]);
    assert_eq!(
        found(
            &mut browser,
            &[("request", &success), ("from", "2020-01-01")]
        )
        .await,
        [FIRST]
    );
    let event: String = staff_app
        .app
        .database
        .value("SELECT id::text FROM events WHERE kind = 'user_created'")
        .await;
    assert_eq!(
        found(&mut browser, &[("request", &event)]).await,
        [FIRST],
        "an event is found by its own id"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_filter_without_an_index_scans_stepwise_and_exports_fully() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let walked = i32::try_from(WALKED).unwrap();
    // Only the oldest and the newest event belong to the provider `rare`.
    run!(
        &staff_app.app.database.pool,
        "INSERT INTO events (id, kind, provider, ip)
         SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'signed_in',
                CASE WHEN n IN (1, $1 + 1) THEN 'rare' ELSE 'idp' END, '192.0.2.1'
         FROM generate_series(1, $1 + 1) AS n",
        walked
    );
    run!(
        &staff_app.app.database.pool,
        "DELETE FROM events WHERE kind LIKE 'staff%'"
    );
    let page = browser.get("/admin/audit?provider=rare").await.text;
    assert_eq!(events(&page).len(), 1, "{page}");
    let next = page
        .split("href=\"")
        .find(|rest| rest.contains("before="))
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let page = browser.get(&next.replace("&amp;", "&")).await.text;
    assert_eq!(
        (events(&page).len(), page.contains("before=")),
        (1, false),
        "{page}"
    );
    let request = file(&mut browser, "/admin/audit.csv?provider=rare").await;
    assert_eq!(browser.send(request).await.text.lines().count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_only_a_newer_release_knows_is_shown_by_its_name() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    let frozen = "INSERT INTO events (kind, user_id, actor)
                  SELECT 'user_frozen', id, actor
                  FROM users, (VALUES (NULL), ('key:shop')) AS a (actor)";
    staff_app.app.database.run(frozen).await;
    let unknown = "An event that this release does not know: user_frozen";
    assert_eq!(found(&mut browser, &[]).await[..2], [unknown, unknown]);
    assert_eq!(
        found(&mut browser, &[("actor", "key:shop")]).await,
        [unknown]
    );
    for category in ["staff", "changes"] {
        let page = format!("/admin/users/{}?only={category}", ada.user_id());
        let page = browser.get(&page).await.text;
        assert_eq!(page.matches(unknown).count(), 1, "{category}: {page}");
    }
}
