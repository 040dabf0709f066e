//! The list of users: pages, filters, orders and counts.

use reqwest::Method;
use sqlx::PgPool;
use vestibule::domain::staff::Role;

use super::{EXPORTS, file, person, staff_app_with};
use crate::support::process::eventually;
use crate::support::staff_app::{Browser, StaffApp};

/// Adds users `user-1` to `user-<count>`, created in this order.
async fn fill(pool: &PgPool, count: i32) {
    run!(pool, "INSERT INTO users (id, email, email_verified, name, disabled_at, seen_noted_on)
         SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'user-' || n || '@example.com', n % 3 > 0,
                'Name ' || lpad((1000 - n)::text, 4, '0'), CASE WHEN n % 4 = 0 THEN now() END, current_date - n
         FROM generate_series(1, $1) AS n", count);
}

/// Returns the numbers of the users on a page.
fn listed(page: &str) -> Vec<u32> {
    page.split(">user-")
        .skip(1)
        .map(|rest| rest.split('@').next().unwrap().parse().unwrap())
        .collect()
}

/// Returns the target of the link with this `rel`.
fn link(page: &str, relation: &str) -> Option<String> {
    let before = page.split_once(&format!("\" rel=\"{relation}\""))?.0;
    Some(
        before
            .rsplit("href=\"")
            .next()
            .unwrap()
            .replace("&amp;", "&"),
    )
}

async fn ask(browser: &mut Browser, query: &[(&str, &str)]) -> String {
    let request = browser.request(Method::GET, "/admin/users").query(query);
    let answer = browser.send(request).await;
    assert_eq!(answer.status, 200, "{query:?}");
    answer.text
}

async fn full_staff_app(count: i32) -> (StaffApp, Browser) {
    let (staff_app, browser) = staff_app_with(EXPORTS).await;
    fill(&staff_app.app.database.pool, count).await;
    (staff_app, browser)
}

#[tokio::test(flavor = "multi_thread")]
async fn links_page_through_the_list_in_both_directions_with_filters() {
    let (_staff_app, mut browser) = full_staff_app(180).await;
    let by_name: Vec<u32> = (1..=180).rev().collect();
    let active: Vec<u32> = (1..=180).filter(|number| number % 4 > 0).collect();
    for (query, expected) in [
        ("", by_name.clone()),
        ("?sort=name", by_name.clone()),
        ("?sort=last_seen&status=active", active.clone()),
        ("?status=active&sort=oldest", active),
    ] {
        let mut path = Some(format!("/admin/users{query}"));
        let mut forwards = Vec::new();
        let mut pages = Vec::new();
        while let Some(current) = path {
            let page = browser.get(&current).await.text;
            assert_eq!(link(&page, "prev").is_none(), pages.is_empty(), "{query}");
            assert_eq!(link(&page, "first").is_none(), pages.is_empty(), "{query}");
            path = link(&page, "next");
            forwards.extend(listed(&page));
            pages.push(page);
        }
        assert_eq!(forwards, expected, "{query}");
        let mut backwards = Vec::new();
        let mut page = pages.pop().unwrap();
        loop {
            backwards.splice(0..0, listed(&page));
            let Some(before) = link(&page, "prev") else {
                break;
            };
            page = browser.get(&before).await.text;
        }
        assert_eq!(backwards, expected, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_times_out_suggests_narrower_filters() {
    let (staff_app, mut browser) = full_staff_app(3).await;
    let pool = &staff_app.app.database.pool;
    for (path, other_order) in [
        ("/admin/users?sort=name&status=active", true),
        ("/admin/users?status=active", false),
        ("/admin/users?q=user&status=active", false),
    ] {
        let mut locked = pool.begin().await.unwrap();
        sqlx::query("LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE")
            .execute(&mut *locked)
            .await
            .unwrap();
        // PostgreSQL cancels the statement in the same way at its timeout.
        let cancelled = eventually("the list waits", async || {
            let waiting = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
                           WHERE datname = current_database() AND wait_event_type = 'Lock'";
            (staff_app.app.database.count(waiting).await > 0).then_some(())
        });
        let (page, ()) = tokio::join!(browser.get(path), cancelled);
        locked.rollback().await.unwrap();
        assert_eq!(page.status, 200, "{}", page.text);
        assert!(
            page.text
                .contains("This list takes too long. Choose fewer days of creation"),
            "{path}"
        );
        let link = "or <a href=\"/admin/users?status=active\">the order of creation</a>";
        assert_eq!(page.text.contains(link), other_order, "{path}");
        assert!(
            page.text.contains("name=\"created_from\"") && !page.text.contains("No user matches"),
            "{path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn search_results_can_be_paged_and_exported_in_full() {
    let (_staff_app, mut browser) = full_staff_app(180).await;
    let mut expected: Vec<u32> = (1..=180).filter(|number| number % 4 > 0).collect();
    expected.sort_by_key(|number| format!("{number}@"));
    let path = "/admin/users?q=user&status=active";
    let mut next = Some(path.to_owned());
    let mut found = Vec::new();
    while let Some(current) = next {
        let page = browser.get(&current).await.text;
        assert_eq!(link(&page, "first").is_none(), found.is_empty());
        found.extend(listed(&page));
        next = link(&page, "next");
    }
    assert_eq!(found, expected);
    let request = file(&mut browser, "/admin/users.csv?q=user&status=active").await;
    let file = browser.send(request).await.text;
    assert_eq!(file.lines().count(), 1 + expected.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_stands_in_the_address_is_a_page() {
    let (_staff_app, mut browser) = full_staff_app(60).await;
    let page = ask(&mut browser, &[("sort", "name")]).await;
    let sound = link(&page, "next")
        .unwrap()
        .split_once("at=")
        .unwrap()
        .1
        .to_owned();
    let long = "x".repeat(10_000);
    let forged = format!("{}A", &sound[..sound.len() - 1]);
    for at in ["", "x", "1'; DROP TABLE users --", &long, &forged] {
        let page = ask(&mut browser, &[("sort", "name"), ("at", at)]).await;
        assert_eq!(
            listed(&page).first(),
            Some(&60),
            "{at:.20} begins at the beginning"
        );
    }
    // A cursor of another order is ignored.
    assert_eq!(
        listed(&ask(&mut browser, &[("at", &sound)]).await).len(),
        50
    );
    for (field, value) in [
        ("page", "-1"),
        ("size", "1000000000"),
        ("sort", "id; DROP TABLE users"),
        ("status", "nonsense"),
        ("unknown", "x"),
    ] {
        assert_eq!(
            listed(&ask(&mut browser, &[(field, value)]).await).len(),
            50,
            "{field}={value} is no filter"
        );
    }
    for (field, value) in [
        ("provider", "' OR 1=1 --"),
        ("provider", long.as_str()),
        ("created_from", "2026-02-30"),
        ("seen_from", "99999-01-01"),
        ("seen_to", "today"),
        ("seen_from", "9999-12-31"),
        ("created_from", "9998-12-31"),
        ("seen_from", "-009999-01-01"),
        ("seen_to", "-009999-01-01"),
        ("seen_from", "0000-12-31"),
    ] {
        let page = ask(&mut browser, &[(field, value)]).await;
        assert_eq!(listed(&page), [0; 0], "{field}={value:.20} is nobody");
        assert!(page.contains("No user matches these filters"), "{field}");
        let file = file(&mut browser, "/admin/users.csv")
            .await
            .query(&[(field, value)]);
        assert_eq!(
            browser.send(file).await.status,
            200,
            "{field}={value:.20} is an empty file"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn date_filters_use_the_readers_zone_and_stay_filled_in() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    // Half an hour before midnight in Tokyo, and half an hour after.
    for (number, time) in [(1, "2026-03-01 14:30Z"), (2, "2026-03-01 15:30Z")] {
        run!(&staff_app.app.database.pool, "INSERT INTO users (id, email, created_at)
             SELECT (lpad(to_hex((extract(epoch FROM t) * 1000)::bigint), 12, '0') || '70008000000000000000')::uuid,
                    'user-' || $1 || '@example.com', t FROM (SELECT $2::text::timestamptz AS t) AS at", number, time);
    }
    let days = [("created_from", "2026-03-02"), ("created_to", "2026-03-02")];
    assert_eq!(listed(&ask(&mut browser, &days).await), [0; 0], "UTC");
    staff_app
        .app
        .database
        .run("UPDATE staff SET time_zone = 'Asia/Tokyo'")
        .await;
    let page = ask(&mut browser, &days).await;
    assert_eq!(listed(&page), [2], "Tokyo");
    assert!(page.contains("name=\"created_from\" type=\"date\" value=\"2026-03-02\""));
    assert!(page.contains("href=\"/admin/users\">Clear filters</a>"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_filter_in_use_is_named_and_one_link_removes_it() {
    let (_staff_app, mut browser) = staff_app_with(Role::Support).await;
    for (path, chips) in [
        ("/admin/users?q=ada&sort=name", &[][..]),
        (
            "/admin/users?q=ada&provider=idp&status=active&seen_to=2026-03-02",
            &[
                (
                    "Signs in with: idp",
                    "/admin/users?q=ada&status=active&seen_to=2026-03-02",
                ),
                (
                    "Last seen to: 2026-03-02",
                    "/admin/users?q=ada&provider=idp&status=active",
                ),
            ],
        ),
        ("/admin/audit?what=looks", &[]),
        (
            "/admin/audit?email=ada%40example.com&reason=link_required&request=1%262",
            &[
                (
                    "E-mail: ada@example.com",
                    "/admin/audit?reason=link_required&request=1%262",
                ),
                (
                    "Reason: Address of another user, not proven",
                    "/admin/audit?email=ada%40example.com&request=1%262",
                ),
                (
                    "Request ID or receipt number: 1&2",
                    "/admin/audit?email=ada%40example.com&reason=link_required",
                ),
            ],
        ),
    ] {
        let page = browser.get(path).await.text;
        assert_eq!(
            page.matches("aria-label=\"Remove the filter").count(),
            chips.len(),
            "{path}"
        );
        for (label, href) in chips {
            let [label, href] = [label, href].map(|text| text.replace('&', "&amp;"));
            let chip = format!(
                "<a class=\"set\" href=\"{href}\" aria-label=\"Remove the filter {label}\">{label} "
            );
            assert!(page.contains(&chip), "{path}: {chip}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn column_headers_sort_the_list_and_show_its_order() {
    let (_staff_app, mut browser) = full_staff_app(12).await;
    let head = |page: &str, label: &str| {
        let before = page.split_once(&format!("\">{label}</a></th>")).unwrap().0;
        let (start, href) = before.rsplit_once("<a href=\"").unwrap();
        (
            start.rsplit("<th").next().unwrap().to_owned(),
            href.replace("&amp;", "&"),
        )
    };
    let page = ask(&mut browser, &[("status", "active")]).await;
    let mut ordered = Vec::new();
    for label in ["E-mail", "Name", "Created", "Last seen"] {
        let (attributes, href) = head(&page, label);
        assert_eq!(
            attributes.contains("aria-sort=\"descending\""),
            label == "Created",
            "{label}"
        );
        let page = browser.get(&href).await.text;
        assert_eq!(page.matches("aria-sort").count(), 1, "{label}");
        assert!(head(&page, label).0.contains("aria-sort"), "{label}");
        ordered.push(listed(&page));
    }
    let by_address = vec![10, 11, 1, 2, 3, 5, 6, 7, 9];
    let (oldest, newest): (Vec<u32>, Vec<u32>) = (
        [1, 2, 3, 5, 6, 7, 9, 10, 11].into(),
        [11, 10, 9, 7, 6, 5, 3, 2, 1].into(),
    );
    assert_eq!(ordered, [by_address, newest, oldest.clone(), oldest]);
    let (_, other) = head(&ask(&mut browser, &[("sort", "oldest")]).await, "Created");
    assert_eq!(other, "/admin/users");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_shows_its_count_and_marks_estimates() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let pool = &staff_app.app.database.pool;
    assert!(
        ask(&mut browser, &[])
            .await
            .contains("There are no users yet")
    );
    fill(pool, 1).await;
    assert!(ask(&mut browser, &[]).await.contains(">1 user</p>"));
    sqlx::query("DELETE FROM users")
        .execute(pool)
        .await
        .unwrap();
    fill(pool, 2_000).await;
    sqlx::query("VACUUM ANALYZE users")
        .execute(pool)
        .await
        .unwrap();
    let page = ask(&mut browser, &[]).await;
    assert!(
        page.contains("about 2,000 users (an estimate)</p>"),
        "{page}"
    );
    assert!(
        ask(&mut browser, &[("seen_from", "2000-01-01")])
            .await
            .contains("(an estimate)")
    );
    let page = ask(&mut browser, &[("q", "user-19")]).await;
    assert!(
        page.contains(">more than 50 users, the best match first"),
        "{page}"
    );
    let page = browser.get(&link(&page, "next").unwrap()).await.text;
    assert!(
        page.contains(">further users, the best match first"),
        "{page}"
    );
    assert!(
        ask(&mut browser, &[("q", "user-199")])
            .await
            .contains(">11 users, the best match first")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_found_may_be_among_the_refused() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let refused = person(
        &staff_app,
        &[("email", "ada@example.com"), ("aud", "another")],
    )
    .await;
    assert_eq!(refused.error(), "audience_mismatch");
    let page = ask(&mut browser, &[("q", "Ada@Example.com")]).await;
    assert!(page.contains("No user matches “Ada@Example.com”"), "{page}");
    let path = page
        .split("href=\"")
        .find(|rest| rest.starts_with("/admin/audit?"))
        .unwrap();
    let path = path.split('"').next().unwrap();
    // The service writes refusals in the background.
    eventually(&format!("{path} shows the refusal"), async || {
        browser
            .get(path)
            .await
            .text
            .contains("Sign-in refused")
            .then_some(())
    })
    .await;
    assert!(
        !ask(&mut browser, &[("q", "ada")])
            .await
            .contains("/admin/audit?"),
        "no address, no link"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_providers_can_still_be_filtered_and_searched() {
    let (staff_app, mut browser) = full_staff_app(2).await;
    staff_app.app.database.run("INSERT INTO identities (id, user_id, provider, subject)
         SELECT gen_random_uuid(), id, 'retired', 'subject-' || email FROM users WHERE email = 'user-1@example.com'").await;
    let page = ask(&mut browser, &[]).await;
    for option in [
        "<option>retired</option>",
        "<option>idp</option>",
        "<option>second</option>",
    ] {
        assert!(page.contains(option), "{option}");
    }
    assert!(page.contains(">retired</span>"));
    assert_eq!(
        listed(&ask(&mut browser, &[("provider", "retired")]).await),
        [1]
    );
    let found = browser
        .get("/admin/users?q=subject-user-1%40example.com")
        .await;
    assert!(
        found
            .header("location")
            .unwrap()
            .starts_with("/admin/users/"),
        "{}",
        found.text
    );
}
