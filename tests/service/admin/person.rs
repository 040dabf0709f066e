//! A user's page and its forms, also after an expired session, an error or a merge.

use reqwest::Method;
use serde_json::{Value, json};
use vestibule::domain::api_key::KeyRole;
use vestibule::domain::staff::Role;

use super::{person, staff_app_with};
use crate::support::app::Answer;
use crate::support::staff_app::{Browser, Form, StaffApp};

/// Returns the value of a form field.
fn held<'a>(page: &'a str, field: &str) -> &'a str {
    let (_, rest) = page
        .split_once(&format!("name=\"{field}\""))
        .unwrap_or_else(|| panic!("{field}: {page}"));
    let input = rest.split_once('>').unwrap().0;
    input
        .split_once("value=\"")
        .map_or("", |(_, value)| value.split_once('"').unwrap().0)
}

fn path(answer: &Answer) -> String {
    format!("/admin/users/{}", answer.user_id())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_sent_after_the_session_ended_returns_prefilled_and_unapplied() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let ada = person(&staff_app, &[("email", "ada@example.com"), ("sub", "1")]).await;
    let grace = person(&staff_app, &[("email", "grace@example.com"), ("sub", "2")]).await;
    let csrf = browser.csrf().await;
    let merge = format!("{}/merge?into={}", path(&ada), grace.user_id());
    for (page, fields) in [
        (
            format!("{}/disable", path(&ada)),
            vec![("reason", "chargeback, ticket 4711")],
        ),
        (
            merge,
            vec![
                ("reason", "chargeback, ticket 4711"),
                ("into", &grace.user_id()),
            ],
        ),
        (
            path(&ada),
            vec![
                ("text", "chargeback, ticket 4711"),
                ("ticket", "https://tickets.example/1"),
            ],
        ),
        // A note with an error is shown at the path of its form.
        (
            format!("{}/notes", path(&ada)),
            vec![
                ("text", "chargeback, ticket 4711"),
                ("ticket", "https://tickets.example/1"),
            ],
        ),
    ] {
        staff_app
            .app
            .database
            .run("DELETE FROM staff_sessions")
            .await;
        let form_of_note = format!("{}/notes", path(&ada));
        let action = if fields[0].0 == "text" {
            &form_of_note
        } else {
            page.split('?').next().unwrap()
        };
        let form = [&fields[..], &[("csrf", &csrf), ("seen", "x")]].concat();
        let request = browser
            .request(Method::POST, action)
            .header("Referer", browser.url(&page));
        let sent = browser.send(request.form(&form)).await;
        let to_sign_in = sent.header("location").unwrap().to_owned();
        let asked = browser.get(&to_sign_in).await.text;
        assert!(
            asked.contains("Nothing was done.") && asked.contains("chargeback, ticket 4711"),
            "{asked}"
        );

        let to_provider = asked
            .split("method=\"post\" action=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let begun = browser.post(&to_provider.replace("&amp;", "&"), &[]).await;
        let authorize = begun.header("location").unwrap().parse().unwrap();
        let callback = browser.choose(&authorize, "staff@example.com").await;
        let landed = browser.get(&callback).await;
        let back = landed.header("location").unwrap();
        let question = browser.get(back).await;
        assert_eq!(question.status, 200, "{back}");
        if fields[0].0 == "text" {
            assert!(
                question.text.contains("chargeback, ticket 4711</textarea>"),
                "{}",
                question.text
            );
            assert_eq!(held(&question.text, "ticket"), "https://tickets.example/1");
        } else {
            assert_eq!(held(&question.text, "reason"), "chargeback, ticket 4711");
        }
    }
    let left =
        "SELECT count(*) FROM users u WHERE disabled_at IS NULL AND NOT EXISTS (SELECT FROM notes)";
    assert_eq!(
        staff_app.app.database.count(left).await,
        2,
        "nothing was done"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_distinguishes_a_missing_role_from_an_outdated_form() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    let disable = format!("{}/disable", path(&ada));
    let role = "Your role does not allow this.";
    let asked = browser.get(&disable).await;
    assert!(
        asked.status == 403 && asked.text.contains(role),
        "{}",
        asked.text
    );
    let sent = browser.submit(&disable, &[("reason", "x")]).await;
    assert!(
        sent.status == 403 && sent.text.contains(role),
        "{}",
        sent.text
    );
    let end = format!("{}/end-sessions", path(&ada));
    let request = browser
        .request(Method::POST, &end)
        .header("Referer", browser.url(&end));
    let forged = browser
        .send(request.form(&[("csrf", "x"), ("reason", "lost phone")]))
        .await;
    assert!(
        forged.status == 403 && forged.text.contains("This form is out of date"),
        "{}",
        forged.text
    );
    let back = format!("href=\"{end}?reason=lost+phone\"");
    assert!(forged.text.contains(&back), "{}", forged.text);
    for answer in [asked, sent, forged, browser.get("/admin/nothing").await] {
        assert!(
            answer.text.contains("<nav aria-label=\"Pages\">"),
            "the header is there: {}",
            answer.text
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_form_shows_errors_at_fields_and_keeps_input() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    let long = "x".repeat(501);
    for (reason, error) in [("  ", "Write why"), (&*long, "at most 500 characters")] {
        let page = browser
            .submit(&format!("{}/disable", path(&ada)), &[("reason", reason)])
            .await;
        assert!(
            page.status == 400 && page.text.contains(error),
            "{}",
            page.text
        );
        assert!(
            page.text.contains("aria-invalid=\"true\"")
                && page.text.contains("id=\"reason-error\"")
        );
        assert_eq!(held(&page.text, "reason"), reason.trim());
    }
    for (text, ticket, error) in [
        (" ", "https://tickets.example/1", "Write something."),
        (
            "Calls back",
            "javascript:alert(1)",
            "the whole address of the ticket",
        ),
        ("Calls back", "4711", "the whole address of the ticket"),
    ] {
        let note = [("text", text), ("ticket", ticket)];
        let page = browser
            .submit(&format!("{}/notes", path(&ada)), &note)
            .await;
        assert!(
            page.status == 400 && page.text.contains(error),
            "{}",
            page.text
        );
        assert_eq!(held(&page.text, "ticket"), ticket);
        assert!(
            page.text.contains(&format!("\n{}</textarea>", text.trim())),
            "{}",
            page.text
        );
    }
    assert_eq!(
        staff_app
            .app
            .database
            .count("SELECT count(*) FROM notes")
            .await,
        0
    );
}

async fn write_note(browser: &mut Browser, user: &str, text: &str) {
    let form = [("text", text), ("ticket", "https://tickets.example/4711")];
    let written = browser.submit(&format!("{user}/notes"), &form).await;
    assert_eq!(written.status, 303, "{}", written.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_note_loses_control_characters_and_a_resubmission_writes_it_once() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    let page = browser.get(&path(&ada)).await.text;
    for (text, notes) in [
        ("Calls\0 back\u{202e}\r\non Monday", 1),
        ("Calls\0 back\u{202e}\r\non Monday", 1),
        ("Has called", 2),
    ] {
        let id = held(&page, "note");
        let form = [
            ("note", id),
            ("text", text),
            ("ticket", "HTTPS://tickets.example/ä b\u{202e}"),
        ];
        let sent = browser
            .submit(&format!("{}/notes", path(&ada)), &form)
            .await;
        assert_eq!(sent.status, 303, "{text:?}: {}", sent.text);
        assert_eq!(
            staff_app
                .app
                .database
                .count("SELECT count(*) FROM notes")
                .await,
            notes,
            "{text:?}"
        );
    }
    let written: (String, String) = staff_app
        .app
        .database
        .all("SELECT text, ticket FROM notes ORDER BY created_at")
        .await
        .remove(0);
    assert_eq!(
        written,
        (
            "Calls  back \non Monday".into(),
            "https://tickets.example/%C3%A4%20b%E2%80%AE".into()
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_appear_in_copy_and_audit_and_are_deleted_with_users() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    write_note(&mut browser, &path(&ada), "Tablet lost on the train").await;
    staff_app.appoint("admin@example.com", Role::Admin).await;
    let mut admin = staff_app.signed_in("admin@example.com").await;
    let page = admin.get(&path(&ada)).await.text;
    for expected in [
        "Tablet lost on the train",
        "href=\"https://tickets.example/4711\"",
        "Note written",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let audit = admin.get("/admin/audit?what=staff").await.text;
    assert!(
        audit.contains("Note written") && !audit.contains("Tablet"),
        "{audit}"
    );

    let copy = admin.get(&format!("{}/data.json", path(&ada))).await;
    assert!(
        copy.header("content-disposition")
            .unwrap()
            .starts_with("attachment")
    );
    let copy: Value = serde_json::from_str(&copy.text).unwrap();
    assert_eq!(copy["notes"][0]["text"], "Tablet lost on the train");
    assert_eq!(
        (
            &copy["user"]["email"],
            copy["sessions"].as_array().unwrap().len()
        ),
        (&"ada@example.com".into(), 1)
    );
    assert!(
        copy["events"]
            .as_array()
            .unwrap()
            .iter()
            .any(|event| event["kind"] == "user_created")
    );
    let missing = admin
        .get("/admin/users/00000000-0000-7000-8000-000000000000/data.json")
        .await;
    assert_eq!(missing.status, 404);

    assert_eq!(
        admin
            .confirm(&format!("{}/delete", path(&ada)), "asked for it")
            .await
            .status,
        303
    );
    assert_eq!(
        staff_app
            .app
            .database
            .count("SELECT count(*) FROM notes")
            .await,
        0
    );
    let late = browser
        .submit(&format!("{}/notes", path(&ada)), &[("text", "too late")])
        .await;
    assert_eq!(late.status, 404, "{}", late.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_for_the_person_says_nothing_about_staff() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    write_note(&mut browser, &path(&ada), "Tablet lost on the train").await;
    let key = staff_app.app.api_key("shop", KeyRole::Admin).await;
    let claims = json!({ "reason": "promoted", "claims": { "plan": "pro" } });
    let claims_path = format!("/api/v1/admin/users/{}/claims", ada.user_id());
    let set = staff_app
        .app
        .as_user(&key, Method::PUT, &claims_path, Some(&claims))
        .await;
    assert_eq!(set.status, 200, "{}", set.text);
    let pool = &staff_app.app.database.pool;
    run!(
        pool,
        "UPDATE events SET ip = '192.0.2.1', user_agent = 'her phone', request_id = 'hers' WHERE actor IS NULL"
    );
    run!(
        pool,
        "UPDATE events SET ip = '203.0.113.9', user_agent = 'a browser of staff', request_id = 'of-staff'
         WHERE actor IS NOT NULL"
    );
    // The provider reported an account with which a member of staff signs in.
    run!(
        pool,
        "INSERT INTO events (kind, reason, user_id, detail)
         VALUES ('provider_event', 'account_disabled', $1, '{\"member\": \"root@example.com\", \"cause\": \"hijacking\"}')",
        ada.user()
    );
    let copy = browser.get(&format!("{}/data.json", path(&ada))).await.text;
    for about_staff in [
        "staff@example.com",
        "root@example.com",
        "203.0.113.9",
        "a browser of staff",
        "of-staff",
    ] {
        assert!(!copy.contains(about_staff), "{about_staff}: {copy}");
    }
    for hers in [
        "192.0.2.1",
        "her phone",
        "hers",
        "Tablet lost on the train",
        "promoted",
        "key:shop",
        "hijacking",
    ] {
        assert!(copy.contains(hers), "{hers}: {copy}");
    }
    let copy: Value = serde_json::from_str(&copy).unwrap();
    assert_eq!(copy["notes"][0]["author"], "staff");
    let events = copy["events"].as_array().unwrap();
    let written = events
        .iter()
        .find(|event| event["kind"] == "note_added")
        .unwrap();
    assert_eq!(
        (&written["actor"], &written["ip"]),
        (&json!("staff"), &Value::Null)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_keeps_all_notes_including_one_that_commits_meanwhile() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let ada = person(&staff_app, &[("email", "ada@example.com"), ("sub", "1")]).await;
    let grace = person(&staff_app, &[("email", "grace@example.com"), ("sub", "2")]).await;
    write_note(&mut browser, &path(&ada), "of Ada").await;
    write_note(&mut browser, &path(&grace), "of Grace").await;
    let merge = format!("{}/merge", path(&ada));
    let page = browser
        .get(&format!(
            "{merge}?into={}&back={}",
            grace.user_id(),
            grace.user_id()
        ))
        .await
        .text;
    assert!(page.contains("A merge cannot be undone."), "{page}");
    assert!(
        page.contains(&format!("<a href=\"{}\">Cancel</a>", path(&grace))),
        "back to where it began: {page}"
    );
    assert!(page.contains("<th scope=\"row\">Last seen</th>"), "{page}");
    let form = Form::of(&page).with("reason", "one person");
    // This note's transaction commits while the merge waits for it.
    let mut writing = staff_app.app.database.pool.begin().await.unwrap();
    sqlx::query("INSERT INTO notes (user_id, author, text) VALUES ($1::text::uuid, 'staff@example.com', 'at the last moment')")
        .bind(ada.user_id())
        .execute(&mut *writing)
        .await
        .unwrap();
    let merging = tokio::spawn(
        browser
            .request(Method::POST, &merge)
            .form(&form.fields)
            .send(),
    );
    staff_app.app.database.until_blocked().await;
    writing.commit().await.unwrap();
    assert_eq!(merging.await.unwrap().unwrap().status(), 303);
    let page = browser.get(&path(&grace)).await.text;
    for note in ["of Ada", "of Grace", "at the last moment"] {
        assert!(page.contains(note), "{note}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_users_page_links_the_surviving_user_or_the_receipt() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let ada = person(&staff_app, &[("email", "ada@example.com"), ("sub", "1")]).await;
    let grace = person(
        &staff_app,
        &[
            ("email", "grace@example.com"),
            ("sub", "2"),
            ("name", "Grace"),
        ],
    )
    .await;
    let merge = format!("{}/merge?into={}", path(&ada), grace.user_id());
    assert_eq!(browser.confirm(&merge, "one person").await.status, 303);
    let gone = browser.get(&path(&ada)).await;
    assert_eq!(gone.status, 404);
    for expected in [
        &*format!("href=\"{}\"", path(&grace)),
        "staff@example.com",
        "one person",
        "ada@example.com",
    ] {
        assert!(gone.text.contains(expected), "{expected}: {}", gone.text);
    }
    assert_eq!(
        staff_app
            .app
            .delete(&grace.access_token(), "/api/v1/me")
            .await
            .status,
        204
    );
    let number: String = value!(
        &staff_app.app.database.pool,
        "SELECT id::text FROM events WHERE kind = 'user_deleted'"
    );
    let gone = browser.get(&path(&grace)).await;
    assert!(gone.status == 404 && gone.text.contains(&format!("/admin/deletions/{number}")));
    let never = browser
        .get("/admin/users/00000000-0000-7000-8000-000000000000")
        .await;
    assert!(
        never.status == 404 && never.text.contains("Nothing here"),
        "{}",
        never.text
    );
}

/// Makes a change, then returns the first sentence about the user.
async fn verdict(
    staff_app: &StaffApp,
    browser: &mut Browser,
    user: &str,
    change: &'static str,
) -> String {
    staff_app.app.database.run(change).await;
    let page = browser.get(user).await.text;
    let strip = page.split("<div class=\"strip ").nth(1).unwrap();
    strip
        .split_once("<strong>")
        .unwrap()
        .1
        .split_once("</strong>")
        .unwrap()
        .0
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_page_begins_with_whether_and_why_sign_in_works() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    let user = path(&ada);
    for (change, expected) in [
        ("SELECT 1", "Can sign in."),
        (
            "INSERT INTO events (kind, user_id) SELECT 'refresh_token_replayed', id FROM users",
            "Can sign in, and a thief may be in the account.",
        ),
        ("UPDATE identities SET held_at = now()", "Cannot sign in: the idp identity was put on hold"),
        ("UPDATE identities SET reported_at = now(), held_at = NULL", "Cannot sign in: idp suspended"),
        ("DELETE FROM identities", "Has no way to sign in yet."),
        (
            "WITH d AS (UPDATE users SET disabled_at = now() RETURNING id)
             INSERT INTO events (kind, user_id, actor) SELECT 'user_disabled', id, 'key:shop' FROM d",
            "Cannot sign in: disabled by key:shop",
        ),
    ] {
        let said = verdict(&staff_app, &mut browser, &user, change).await;
        assert!(said.starts_with(expected), "{expected}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_theft_warning_stays_until_sign_out_or_a_confirming_note() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    let user = path(&ada);
    let stolen =
        "INSERT INTO events (kind, user_id) SELECT 'refresh_token_repeated', id FROM users";
    let question = "Is a thief in this account?";
    let known = [("text", "On the train"), ("known", "yes")];
    for (action, form) in [
        ("notes", &known[..]),
        ("end-sessions", &[("reason", "stolen")]),
    ] {
        staff_app.app.database.run(stolen).await;
        write_note(&mut browser, &user, "A note alone closes nothing").await;
        assert!(browser.get(&user).await.text.contains(question));
        assert_eq!(
            browser
                .submit(&format!("{user}/{action}"), form)
                .await
                .status,
            303
        );
        assert!(
            !browser.get(&user).await.text.contains(question),
            "{action}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_or_all_sessions_are_shown_and_ending_none_is_reported() {
    let (staff_app, mut browser) = staff_app_with(Role::Support).await;
    let mut ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    for _ in 0..6 {
        ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    }
    let user = path(&ada);
    for (query, shown) in [("", 5), ("?sessions=all", 7)] {
        let page = browser.get(&format!("{user}{query}")).await.text;
        assert_eq!(page.matches("/sessions/").count(), shown, "{query}");
        assert_eq!(page.contains("Show all 7"), shown == 5, "{query}");
        let (actions, rest) = page.split_once("<h2 id=\"sessions\">").unwrap();
        assert!(
            actions.contains(&format!("{user}/end-sessions")) && !rest.contains("<button"),
            "{page}"
        );
    }
    let mut done = Vec::new();
    for _ in 0..2 {
        let landed = browser
            .submit(&format!("{user}/end-sessions"), &[("reason", "lost phone")])
            .await;
        done.push(browser.get(landed.header("location").unwrap()).await.text);
    }
    assert!(
        done[0].contains("The user is signed out everywhere."),
        "{}",
        done[0]
    );
    assert!(done[1].contains("The user had no session"), "{}", done[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_show_as_a_tree_with_changes_and_history_is_filtered() {
    let (staff_app, mut browser) = staff_app_with(Role::Admin).await;
    let ada = person(&staff_app, &[("email", "ada@example.com")]).await;
    staff_app.app
        .database
        .run(
            "WITH u AS (UPDATE users SET claims = '{\"plan\": \"pro\", \"shop\": {\"tier\": \"gold\"}}' RETURNING id)
             INSERT INTO events (id, kind, user_id, actor, detail)
             SELECT c.id::uuid, 'claims_changed', u.id, 'key:shop', jsonb_build_object('claims', c.claims)
             FROM u, (VALUES ('ffffffff-0000-7000-8000-000000000001', '{\"plan\": \"free\"}'::jsonb),
                             ('ffffffff-0000-7000-8000-000000000002', '{\"plan\": \"pro\"}')) AS c (id, claims)",
        )
        .await;
    let page = browser.get(&path(&ada)).await.text;
    for expected in [
        "<li><span class=\"quiet\">plan:</span> &quot;pro&quot;</li>",
        "<li><span class=\"quiet\">shop</span><ul class=\"tree\"><li><span class=\"quiet\">tier:</span> &quot;gold&quot;</li>",
        "<code>plan</code> was <del>&quot;free&quot;</del>, is <ins>&quot;pro&quot;</ins>",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let rows = |page: &str| page.matches("<li class=\"event ").count();
    assert_eq!(
        (
            rows(&page),
            page.contains("Sign-ins <span class=\"n\">1</span>")
        ),
        (3, true),
        "{page}"
    );
    for (only, expected) in [
        ("staff", 2),
        ("sign-ins", 1),
        ("refused", 0),
        ("nonsense", 3),
    ] {
        assert_eq!(
            rows(
                &browser
                    .get(&format!("{}?only={only}", path(&ada)))
                    .await
                    .text
            ),
            expected,
            "{only}"
        );
    }
}
