//! What happened, found again.

use reqwest::Method;
use vestibule::domain::staff::Role;

use super::{desk_with, person};
use crate::support::desk::Browser;

/// What the events on a page say happened, the latest first.
async fn found(browser: &mut Browser, query: &[(&str, &str)]) -> Vec<String> {
    let request = browser.request(Method::GET, "/admin/audit").query(query);
    let page = browser.send(request).await;
    assert_eq!(page.status.as_u16(), 200, "{query:?}");
    let events = page.text.split("<li>\n<p><time").skip(1);
    events
        .map(|event| event.split("<strong>").nth(1).unwrap().split('<').next().unwrap().to_owned())
        .collect()
}

const FIRST: &str = "Signed in for the first time";
const REFUSED: &str = "A sign-in was refused";

#[tokio::test(flavor = "multi_thread")]
async fn each_filter_leaves_what_it_says_and_nothing_else() {
    let (desk, mut browser) = desk_with(Role::Admin).await;
    let ada = person(&desk, &[("email", "ada@example.com")]).await;
    person(&desk, &[("email", "grace@example.com")]).await;
    person(&desk, &[("email", "ada@example.com"), ("sub", "x"), ("verified", "false")]).await;
    let csrf = browser.csrf().await;
    let form = [("csrf", csrf.as_str()), ("reason", "asked by phone")];
    browser.post(&format!("/admin/users/{}/end-sessions", ada.user_id()), &form).await;
    let ended = "Signed out everywhere by staff";
    let signed_in = "A member of staff signed in";
    let (id, none): (_, &[&str]) = (ada.user_id(), &[]);
    for (query, expected) in [
        (&[("what", "refused")][..], &[REFUSED][..]),
        (&[("what", "sign-ins")], &[FIRST, FIRST]),
        (&[("email", "ADA@example.com")], &[ended, REFUSED, FIRST]),
        (&[("email", "ada@example.com"), ("what", "refused")], &[REFUSED]),
        (&[("email", "nobody@example.com")], none),
        (&[("email", "no address")], none),
        (&[("user", &id)], &[ended, FIRST]),
        (&[("user", "x")], none),
        (&[("reason", "link_required")], &[REFUSED]),
        (&[("reason", "token_expired")], none),
        (&[("actor", "staff@example.com")], &[ended, signed_in]),
        (&[("actor", "staff@example.com"), ("user", &id)], &[ended]),
        (&[("what", "security")], none),
        (&[("from", "2999-01-01")], none),
        (&[("to", "2020-01-01")], none),
        (&[("to", "not a day")], none),
        (&[("from", "-009999-01-01")], none),
        (&[("to", "0000-12-31")], none),
        (&[("what", "refused"), ("from", "2020-01-01"), ("to", "2999-01-01")], &[REFUSED]),
        (&[("what", "no such choice"), ("email", "grace@example.com")], &[FIRST]),
        (&[("reason", "' OR true --")], none),
    ] {
        assert_eq!(found(&mut browser, query).await, expected, "{query:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_events_follow_each_other_without_a_hole_and_keep_the_filter() {
    let (desk, mut browser) = desk_with(Role::Support).await;
    sqlx::query(
        "INSERT INTO events (id, kind, reason, email, request_id)
         SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid,
                CASE n % 2 WHEN 0 THEN 'sign_in_refused' ELSE 'link_refused' END, 'token_expired', 'a@example.com', 'number-' || n
         FROM generate_series(1, 250) AS n",
    )
    .execute(&desk.app.database.pool)
    .await
    .unwrap();
    for query in ["what=refused", "reason=token_expired", "email=a%40example.com&what=refused"] {
        let mut path = Some(format!("/admin/audit?{query}"));
        let mut seen = Vec::new();
        while let Some(current) = path {
            let page = browser.get(&current).await.text;
            let numbers = page.split("request number-").skip(1);
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
async fn whoever_looks_at_personal_data_is_recorded_with_what_they_looked_for() {
    let (desk, mut browser) = desk_with(Role::Support).await;
    let ada = person(&desk, &[("email", "ada@example.com")]).await;
    browser.get(&format!("/admin/users/{}", ada.user_id())).await;
    browser.get("/admin/users?q=ada").await;
    browser.get("/admin/audit?email=ada@example.com").await;
    let looks = found(&mut browser, &[("what", "looks")]).await;
    assert_eq!(looks, ["Looked at the audit", "Looked at the list of users", "Looked at the user"]);
    let page = browser.get("/admin/audit?what=looks").await.text;
    for text in
        ["by staff@example.com", "Asked for: ada", "Asked for: email=ada%40example.com", "from 127.0.0.1"]
    {
        assert!(page.contains(text), "{text}: {page}");
    }
    // A look is no news on the person's own page.
    assert!(!browser.get(&format!("/admin/users/{}", ada.user_id())).await.text.contains("Looked at"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_the_audit_holds_what_its_filter_leaves_of_more_events_than_one_statement_reads() {
    let (desk, mut browser) = desk_with(Role::Support).await;
    sqlx::query(
        "INSERT INTO events (id, kind, reason, email, request_id)
         SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'sign_in_refused', 'token_expired',
                '=formula@example.com', 'number-' || n
         FROM generate_series(1, 4500) AS n",
    )
    .execute(&desk.app.database.pool)
    .await
    .unwrap();
    let file = browser.get("/admin/audit.csv?what=refused").await;
    assert!(file.header("content-type").unwrap().starts_with("text/csv"));
    let mut reader = csv::Reader::from_reader(file.text.as_bytes());
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    let numbers = rows.iter().map(|row| row[12].strip_prefix("number-").unwrap().parse::<u32>().unwrap());
    assert_eq!(numbers.collect::<Vec<_>>(), (1..=4500).rev().collect::<Vec<_>>());
    assert!(rows.iter().all(|row| &row[6] == "'=formula@example.com"), "no cell is a formula");
    for query in ["email=no+address", "from=-009999-01-01"] {
        let none = browser.get(&format!("/admin/audit.csv?{query}")).await.text;
        assert_eq!(none.trim_end().lines().count(), 1, "{none}");
    }
    assert_eq!(found(&mut browser, &[("what", "looks")]).await, ["Exported the audit"; 3]);
}
